#!/bin/sh
# Whether the queue disciplines for the kernel, modules and BPF programs, survive what can happen to them: packets and options that are
# malformed, changes and removals under load, floods. Run it with boot.sh, on a machine with nothing to lose:
#
#   boot.sh -k 7.2 -c slub_debug=FZPU [-p NARROWS] safety.sh quick     a part of everything, three modules; `quick all`: all of them
#   boot.sh -k 7.2 -c slub_debug=FZPU [-p NARROWS] safety.sh           all of it
#   boot.sh -k 7.2 safety.sh cost                                      instructions per packet (without -c, which costs some)
#
# `safety.sh PART...` runs only those parts: starved cycles changes removals memory frames options accounts mended bpf. Prints a line for each
# check, `ok` or `FAILED`, and the seeds that are used; ends with 1 if a check failed, or if the kernel's log has a warning or worse.
#
# SEED chooses the random numbers; seeds that once found a fault are in the list of the part that found it.
#
# loads: veth dummy sch_htb sch_hfsc sch_prio sch_netem ifb sch_ingress cls_matchall act_mirred
# carries: sch_narrows_* sch_fq sch_fq_codel sch_cake
set -u
failures=0
queues=$(ls /lab/modules/sch_narrows_*.ko | sed 's/.*sch_narrows_//; s/\.ko//' | tr '\n' ' ')
# Those that are BPF programs, too.
programs='cocoa cp lfq'
seed=${SEED:-1}
# The share of the whole that runs: all of it, or a small part.
quick=''

say() { printf '%s\n' "$*"; }
ok() { say "ok      $*"; }
bad() { say "FAILED  $*"; failures=$((failures + 1)); }
check() {
    name=$1; shift
    if "$@" >/tmp/out 2>&1; then ok "$name"; else bad "$name: $(cat /tmp/out)"; fi
}
# $1 times in a full run, $2 in a quick one.
runs() { if [ -n "$quick" ]; then echo "$2"; else echo "$1"; fi; }

load() { insmod /lab/modules/sch_narrows_$1.ko; }
packets() { /lab/packets "$@"; }

# v0 (10.0.0.1) here and v1 (10.0.0.2) in the namespace b; f0 and f1 have no addresses, so that nothing but our frames passes.
pair_of() {
    ip link add $10 type veth peer name $11 netns b
    for path in /proc/sys/net/ipv6/conf/$10/disable_ipv6; do [ ! -e $path ] || echo 1 >$path; done
    ip netns exec b sh -c "[ ! -e /proc/sys/net/ipv6/conf/$11/disable_ipv6 ] || echo 1 >/proc/sys/net/ipv6/conf/$11/disable_ipv6"
    if [ $1 = v ]; then
        ip addr add 10.0.0.1/24 dev v0
        ip -n b addr add 10.0.0.2/24 dev v1
    else
        # An address that nobody answers.
        ip link set $10 arp off
        ip -n b link set $11 arp off
    fi
    ip link set $10 up
    ip -n b link set $11 up
    if [ $1 = v ]; then
        ip neigh replace 10.0.0.2 lladdr "$(ip netns exec b cat /sys/class/net/v1/address)" dev v0
        # An answer to the other end's question would be counted as one packet more.
        ip -n b neigh replace 10.0.0.1 lladdr "$(cat /sys/class/net/v0/address)" dev v1
    fi
}

# Reads what tc says of a device's qdisc of this kind, all at once: $sent, $dropped and $waiting packets, and the sum $gone.
account() {
    tc -s qdisc show dev $1 | sed -n "/^qdisc $2 /,/backlog/p" >/tmp/account
    sent=$(sed -n 's/.*Sent [0-9]* bytes \([0-9]*\) pkt.*/\1/p' /tmp/account | head -1)
    dropped=$(sed -n 's/.*dropped \([0-9]*\).*/\1/p' /tmp/account | head -1)
    waiting=$(sed -n 's/.*backlog [^ ]* \([0-9]*\)p.*/\1/p' /tmp/account | head -1)
    gone=$((sent + dropped + waiting))
}
# Packets that wait at a qdisc.
waiting() { tc -s qdisc show dev $1 | sed -n "/^qdisc $2 /,/backlog/p" | sed -n 's/.*backlog [^ ]* \([0-9]*\)p.*/\1/p' | head -1; }
counter() { cat /sys/class/net/$1/statistics/$2; }
offered() { sed -n 's/^offered \([0-9]*\).*/\1/p' /tmp/sent; }
# What the kernel has allocated, KB.
memory() { awk '/^(Slab|VmallocUsed|Percpu):/ { sum += $2 } END { print sum }' /proc/meminfo; }

