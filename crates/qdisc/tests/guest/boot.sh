#!/bin/sh
# Runs a script of this directory as root in a virtual machine, on a kernel of the lab's folder (`narrows lab fetch`).
#
#   boot.sh [-k RELEASE] [-m MODULES] [-p PROGRAM] [-c WORDS] [-f FILE] [-s] [-t SECONDS] SCRIPT [ARGUMENT...]
#
# -k  how the kernel's release begins; the newest of the folder by default
# -m  a folder of modules that take precedence over those of the lab, such as those that were just built
# -p  a program that the guest has as /bin/narrows, built with --features bpf; without it, what needs the program is left out
# -c  words that are appended to the kernel's command line, such as slub_debug=FZPU
# -f  a file that the guest has as /lab/trace
# -s  two processors in real time; otherwise one, whose clock counts instructions, so that a run can be repeated exactly
# -t  seconds of wall-clock time after which the machine is ended; 1500 by default
#
# Ends with the script's status; with 1 if the kernel panicked or the machine was ended. Nothing is installed on the host, which needs
# qemu-system-x86_64, busybox (static), cpio, cc with a static libc, ip and tc, and what the script names. The file system is an
# archive in memory with the modules and programs that the script's header names, in lines of this form:
#
#   # loads: MODULE...      loaded at the start, each after those that it depends on
#   # carries: MODULE...    in /lab/modules, for the script to load
#   # programs: NAME...     programs of the host
#
# In the guest /lab/packets is crates/qdisc/c/test/packets.c, and tc finds the plug-ins. A module that the kernel does not have is
# reported and left out.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
qdisc=$here/../../c
release='' modules='' program='' words='' trace='' processors=1 seconds=1500
while getopts k:m:p:c:f:st: option; do
    case $option in
    k) release=$OPTARG ;;
    m) modules=$(cd "$OPTARG" && pwd) ;;
    p) program=$OPTARG ;;
    c) words=$OPTARG ;;
    f) trace=$OPTARG ;;
    s) processors=2 ;;
    t) seconds=$OPTARG ;;
    *) sed -n '2,14s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
    esac
done
shift $((OPTIND - 1))
[ $# -ge 1 ] || { sed -n '2,14s/^# \{0,1\}//p' "$0" >&2; exit 2; }
script=$1; shift

fail() { echo "boot.sh: $*" >&2; exit 2; }
for tool in qemu-system-x86_64 busybox cpio ldd ip tc cc; do
    command -v $tool >/dev/null || fail "there is no program $tool (Debian: qemu-system-x86, busybox-static, cpio, libc-bin, iproute2, gcc)"
done
[ -f "$script" ] || script=$here/$script
[ -f "$script" ] || fail "there is no script $script"

lab=${NARROWS_LAB_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/narrows/lab}
kernel=$(find "$lab/kernels" -mindepth 1 -maxdepth 1 -name "$release*" 2>/dev/null | sort -V | tail -1)
[ -n "$kernel" ] || fail "there is no kernel ${release:-yet} in $lab; \`narrows lab fetch\` gets one"

work=$(mktemp -d)
machine=''
trap '[ -z "$machine" ] || kill $machine 2>/dev/null; rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
# Not compressed, if the lab could unpack it.
image=$kernel/vmlinux
[ -f "$image" ] || image=$kernel/vmlinuz
root=$work/root
mkdir -p "$root/bin" "$root/proc" "$root/sys" "$root/dev" "$root/run" "$root/tmp" "$root/etc" "$root/lab/modules" "$root/lab/tc"

# A module's file: that of -m, or the lab's; nothing if it is part of the image.
module_file() {
    for folder in "$modules" "$kernel/modules"; do
        if [ -n "$folder" ] && [ -f "$folder/$1.ko" ]; then echo "$folder/$1.ko"; return; fi
    done
}

# Copies a module and what it depends on, and appends their names to the list $2.
take() {
    file=$(module_file "$1")
    if [ -z "$file" ]; then
        tr - _ <"$kernel/modules.builtin" | grep -q "/$1\.ko" || echo "boot.sh: $(basename "$kernel") has no module $1" >&2
        return 0
    fi
    for needed in $(tr '\0' '\n' <"$file" | LC_ALL=C sed -n 's/^depends=//p' | tr ',-' ' _'); do
        take "$needed" "$2"
    done
    file=$(module_file "$1")
    [ -f "$root/lab/modules/$1.ko" ] || cp "$file" "$root/lab/modules/"
    grep -qx "$1" "$2" || echo "$1" >>"$2"
}

header() { sed -n "s/^# $1: //p" "$script" | tr '\n' ' '; }
: >"$root/lab/load"
: >"$work/carried"
for name in $(header loads); do take "$name" "$root/lab/load"; done
# `sch_narrows_*` is every module of that name.
carries=$(for name in $(header carries); do
    for file in "$kernel/modules/"$name.ko ${modules:+"$modules/"$name.ko}; do basename "$file" .ko; done
done | grep -vF '*' | sort -u)
for name in $carries; do
    # What it depends on is loaded at the start.
    take "$name" "$work/carried"
    grep -vx "$name" "$work/carried" | while read -r needed; do
        grep -qx "$needed" "$root/lab/load" || case " $(echo $carries) " in *" $needed "*) ;; *) echo "$needed" >>"$root/lab/load" ;; esac
    done
