#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Builds the modules against a Debian kernel's headers, with the compiler that built that kernel, in a chroot of that Debian
# release. The host needs mmdebstrap and root, and stays as it is.
#
#   MIRROR=URL [ALSO="MODULE…" SOURCE=PACKAGE] build-in-chroot.sh WORK SUITE HEADERS
#
# WORK     directory for the chroots; one that exists already is used again
# SUITE    the release: bookworm, trixie, …; for trixie and later its backports are used too
# HEADERS  the package with the headers, for example linux-headers-cloud-amd64
# ALSO     modules of the kernel's own net/sched that this kernel was configured without, for example sch_dualpi2
# SOURCE   the package with the kernel's source, of the same version as HEADERS: linux-source-7.2=7.2.12-1~bpo13+1
#
# The modules come to lie in WORK/SUITE-HEADERS.out.
set -eu

if [ $# -ne 3 ]; then
	sed -n '4,15s/^# \{0,1\}//p' "$0" >&2
	exit 2
fi
: "${MIRROR:?the URL of a Debian mirror}"
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
work=$(cd "$1" && pwd)
also=${ALSO:-}
[ -z "$also" ] || : "${SOURCE:?the package with the source of $also}"
suite=$2
headers=$3
root=$work/$suite-$headers
out=$root.out
keys=${KEYRING:-/usr/share/keyrings}

if [ ! -e "$root/.complete" ]; then
	sources="deb $MIRROR $suite main"
	# The compiler that the release builds its kernels with; newer headers do not depend on it.
	case $suite in
	bookworm) compiler=gcc-12 ;;
	*) compiler=${COMPILER:-gcc-14}
		sources="$sources
deb $MIRROR $suite-backports main" ;;
	esac
	rm -rf "$root"
	# In a mount namespace of its own: on a busy host the chroot's /sys once stayed mounted.
	echo "$sources" | unshare --mount mmdebstrap --variant=apt --mode=root --keyring="$keys" \
		--include="$headers,$compiler,make,kmod,bc,libc6-dev${also:+,$SOURCE}${EXTRA:+,$EXTRA}" "$suite" "$root" -
	touch "$root/.complete"
fi

# The tree of sources as it is in the repository: the modules include ../include.
rm -rf "$root/qdisc" "$root/also" "$out"
mkdir -p "$root/qdisc" "$root/also" "$out"
cp -r "$here" "$here/../include" "$root/qdisc/"
# One file each: whatever else a discipline needs is in the headers.
for module in $also; do
	tar -xJf "$root"/usr/src/linux-source-*.tar.xz -C "$root/also" --strip-components=3 --wildcards --occurrence=1 "*/net/sched/$module.c"
	echo "obj-m += $module.o" >>"$root/also/Makefile"
done

for build in "$root"/usr/lib/modules/*/build "$root"/lib/modules/*/build; do
	[ -e "$build" ] || [ -L "$build" ] || continue
	release=$(basename "$(dirname "$build")")
	for folder in /qdisc/module ${also:+/also}; do
		# Without vmlinux there is no BTF to build a module's from.
		unshare --mount --pid --fork --mount-proc="$root/proc" chroot "$root" \
			make -C "/usr/src/linux-headers-$release" W=1 M=$folder CONFIG_DEBUG_INFO_BTF_MODULES= modules
		cp "$root$folder"/*.ko "$out/"
	done
	break
done
ls -l "$out"