shaped() {
    tc qdisc add dev $1 root handle 1: htb default 1
    tc class add dev $1 parent 1: classid 1:1 htb rate $2 burst 1600 quantum 1514
}
# The rate of the class that `shaped` made.
reshaped() { tc class change dev $1 parent 1: classid 1:1 htb rate $2 burst 1600 quantum 1514; }

# UDP at far more than the rate, and a queue from which nothing leaves: an interval without a departure.
starved() {
    for queue in $queues; do
        load $queue
        for parent in $(runs 'htb hfsc' htb); do
            if [ $parent = htb ]; then shaped v0 10mbit; else
                tc qdisc add dev v0 root handle 1: hfsc default 1
                tc class add dev v0 parent 1: classid 1:1 hfsc sc rate 10mbit ul rate 10mbit
            fi
            tc qdisc add dev v0 parent 1:1 handle 10: $queue
            packets flood 10.0.0.2 "$(runs 2 0.05)" 1 1400 >/dev/null
            account v0 $queue
            before=$sent
            # 8 kbit/s: a packet in 1.4 s.
            if [ $parent = htb ]; then reshaped v0 8kbit; else
                tc class change dev v0 parent 1: classid 1:1 hfsc sc rate 8kbit ul rate 8kbit
            fi
            for flows in 1 40; do packets flood 10.0.0.2 "$(runs 2 0.05)" $flows 1400 >/dev/null; done
            tc -s class show dev v0 >/dev/null
            account v0 $queue
            check "$queue below $parent: flooded at full rate and without departures; dropped $dropped" \
                [ "$dropped" -gt 100 -a "$before" -gt 5 ]
            tc qdisc del dev v0 root
        done
        rmmod sch_narrows_$queue || bad "$queue is still in use"
    done
}

# Loaded, added, deleted and unloaded again, under a flood that never stops.
cycles() {
    count=$(runs 1000 20)
    (while [ ! -e /tmp/stop ]; do packets flood 10.0.0.2 0.5 8 1400 >/dev/null; done) &
    flooding=$!
    n=0
    before=''
    while [ $n -lt "$count" ]; do
        n=$((n + 1))
        queue=$(echo $queues | cut -d' ' -f$((n % $(echo $queues | wc -w) + 1)))
        load $queue || { bad "cycle $n: $queue cannot be loaded"; break; }
        if [ $((n / 4 % 2)) -eq 0 ]; then
            tc qdisc add dev v0 root $queue || bad "cycle $n: add"
        else
            shaped v0 20mbit
            tc qdisc add dev v0 parent 1:1 $queue || bad "cycle $n: add below htb"
        fi
        # Up to 20 ms, in which 33 packets leave at 20 Mbit/s.
        usleep $((n * 37 % $(runs 20000 5000)))
        [ $((n % 16)) -ne 0 ] || tc -s class show dev v0 >/dev/null
        tc qdisc del dev v0 root || bad "cycle $n: del"
        rmmod sch_narrows_$queue || { bad "cycle $n: $queue is still in use"; break; }
        # Caches have grown by then.
        [ $n -ne $((count / 10)) ] || before=$(memory)
    done
    touch /tmp/stop
    wait $flooding
    rm /tmp/stop
    sleep 1
    grown=$(($(memory) - before))
    check "loaded, added, deleted and unloaded $n times under load; the kernel's memory grew by $grown KB" [ $grown -lt 2000 ]
}

# What each option can become: bounds, and a value between.
values_of() {
    case $1 in
    cocoa | fq_cp | lfq) cat <<'LIST'
limit 1 2 100 10000000
quantum 256 1514 1048576
initial_quantum 0 1514 1073741824
LIST
    esac
    case $1 in
    cocoa) cat <<'LIST'