done

# A program of the host as /bin/NAME, with its libraries where they are.
program() {
    cp -L "$2" "$root/bin/$1"
    for library in $(ldd "$2" 2>/dev/null | grep -o '/[^ ]*'); do
        mkdir -p "$root$(dirname "$library")"
        cp -L "$library" "$root$library"
    done
}
# Not busybox's shell, which takes its own `ip` and `tc` before those in PATH.
for name in sh ip tc $(header programs); do
    path=$(command -v "$name") || fail "the script needs the program $name"
    program "$name" "$path"
done
if [ -n "$program" ]; then
    # Without what a debugger reads, which is most of it, the machine starts sooner.
    strip -o "$work/narrows" "$program" 2>/dev/null || cp "$program" "$work/narrows"
    program narrows "$work/narrows"
fi
cp -L "$(command -v busybox)" "$root/bin/busybox"
cp "$kernel"/tc/*.so "$root/lab/tc/" 2>/dev/null || true
cc -static -O2 -Wall -Wextra -o "$root/lab/packets" "$qdisc/test/packets.c" || fail "cannot build $qdisc/test/packets.c"
cp "$script" "$root/lab/script"
[ -z "$trace" ] || cp "$trace" "$root/lab/trace"
for argument in "$@"; do printf '%s\n' "$argument"; done >"$root/lab/arguments"
printf 'root:x:0:0:root:/:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n' >"$root/etc/passwd"

cat >"$root/init" <<'INIT'
#!/bin/sh
/bin/busybox --install /bin 2>/dev/null
export PATH=/bin TC_LIB_DIR=/lab/tc
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t devtmpfs dev /dev
mount -t tmpfs run /run; mount -t tmpfs tmp /tmp
mkdir -p /run/netns /var /root; ln -s /run /var/run
ip link set lo up
while read -r name; do insmod /lab/modules/$name.ko || echo "cannot load $name"; done </lab/load
set --
while read -r argument; do set -- "$@" "$argument"; done </lab/arguments
uname -r
/bin/sh /lab/script "$@" 2>&1
echo "the script ended with $?"
sleep 1
poweroff -f
INIT
chmod +x "$root/init"
(cd "$root" && find . | cpio -o -H newc -R 0:0 --quiet) >"$work/initrd"

if [ $processors -eq 1 ]; then
    set -- -accel tcg,thread=single -icount shift=0,sleep=off -rtc base=2026-01-01T00:00:00,clock=vm -seed 1
    line='nosmp nolapic_timer lpj=4000000'
else
    set -- -accel tcg,thread=multi -smp 2
    line=''
fi
: >"$work/console"
timeout --foreground "$seconds" qemu-system-x86_64 -nodefaults -no-user-config -display none -no-reboot -machine pc "$@" \
    -cpu max,-erms,-fsrm -m 1024 -kernel "$image" -initrd "$work/initrd" -serial stdio \
    -append "console=ttyS0 quiet panic=-1 oops=panic reboot=t nokaslr mitigations=off random.trust_cpu=on initcall_blacklist=load_system_certificate_list $line $words" \
    </dev/null >"$work/console" 2>&1 &
machine=$!
# In the background, so that a signal ends this script at once.
tail -f --pid=$machine -n +1 "$work/console" | sed -u 's/\r//' &
shown=$!
wait $machine || true
machine=''
wait $shown
tr -d '\r' <"$work/console" | grep -q '^the script ended with 0$' && exit 0
tr -d '\r' <"$work/console" | grep -q '^the script ended with' || echo "boot.sh: the machine ended before the script"
exit 1
