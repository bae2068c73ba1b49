#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Builds the modules against a Debian kernel's headers, with the compiler that built that kernel, in a chroot of that Debian
# release. The host needs mmdebstrap and root, and stays as it is.
#
#   MIRROR=URL build-in-chroot.sh WORK SUITE HEADERS
#
# WORK     directory for the chroots; one that exists already is used again
# SUITE    the release: bookworm, trixie, …; for trixie and later its backports are used too
# HEADERS  the package with the headers, for example linux-headers-cloud-amd64
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
	echo "$sources" | mmdebstrap --variant=apt --mode=root --keyring="$keys" \
		--include="$headers,$compiler,make,kmod,bc,libc6-dev${EXTRA:+,$EXTRA}" "$suite" "$root" -
	touch "$root/.complete"
fi

# The tree of sources as it is in the repository: the modules include ../include.
rm -rf "$root/qdisc" "$out"
mkdir -p "$root/qdisc" "$out"
cp -r "$here" "$here/../include" "$root/qdisc/"

for build in "$root"/usr/lib/modules/*/build "$root"/lib/modules/*/build; do
	[ -e "$build" ] || [ -L "$build" ] || continue
	release=$(basename "$(dirname "$build")")
	# Without vmlinux there is no BTF to build a module's from.
	unshare --mount --pid --fork --mount-proc="$root/proc" chroot "$root" \
		make -C "/usr/src/linux-headers-$release" W=1 M=/qdisc/module CONFIG_DEBUG_INFO_BTF_MODULES= modules
	break
done
cp "$root"/qdisc/module/*.ko "$out/"
ls -l "$out"