multiplier 0.01 1.25 100
max_increase 1 2 100
growth exact whole
max_guard 1us 1s 3600s
initial_limit 1 100 10000000
min_limit 1 4 10000000
learn on off
pacing on off on
LIST
    ;;
    lfq) cat <<'LIST'
policy tree rule
every 1 10 1000000
initial_limit 1 100 10000000
min_limit 1 4 10000000
pacing on off on
LIST
    ;;
    cp) cat <<'LIST'
limit 1 100 10000000 1b 10kb 1gib
threshold 0 5 10000000
max_congestion 1 1.2 100
bucket 1b 64kb 1gib auto
rate 1bit 10mbit 1000gbit auto
follow_drain on off
ecn on off
mtu 1 1514 65535 auto
LIST
    ;;
    fq_cp) cat <<'LIST'
flow_limit 1 100 10000000
threshold 0 5 10000000
max_congestion 1 1.2 100
bucket 1b 64kb 1gib auto
rate 1bit 10mbit 1000gbit auto
ecn on off
mtu 1 1514 65535 auto
LIST
    ;;
    fq_codel_fair) cat <<'LIST'
limit 1 2 100 10000000
quantum 256 1514 1048576
target 1us 5ms 100s
interval 1us 100ms 100s
ecn on off
newcomers 1 256 10000000
memory 1ms 1s 3600s
probation 0ms 100ms 3600s
ahead 0ms 500ms 3600s
rate 1bit 10mbit 1000gbit auto
mtu 1 1514 65535 auto
LIST
    ;;
    esac
}

changes() {
    for queue in $queues; do
        load $queue
        for place in root leaf; do
            if [ $place = root ]; then where='root'; else shaped v0 50mbit; where='parent 1:1'; fi
            tc qdisc add dev v0 $where handle 10: $queue || bad "add $queue"
            rm -f /tmp/stop
            (while [ ! -e /tmp/stop ]; do
                packets flood 10.0.0.2 0.1 20 1400 paced >/dev/null
                packets flood 10.0.0.2 0.1 20 100 >/dev/null
            done) &
            flooding=$!
            values_of $queue >/tmp/values
            changed=$(($(runs 3 1) * $(awk '{ n += NF - 1 } END { print n }' /tmp/values)))
            # One tc for all of them: to start it takes longer than to change an option.
            for round in $(seq 1 "$(runs 3 1)"); do
                while read -r option values; do
                    for value in $values; do
                        echo "qdisc change dev v0 $where handle 10: $queue $option $value"
                        usleep "$(runs 20000 2000)"
                        echo "class show dev v0"
                    done
                done </tmp/values
            done | tc -s -force -b - >/dev/null 2>/tmp/refused || bad "$queue as $place: $(cat /tmp/refused)"
            touch /tmp/stop
            wait $flooding
            # With the default options it carries packets again, after what still waits.
            tc qdisc replace dev v0 $where handle 11: $queue
            before=$(ip netns exec b cat /sys/class/net/v1/statistics/rx_packets)
            packets flood 10.0.0.2 0.02 1 1400 >/dev/null
            sleep 3
            after=$(ip netns exec b cat /sys/class/net/v1/statistics/rx_packets)
            left=$(waiting v0 $queue)
            above=0
            [ $place = root ] || above=$(waiting v0 htb)
            check "$queue as $place: $changed changes under traffic; then $((after - before)) packets passed, $left wait, $above above" \
                [ $((after - before)) -gt 5 -a "$left" -eq 0 -a "$above" -eq 0 ]
            tc qdisc del dev v0 root
        done
        rmmod sch_narrows_$queue || bad "$queue is still in use"
    done
}

# The device goes away while packets wait and more come.
removals() {
    for queue in $queues; do
        load $queue
        for n in $(seq 1 "$(runs 20 2)"); do
            if [ $((n % 2)) -eq 0 ]; then tc qdisc add dev v0 root $queue; else
                shaped v0 1mbit
                tc qdisc add dev v0 parent 1:1 $queue
            fi
            packets flood 10.0.0.2 0.1 20 1400 >/dev/null 2>&1 &
            flooding=$!
            usleep $((20000 + n * 3000))
            if [ $((n % 3)) -eq 0 ]; then
                ip -n b link del v1
            elif [ $((n % 3)) -eq 1 ]; then
                ip link set v0 down
                ip link set v0 up
                usleep 20000
                ip link del v0
            else
                ip link del v0
            fi
            wait $flooding
            pair_of v
        done
        check "$queue: its device was removed $n times while busy" rmmod sch_narrows_$queue
    done
}

# New flows without end: memory is what was allocated at first, and the packets that wait.
memory_bound() {
    for queue in $queues; do
        load $queue
        sleep 1
        at_first=$(memory)
        shaped f0 8kbit
        tc qdisc add dev f0 parent 1:1 handle 10: $queue
        added=$(($(memory) - at_first))
        count=$(runs 100000 12000)
        packets flows f0 $seed $count 200 >/dev/null
        once=$(($(memory) - at_first))
        packets flows f0 $((seed + 1)) $((2 * count)) 200 >/dev/null
        thrice=$(($(memory) - at_first))
        wait_now=$(waiting f0 $queue)
        # A packet of 200 bytes takes a structure of 256 and a buffer of 704, in the caches of the kernel; four times that if they are debugged.
        bound=$((added + wait_now * 4 + 2000))
        check "$queue: $((3 * count)) new flows; KB allocated: $added when added, $once after a third of them, $thrice at the end, $wait_now packets wait" \
            [ $thrice -le $bound -a $thrice -le $((once + 2000)) ]
        tc qdisc del dev f0 root
        rmmod sch_narrows_$queue || bad "$queue is still in use"
    done
}

# Malformed frames, and bundles that are to be segmented. What is sent arrives, or the device counted it as dropped.
frames() {
    for queue in $queues; do
        load $queue
        for one in $seed $(runs "$(seq $((seed + 1)) $((seed + 9)))" ''); do
            for what in plain gso; do
                for place in root leaf; do
                    if [ $place = root ]; then where='root'; else shaped f0 10gbit; where='parent 1:1'; fi
                    tc qdisc add dev f0 $where $queue
                    arrived=$(ip netns exec b cat /sys/class/net/f1/statistics/rx_packets)
                    refused=$(counter f0 tx_dropped)
                    packets frames f0 $one "$(runs 20000 1000)" ${what#plain} >/tmp/sent || bad "frames: $(cat /tmp/sent)"
                    sleep 2
                    arrived=$(($(ip netns exec b cat /sys/class/net/f1/statistics/rx_packets) - arrived))
                    refused=$(($(counter f0 tx_dropped) - refused))
                    account f0 $queue
                    result="$queue as $place, $what frames of seed $one: $(cat /tmp/sent); $sent sent, $dropped dropped, $waiting wait; $arrived arrived, $refused dropped by the device"
                    if [ $what = plain ]; then
                        check "$result" [ $gone -eq "$(offered)" -a $((arrived + refused)) -eq $sent ]
                    elif [ $queue = cp ] && [ $place = root ]; then
                        # A bundle that finds nothing waiting leaves as it is: what it counts as there is the sender's word.
                        check "$result" [ $arrived -gt 0 ]
                    else
                        # How many packets a bundle becomes is the kernel's decision. It drops some before the queue, which the device counts.
                        check "$result" [ $arrived -le $sent -a $((arrived + refused)) -ge $sent ]
                    fi
                    tc qdisc del dev f0 root
                done
            done
        done
        rmmod sch_narrows_$queue || bad "$queue is still in use"
    done
}

# Random messages, while packets pass.
options() {
    for queue in $queues; do
        load $queue
        for place in root 1:1; do
            rm -f /tmp/stop
            [ $place = root ] || shaped v0 20mbit
            (while [ ! -e /tmp/stop ]; do packets flood 10.0.0.2 0.2 20 1400 >/dev/null; done) &
            flooding=$!
            for one in $seed $(runs "$((seed + 1)) $((seed + 2))" ''); do
                packets options $queue v0 $place $one "$(runs 4000 200)" >/tmp/messages 2>&1
                status=$?
                check "$queue at $place, options of seed $one: $(tail -c 400 /tmp/messages)" [ $status -eq 0 ]
            done
            touch /tmp/stop
            wait $flooding
            tc qdisc del dev v0 root 2>/dev/null
        done
        rmmod sch_narrows_$queue || bad "$queue is still in use"
    done
}

# No packet is lost that was not counted.
accounts() {
    for queue in $queues; do
        load $queue
        for rate in 8kbit 20mbit; do
            shaped f0 $rate
            tc qdisc add dev f0 parent 1:1 handle 10: $queue
            arrived=$(ip netns exec b cat /sys/class/net/f1/statistics/rx_packets)
            packets flows f0 $seed "$(runs 50000 2000)" 1400 >/tmp/sent
            # The kernel reads how many wait before it reads how many were sent: one that leaves in between is counted twice. At the lower
            # rate none does; at the higher one the sum is held below, when all have left.
            account f0 $queue
            twice=0; [ $rate = 8kbit ] || twice=1
            check "$queue at $rate: $(offered) offered, $gone sent, dropped or waiting" \
                [ $gone -ge "$(offered)" -a $((gone - $(offered))) -le $twice ]
            # A limit that is lowered while packets wait.
            tc qdisc change dev f0 parent 1:1 handle 10: $queue limit 3
            # Between two reads a packet may leave; at the lower rate none does.
            above=$(waiting f0 htb)
            account f0 $queue
            check "$queue with a lower limit: $gone, $waiting wait, $above at its parent" \
                [ $gone -ge "$(offered)" -a $((gone - $(offered))) -le $twice -a $waiting -le 3 -a $((above - waiting)) -le 1 ]
            reshaped f0 1gbit
            sleep 2
            arrived=$(($(ip netns exec b cat /sys/class/net/f1/statistics/rx_packets) - arrived))
            account f0 $queue
            above=$(waiting f0 htb)
            check "$queue: $gone were sent or dropped, $sent sent, $arrived arrived, $waiting wait, $above at its parent" \
                [ $gone -eq "$(offered)" -a $arrived -eq $sent -a $waiting -eq 0 -a $above -eq 0 ]
            tc qdisc del dev f0 root
        done
        # Bundles: each segment counts.
        shaped v0 20mbit
        tc qdisc add dev v0 parent 1:1 handle 10: $queue
        packets gso 10.0.0.2 "$(runs 2000 50)" >/tmp/sent
        reshaped v0 8kbit
        account v0 $queue
        check "$queue: $(offered) segments of bundles offered, $gone sent, dropped or waiting" [ $gone -eq "$(offered)" ]
        above=$(waiting v0 htb)
        check "$queue: $waiting wait, $above at its parent" [ $above -eq $waiting ]
        tc qdisc del dev v0 root
        rmmod sch_narrows_$queue || bad "$queue is still in use"
    done
}

# Faults that were mended, each with the check that shows it.
mended() {
    # `cp` dropped for a lower limit in bytes, and its parent counted what was dropped for ever.
    load cp
    shaped v0 8kbit
    tc qdisc add dev v0 parent 1:1 handle 10: cp limit 100kb threshold 10000000
    packets fill 10.0.0.2 50 1 >/dev/null
    before=$(waiting v0 cp)
    tc qdisc change dev v0 parent 1:1 handle 10: cp limit 5kb threshold 10000000
    left=$(waiting v0 cp)
    above=$(waiting v0 htb)
    check "cp, a lower limit in bytes: $before waited, $left do now, $above at its parent" \
        [ "$before" -ge 40 -a "$left" -ge 2 -a "$left" -le 3 -a "$above" -eq "$left" ]
    tc qdisc del dev v0 root
    rmmod sch_narrows_cp

    # `cocoa` left a flow set aside when pacing was switched off: it waited for its time, here 9 s.
    load cocoa
    arrived=$(ip netns exec b cat /sys/class/net/v1/statistics/rx_packets)
    tc qdisc add dev v0 root handle 10: cocoa pacing on
    packets timed 10.0.0.2 5 9
    sleep 1
    before=$(waiting v0 cocoa)
    tc qdisc change dev v0 root handle 10: cocoa pacing off
    usleep 100000
    left=$(waiting v0 cocoa)
    arrived=$(($(ip netns exec b cat /sys/class/net/v1/statistics/rx_packets) - arrived))
    check "cocoa, pacing switched off: $before waited, $left do now, $arrived arrived" [ "$before" -eq 5 -a "$left" -eq 0 -a $arrived -eq 5 ]
    # A departure time beyond the horizon was no reason to refuse a packet without pacing; it kept its flow waiting when pacing was switched on.
    tc qdisc del dev v0 root
    shaped v0 8kbit
    tc qdisc add dev v0 parent 1:1 handle 10: cocoa pacing off
    packets timed 10.0.0.2 10 1000
    before=$(waiting v0 cocoa)
    tc qdisc change dev v0 parent 1:1 handle 10: cocoa pacing on
    reshaped v0 10mbit
    sleep 3
    left=$(waiting v0 cocoa)
    check "cocoa, pacing switched on: $before waited, $left do now" [ "$before" -ge 5 -a "$left" -eq 0 ]
    tc qdisc del dev v0 root
    rmmod sch_narrows_cocoa

    # `fq_codel_fair` told its parent of drops only while packets waited: not of those with which CoDel empties a queue. Before 6.16 it is
    # told with the next packet that waits, because htb does not bear it earlier.
    load fq_codel_fair
    shaped v0 8kbit
    tc qdisc add dev v0 parent 1:1 handle 10: fq_codel_fair target 1us interval 1us mtu 1
    packets fill 10.0.0.2 20 1 >/dev/null
    reshaped v0 1mbit
    sleep 3
    account v0 fq_codel_fair
    case $(uname -r) in
    [1-5].* | 6.[0-9].* | 6.1[0-5].*) packets fill 10.0.0.2 1 1 >/dev/null; sleep 1 ;;
    esac
    above=$(waiting v0 htb)
    check "fq_codel_fair, emptied by drops: $sent sent, $dropped dropped, $waiting wait, $above at its parent" \
        [ "$sent" -gt 0 -a "$dropped" -gt 0 -a "$waiting" -eq 0 -a "$above" -eq 0 ]
    tc qdisc del dev v0 root
    rmmod sch_narrows_fq_codel_fair
}

# The BPF programs, with the same packets.
bpf() {
    if ! command -v narrows >/dev/null; then say "skipped bpf: there is no program narrows (boot.sh -p)"; return; fi
    if ! narrows qdisc status >/tmp/out 2>&1; then say "skipped bpf: $(cat /tmp/out)"; return; fi
    for queue in $programs; do
        check "attach $queue" narrows qdisc attach v0 $queue --rate 10mbit
        for flows in 1 $(runs 2000 50); do packets flood 10.0.0.2 "$(runs 3 0.1)" $flows 1400 >/dev/null; done
        packets flood 10.0.0.2 0.2 20 100 paced >/dev/null
        account v0 "nw_$queue.*"
        check "$queue dropped $dropped packets" [ $dropped -gt 100 ]
        check "show" narrows qdisc show v0
        check "detach $queue, with packets that wait" narrows qdisc detach v0
        for one in $seed $(runs "$((seed + 1)) $((seed + 2))" ''); do
            check "attach $queue" narrows qdisc attach f0 $queue --rate 1gbit
            arrived=$(ip netns exec b cat /sys/class/net/f1/statistics/rx_packets)
            packets frames f0 $one "$(runs 20000 1000)" >/tmp/sent || bad "frames: $(cat /tmp/sent)"
            packets flows f0 $one "$(runs 50000 1000)" 1400 >/tmp/more
            sleep 2
            all=$(($(offered) + $(sed 's/[^0-9]//g' /tmp/more)))
            account f0 "nw_$queue.*"
            check "$queue: $all offered, $gone sent, dropped or waiting" [ $gone -eq $all ]
            check "detach $queue" narrows qdisc detach f0
        done
        for n in $(seq 1 "$(runs 20 1)"); do
            narrows qdisc attach v0 $queue --rate 1mbit >/tmp/out 2>&1 || bad "attach: $(cat /tmp/out)"
            packets flood 10.0.0.2 0.2 20 1400 >/dev/null 2>&1 &
            usleep 50000
            ip link del v0
            wait $!
            pair_of v
            narrows qdisc detach v0 >/dev/null 2>&1
        done
        ok "$queue: its device was removed $n times while busy"
    done
}

# Instructions per packet: a nanosecond is one.
cost() {
    for queue in fq fq_codel cake; do insmod /lab/modules/sch_$queue.ko 2>/dev/null; done
    for queue in $queues; do load $queue; done
    # What the kernel still does after its start is over by then.
    sleep 10
    for flows in 1 50; do
        for queue in noqueue pfifo fq_codel fq cake $queues; do
            [ $queue = noqueue ] || tc qdisc add dev v0 root $queue
            say "empty queue, $flows sockets, $queue: $(packets cost 10.0.0.2 "$(runs 20000 5000)" $flows)"
            [ $queue = noqueue ] || tc qdisc del dev v0 root
        done
        if command -v narrows >/dev/null; then
            for queue in $programs; do
                narrows qdisc attach v0 $queue >/dev/null || bad "attach $queue"
                say "empty queue, $flows sockets, BPF $queue: $(packets cost 10.0.0.2 "$(runs 20000 5000)" $flows)"
                narrows qdisc detach v0 >/dev/null
            done
        fi
    done
    [ -z "$quick" ] || return 0
    # Two packets for each flow are queued while nothing leaves; then all leave at once.
    for flows in 1 1000 10000; do
        count=$((flows * 2)); [ $flows -gt 1 ] || count=2000
        limit=40000
        for queue in pfifo fq_codel fq $queues; do
            case $queue in
            pfifo) options="limit $limit" ;;
            cp) options="limit $limit threshold 10000000" ;;
            fq_codel) options="limit $limit flows 65535 target 100s interval 100s memory_limit 1000000000" ;;
            fq) options="limit $limit flow_limit $limit buckets 32768 nopacing" ;;
            cocoa | lfq) options="limit $limit buckets 32768 orphan_mask 65535 initial_limit $limit" ;;
            fq_cp) options="limit $limit buckets 32768 orphan_mask 65535 flow_limit $limit threshold 10000000" ;;
            fq_codel_fair) options="limit $limit flows 32768 newcomers $limit target 100s interval 100s" ;;
            esac
            shaped v0 8kbit
            tc qdisc add dev v0 parent 1:1 $queue $options || bad "$queue $options"
            ip netns exec b /lab/packets drain $count >/tmp/drained &
            draining=$!
            usleep 200000
            filled=$(packets fill 10.0.0.2 $count $flows)
            wait_now=$(waiting v0 $queue)
            tc class change dev v0 parent 1: classid 1:1 htb rate 100gbit burst 100mb cburst 100mb quantum 1514
            wait $draining
            say "$flows flows, $queue: queued $filled ($wait_now wait), then $(cat /tmp/drained)"
            tc qdisc del dev v0 root
        done
    done
    for queue in $queues; do rmmod sch_narrows_$queue; done
}

# What the kernel says that it must not.
log_is_clean() {
    dmesg | grep -E 'BUG|WARNING|Oops|general protection|Call Trace|Redzone|Poison overwritten|Object already free|Padding overwritten|lockup|hung task|refcount_t|unregister_netdevice: waiting|scheduling while atomic|Out of memory|is nonlocal|UBSAN' >/tmp/complaints
    if [ -s /tmp/complaints ]; then
        bad "$1: the kernel's log has $(wc -l </tmp/complaints) complaints"
        dmesg | tail -80
        dmesg -c >/dev/null
    else
        ok "$1: the kernel's log has no warning"
    fi
}

case ${1:-} in
# Not all modules, unless `quick all`.
quick)
    quick=yes
    shift
    if [ "${1:-}" = all ]; then shift; else queues='cocoa cp lfq'; fi
    ;;
esac
ip netns add b
ip -n b link set lo up
pair_of v
pair_of f
for buffer in wmem_max wmem_default rmem_max; do echo 536870912 >/proc/sys/net/core/$buffer; done
if [ -e /sys/kernel/slab/skbuff_head_cache/red_zone ]; then
    say "slub_debug: red zones $(cat /sys/kernel/slab/skbuff_head_cache/red_zone), poison $(cat /sys/kernel/slab/skbuff_head_cache/poison)"
fi
for part in ${*:-starved cycles changes removals memory frames options accounts mended bpf}; do
    say "== $part"
    begun=$(date +%s)
    case $part in
    memory) memory_bound ;;
    *) $part ;;
    esac
    log_is_clean "$part"
    say "   $(($(date +%s) - begun)) s of the guest"
done
say "$failures failed"
[ $failures -eq 0 ]
