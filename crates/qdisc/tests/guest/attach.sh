#!/bin/sh
# What `narrows qdisc` does to interfaces, on a kernel that has BPF queueing disciplines.
#
# Run as root on a machine with nothing to lose, such as a virtual machine: Linux 6.16 or later with CONFIG_NET_SCH_BPF; iproute2,
# iperf3, jq and narrows (built with --features bpf) in PATH; veth, ifb, sch_ingress, cls_matchall and act_mirred loaded or
# loadable. Prints a line for each check, `ok` or `FAILED`, and ends with 1 if one failed. `attach.sh PART...` runs only those parts:
# rates refusals lifecycle killed pair ingress namespace watchdog autorate repeated; `attach.sh quick [PART...]` repeats less often.
#
# `boot.sh -k 7.2 -p NARROWS attach.sh` runs it in a virtual machine on a kernel of the lab's folder.
#
# loads: veth dummy ifb sch_ingress cls_matchall act_mirred sch_tbf sch_htb sch_cake
# programs: iperf3 jq
set -u
failures=0
# How often an attachment is killed, and how often one is made and undone.
kills=40 rounds=200
if [ "${1:-}" = quick ]; then shift; kills=5 rounds=10; fi

say() { printf '%s\n' "$*"; }
ok() { say "ok      $*"; }
bad() { say "FAILED  $*"; failures=$((failures + 1)); }

# check NAME COMMAND...: the command succeeds.
check() {
    name=$1; shift
    if "$@" >/tmp/out 2>&1; then ok "$name"; else bad "$name: $(cat /tmp/out)"; fi
}

# says NAME TEXT COMMAND...: the command's output contains the text.
says() {
    name=$1; text=$2; shift 2
    "$@" >/tmp/out 2>&1
    if grep -qF -- "$text" /tmp/out; then ok "$name"; else bad "$name: $(cat /tmp/out)"; fi
}

# refused CODE TEXT COMMAND...: the command ends with this code, and its message contains the text.
refused() {
    code=$1; text=$2; shift 2
    "$@" >/tmp/out 2>&1
    got=$?
    if [ $got -eq "$code" ] && grep -qF -- "$text" /tmp/out; then
        ok "refused: $text"
    else
        bad "\"$*\" ended with $got instead of $code, or does not say \"$text\": $(cat /tmp/out)"
    fi
}

# json FILTER: of what `narrows qdisc show --json` says of v0.
json() { narrows qdisc show v0 --json | jq ".[0] | $1"; }

# Packets that v0's root qdisc has sent.
sent_by_kernel() { tc -s -j qdisc show dev v0 | jq '.[0].packets'; }

# All that narrows may change about an interface, and the files of its own.
state() {
    for device in v0 w0; do
        ip -d link show dev $device | grep -oE 'qdisc [a-z_0-9.]+|gso_max_segs [0-9]+|gro_max_size [0-9]+|gro_ipv4_max_size [0-9]+'
        tc qdisc show dev $device
    done
    ip -o link show type ifb | cut -d: -f2
    find /sys/fs/bpf/narrows /run/narrows -mindepth 2 2>/dev/null | grep -v /lock
}
untouched() {
    state >/tmp/state
    if cmp -s /tmp/state /tmp/state.before; then ok "$1: the interfaces are as they were"; else
        bad "$1: the interfaces are not as they were: $(diff /tmp/state.before /tmp/state)"
    fi
}

# within NAME GOT WANTED SHARE
within() {
    if awk -v got="$2" -v wanted="$3" -v share="$4" 'BEGIN { exit !(got >= wanted * (1 - share) && got <= wanted * (1 + share)) }'
    then ok "$1: $2, wanted $3"; else bad "$1: $2, wanted $3 within $4"; fi
}

# The receiver's goodput of an iperf3 run, bit/s.
goodput() { iperf3 -J -c "$@" | jq '.end | (.sum_received // .sum).bits_per_second | round'; }

# Two veth pairs: v0 (10.0.0.1) and w0 (10.0.1.1) here, the other ends (.2) in the namespace b with a receiver at each.
topology() {
    ip netns add b
    ip link set lo up
    n=0
    for device in v w; do
        ip link add ${device}0 type veth peer name ${device}1 netns b
        ip addr add 10.0.$n.1/24 dev ${device}0
        ip link set ${device}0 up
        ip -n b addr add 10.0.$n.2/24 dev ${device}1
        ip -n b link set ${device}1 up
        ip netns exec b iperf3 -s -D -B 10.0.$n.2
        n=$((n + 1))
    done
    ip -n b link set lo up
    # Without this a sender of UDP waits for the queue, and nothing is dropped.
    for buffer in wmem_max wmem_default rmem_max; do echo 8388608 >/proc/sys/net/core/$buffer; done
    iperf3 -s -D -B 10.0.0.1
    sleep 1
    state >/tmp/state.before
}

# TCP and a UDP flood through 10 Mbit/s. A full-sized packet has 1514 bytes with its Ethernet header, 1448 of TCP and 1472 of UDP data.
rates() {
    for queue in cocoa cp lfq; do
        check "attach $queue" narrows qdisc attach v0 $queue --rate 10mbit
        before=$(json .sent.bytes)
        within "$queue, TCP" "$(goodput 10.0.0.2 -t 5)" $((10000000 * 1448 / 1514)) 0.02
        within "$queue, UDP at 40 Mbit/s" "$(goodput 10.0.0.2 -u -b 40M -l 1472 -t 5)" $((10000000 * 1472 / 1514)) 0.02
        after=$(json .sent.bytes)
        within "$queue, bytes in 10 s" $((after - before)) 12500000 0.06
        check "$queue: packets were dropped" [ "$(json '[.dropped[]] | add')" -gt 100 ]
        # The kernel sends packets of its own now and then (router solicitations), so ours is read between two of its counts.
        least=$(sent_by_kernel)
        ours=$(json .sent.packets)
        most=$(sent_by_kernel)
        check "$queue: $ours packets sent; the kernel counts $least before that and $most after it" \
            [ "$least" -gt 8000 -a "$ours" -ge "$least" -a "$ours" -le "$most" ]
        check "$queue: show" narrows qdisc show v0
        cat /tmp/out
        check "detach $queue" narrows qdisc detach v0
        untouched "$queue"
    done
    # With 100 bytes added to each, fewer packets leave.
    check "attach with an overhead" narrows qdisc attach v0 cocoa --rate 10mbit --overhead 100
    within "TCP with an overhead of 100" "$(goodput 10.0.0.2 -t 5)" $((10000000 * 1448 / 1614)) 0.02
    check "detach" narrows qdisc detach v0
    # A limit of 20 packets at 10 Mbit/s: what waits is never more.
    check "attach with parameters" narrows qdisc attach v0 cp:limit=20p --set threshold=10p --rate 10mbit
    (goodput 10.0.0.2 -u -b 40M -l 1472 -t 3 >/dev/null) &
    sleep 2
    waiting=$(json .backlog.packets)
    threshold=$(json .cp.threshold_bytes)
    wait $!
    check "1 to 20 packets wait: $waiting" [ "$waiting" -ge 1 ] && check "no more than 20" [ "$waiting" -le 20 ]
    check "the threshold is ten full-sized packets: $threshold" [ "$threshold" -eq 15140 ]
    check "detach" narrows qdisc detach v0
    # Flows wait each by itself.
    for queue in cocoa lfq; do
        check "attach $queue for several flows" narrows qdisc attach v0 $queue --rate 10mbit
        (goodput 10.0.0.2 -P 4 -t 4 >/dev/null) &
        sleep 3
        flows=$(json "[.$queue.flows[] | select(.backlog.packets > 0)] | length")
        narrows qdisc show v0
        timeout 3 narrows qdisc show v0 --watch | grep -E 'sent|waiting '
        wait $!
        check "$queue: four flows wait: $flows" [ "$flows" -ge 3 ]
        check "detach" narrows qdisc detach v0
    done
    untouched "all rates"
}

refusals() {
    refused 2 'there is no interface "nowhere"; there are: lo' narrows qdisc attach nowhere cocoa
    refused 2 'unknown queue "coca"' narrows qdisc attach v0 coca
    refused 2 'fq_codel is part of Linux; allowed: cocoa, cp, lfq; write `tc qdisc replace dev v0 root fq_codel`' narrows qdisc attach v0 fq_codel
    refused 2 'does not name exactly one queue' narrows qdisc attach v0 cocoa,cp
    refused 2 '--rate: cannot be 7kbit; allowed: from 8kbit to 100gbit' narrows qdisc attach v0 cocoa --rate 7kbit
    refused 2 '--rate' narrows qdisc attach v0 cocoa --rate fast
    refused 2 '--overhead: cannot be 300' narrows qdisc attach v0 cocoa --rate 1mbit --overhead 300
    refused 2 'unknown parameter "target" of queue "cocoa"' narrows qdisc attach v0 cocoa --set target=5ms
    refused 2 'ecn of queue "cp" cannot be "true" in the kernel' narrows qdisc attach v0 cp --set ecn=on
    refused 2 'limit of queue "cocoa" cannot be "16385p"' narrows qdisc attach v0 cocoa:limit=16385p
    refused 2 'nothing is attached to "v0"' narrows qdisc detach v0
    refused 2 'nothing is attached to "v0"' narrows qdisc show v0
    refused 2 'need CAP_NET_ADMIN, CAP_BPF, CAP_PERFMON: run narrows as root' su nobody -s /bin/sh -c "$(command -v narrows) qdisc attach v0 cocoa"
    untouched "refusals"
    tc qdisc add dev v0 root handle 7: pfifo limit 77
    refused 2 'v0 has a pfifo at its root (7:)' narrows qdisc attach v0 cocoa
    check "--replace" narrows qdisc attach v0 cocoa --replace
    check "detach" narrows qdisc detach v0
    check "the pfifo is back with its options" [ "$(tc qdisc show dev v0 | grep -c 'pfifo 7: root .*limit 77p')" -eq 1 ]
    tc qdisc del dev v0 root
    tc qdisc add dev v0 clsact
    refused 2 'v0 has a clsact at its ingress' narrows qdisc attach v0 cocoa --ifb
    tc qdisc del dev v0 clsact
    untouched "refusals with other qdiscs"
}

lifecycle() {
    check "attach" narrows qdisc attach v0 cocoa --rate 10mbit
    refused 2 'has cocoa at its egress already' narrows qdisc attach v0 cp
    says "status names it" 'v0 egress cocoa' narrows qdisc status
    says "packets come one by one" 'gso_max_segs 1 ' ip -d link show v0
    tc qdisc del dev v0 root
    says "show says that the qdisc is gone" 'not attached any more' narrows qdisc show v0
    says "attach after somebody removed the qdisc" 'has been undone' narrows qdisc attach v0 cp
    check "detach" narrows qdisc detach v0
    untouched "a removed qdisc"
    ip link set w0 down
    check "attach to an interface that is down" narrows qdisc attach w0 cocoa --rate 1mbit
    check "detach from it" narrows qdisc detach w0
    check "attach again" narrows qdisc attach w0 cocoa --rate 1mbit
    ip link set w0 up
    says "it is there when the interface is up" nw_cocoa tc qdisc show dev w0
    check "detach" narrows qdisc detach w0
    untouched "an interface that was down"
    ip link add x.7 type dummy
    check "attach to an interface with a dot" narrows qdisc attach x.7 cocoa
    ip link del x.7
    ip link add x.7 type dummy
    check "attach after the interface was made anew" narrows qdisc attach x.7 cp
    check "detach" narrows qdisc detach x.7
    ip link del x.7
    untouched "an interface that went away"
}

# An attachment that dies at any moment is undone by the next one, or by `detach`.
killed() {
    n=0
    survived=0
    while [ $n -lt $kills ]; do
        n=$((n + 1))
        narrows qdisc attach v0 cocoa --rate 10mbit $1 >/tmp/killed 2>&1 &
        pid=$!
        # At most 240 ms: in a virtual machine whose instructions take a nanosecond all of it takes about that long.
        sleep "$(awk "BEGIN { print $n * 0.24 / $kills }")"
        kill -9 $pid 2>/dev/null
        wait $pid 2>/dev/null
        [ $? -eq 0 ] && survived=$((survived + 1))
        if [ $((n % 2)) -eq 0 ] && ! narrows qdisc attach v0 cp $1 >/tmp/out 2>&1; then
            grep -q already /tmp/out || bad "attach after kill -9: $(cat /tmp/out)"
        fi
        narrows qdisc detach v0 >/tmp/out 2>&1 || grep -q 'nothing is attached' /tmp/out || bad "detach after kill -9: $(cat /tmp/out)"
        state >/tmp/state
        cmp -s /tmp/state /tmp/state.before || { bad "kill -9 number $n: $(diff /tmp/state.before /tmp/state)"; break; }
    done
    untouched "$kills times kill -9 ($survived had finished) $1"
}

# Two interfaces, two programs, at once.
pair() {
    check "attach to the first" narrows qdisc attach v0 cocoa --rate 10mbit
    check "attach to the second" narrows qdisc attach w0 cp --rate 5mbit
    goodput 10.0.0.2 -t 5 >/tmp/first &
    second=$(goodput 10.0.1.2 -t 5)
    wait $!
    within "the first" "$(cat /tmp/first)" $((10000000 * 1448 / 1514)) 0.02
    within "the second" "$second" $((5000000 * 1448 / 1514)) 0.02
    check "show lists both" [ "$(narrows qdisc show | grep -c shaped)" -eq 2 ]
    check "detach the first" narrows qdisc detach v0
    says "the second is still there" nw_cp tc qdisc show dev w0
    check "detach the second" narrows qdisc detach w0
    untouched "two interfaces"
}

# What v0 receives.
ingress() {
    check "attach --ifb" narrows qdisc attach v0 cocoa --rate 8mbit --ifb
    check "attach to what it sends, too" narrows qdisc attach v0 cocoa --rate 4mbit
    within "received" "$(goodput 10.0.0.2 -R -t 5)" $((8000000 * 1448 / 1514)) 0.02
    within "sent" "$(goodput 10.0.0.2 -t 5)" $((4000000 * 1448 / 1514)) 0.02
    check "show" narrows qdisc show v0
    cat /tmp/out
    check "detach --ifb" narrows qdisc detach v0 --ifb
    says "what it sends is still shaped" nw_cocoa tc qdisc show dev v0
    check "attach --ifb again" narrows qdisc attach v0 cp --rate 8mbit --ifb
    check "detach both" narrows qdisc detach v0
    untouched "ingress"
}

namespace() {
    refused 2 'nsenter' ip netns exec b narrows qdisc attach v1 cocoa
    check "attach in another namespace" nsenter --net=/run/netns/b narrows qdisc attach v1 cocoa --rate 6mbit
    within "from the namespace" "$(goodput 10.0.0.2 -R -t 5)" $((6000000 * 1448 / 1514)) 0.02
    says "here nothing is attached" 'attached    nothing' narrows qdisc status
    check "detach in the namespace" nsenter --net=/run/netns/b narrows qdisc detach v1
    untouched "a namespace"
}

repeated() {
    n=0
    used=$(grep -E '^(Slab|VmallocUsed|Percpu)' /proc/meminfo | tr -s ' ' | cut -d' ' -f2 | paste -sd+ | sed 's/^/echo $((/; s/$/))/' | sh)
    while [ $n -lt $rounds ]; do
        n=$((n + 1))
        queue=cocoa; [ $((n % 2)) -eq 0 ] && queue=cp
        narrows qdisc attach v0 $queue --rate 10mbit >/tmp/out 2>&1 || { bad "attach number $n: $(cat /tmp/out)"; break; }
        ping -c 1 -W 1 10.0.0.2 >/dev/null || bad "no packet passes in round $n"
        narrows qdisc detach v0 >/tmp/out 2>&1 || { bad "detach number $n: $(cat /tmp/out)"; break; }
    done
    sleep 1
    now=$(grep -E '^(Slab|VmallocUsed|Percpu)' /proc/meminfo | tr -s ' ' | cut -d' ' -f2 | paste -sd+ | sed 's/^/echo $((/; s/$/))/' | sh)
    untouched "$n times"
    check "the kernel's memory grew by $((now - used)) KB in $n times" [ $((now - used)) -lt 8000 ]
}

# A packet of 8042 bytes takes 8 s at 8 kbit/s: for a watchdog of 2 s nothing moves.
watchdog() {
    ip link set v0 mtu 9000
    ip -n b link set v1 mtu 9000
    narrows qdisc attach v0 cp --rate 8kbit --watchdog=2s >/tmp/dog 2>&1 &
    dog=$!
    sleep 1
    ping -c 5 -i 0.2 -s 8000 -W 1 10.0.0.2 >/dev/null
    wait $dog
    code=$?
    check "the watchdog of a queue that stands still ends with 1: $code" [ $code -eq 1 ]
    says "it says why" 'so it was detached' cat /tmp/dog
    untouched "a watchdog that detached"
    ip link set v0 mtu 1500
    ip -n b link set v1 mtu 1500
    narrows qdisc attach v0 cocoa --rate 10mbit --watchdog >/tmp/dog 2>&1 &
    dog=$!
    goodput 10.0.0.2 -t 4 >/dev/null
    sleep 4
    check "a queue that moves, or is empty, stays" kill -0 $dog
    kill -TERM $dog
    wait $dog
    code=$?
    check "it detaches on SIGTERM and ends with 0: $code" [ $code -eq 0 ]
    untouched "a watchdog that was ended"
}

# A modem behind v0 that carries 20, then 5, then 20 Mbit/s, with a buffer of 500 kB: v0 (10.0.2.1) to m1 in the namespace m, which forwards to
# the namespace f (10.0.3.2). The shaper's rate has to follow; what waits in the modem is what tbf shows.
modem_up() {
    ip netns add m; ip netns add f
    ip link add s0 type veth peer name m1 netns m
    ip -n m link add m2 type veth peer name f1 netns f
    ip addr add 10.0.2.1/24 dev s0; ip link set s0 up
    ip -n m addr add 10.0.2.2/24 dev m1; ip -n m link set m1 up
    ip -n m addr add 10.0.3.1/24 dev m2; ip -n m link set m2 up
    ip -n f addr add 10.0.3.2/24 dev f1; ip -n f link set f1 up
    ip -n f route add default via 10.0.3.1
    ip route add 10.0.3.0/24 via 10.0.2.2
    ip addr add fd00:2::1/64 dev s0 nodad
    ip -n m addr add fd00:2::2/64 dev m1 nodad; ip -n m addr add fd00:3::1/64 dev m2 nodad
    ip -n f addr add fd00:3::2/64 dev f1 nodad
    ip -n f -6 route add default via fd00:3::1
    ip -6 route add fd00:3::/64 via fd00:2::2
    ip netns exec m sh -c 'echo 1 >/proc/sys/net/ipv4/ip_forward; echo 1 >/proc/sys/net/ipv6/conf/all/forwarding'
    ip netns exec f iperf3 -s -D
    modem add 20
    sleep 0.5
}
modem() { ip netns exec m tc qdisc $1 dev m2 root tbf rate $2mbit burst 5000 limit 500000; }
modem_down() { ip netns del m; ip netns del f; ip link del s0 2>/dev/null; }

# The shaper's rate, kbit/s, and what waits in the modem, kB.
shaped() {
    case $1 in
    cake) tc -j qdisc show dev s0 | jq '.[0].options.bandwidth * 8 / 1000 | round' ;;
    *) narrows qdisc show s0 --json | jq '.[0].rate_bit_s / 1000 | round' ;;
    esac
}
modem_waits() { ip netns exec m tc -s -j qdisc show dev m2 | jq '.[0].backlog / 1000 | round'; }

# wait_for TEXT FILE: until the file contains the text, for 5 s.
wait_for() {
    tries=0
    until grep -qF "$1" "$2" || [ $tries -ge 100 ]; do sleep 0.05; tries=$((tries + 1)); done
}

# follows NAME LINK SECONDS [LOOKS]: after this time the rate is the link's within 15 %, and less than 40 ms wait in the modem. It looks again up
# to LOOKS times, each 0.2 s long, and says how often it did.
follows() {
    sleep $3
    tries=0
    while :; do
        rates='' most=0
        for look in 1 2; do
            sleep 0.1
            rates="$rates $(shaped $1)"
            waits=$(modem_waits)
            [ "$waits" -gt $most ] && most=$waits
        done
        mean=$(echo $rates | tr ' ' '\n' | awk '{ sum += $1 } END { printf "%d", sum / NR }')
        off=$((mean - $2 * 1000))
        [ ${off#-} -gt $(($2 * 150)) ] && [ $tries -lt ${4:-0} ] || break
        tries=$((tries + 1))
    done
    say "        $1, link $2 Mbit/s: shaped to$rates kbit/s after $3 s and $tries more looks; at most $most kB in the modem"
    within "$1 follows $2 Mbit/s" "$mean" $(($2 * 1000)) 0.15
    check "$1: less than 40 ms wait in the modem: $((most * 8 / $2)) ms" [ $((most * 8 / $2)) -lt 40 ]
}

autorate() {
    modem_up
    refused 2 '--min: cannot be 9mbit; allowed: at most --max, which is 5mbit' narrows qdisc attach s0 cocoa --autorate --min 9mbit --max 5mbit
    refused 2 'Write --min 5mbit --max 100mbit' narrows qdisc attach s0 cocoa --autorate
    refused 2 'unknown autorate "drian"; allowed: drain, cake_autorate (did you mean "drain"?)' narrows qdisc attach s0 cocoa --autorate drian --min 1mbit --max 5mbit
    refused 2 '--reflector: s0 has no default route' narrows qdisc attach s0 cocoa --autorate --min 1mbit --max 5mbit
    refused 2 '10.0.2.77 answers neither' narrows qdisc attach s0 cocoa --autorate --min 1mbit --max 5mbit --reflector 10.0.2.77
    refused 2 "probes would wait" narrows qdisc attach s0 cp --autorate --min 1mbit --max 5mbit --reflector 10.0.3.2
    # ICMP's timestamps, and over IPv6, which has none, half of the round trip.
    for with in 'cocoa 10.0.3.2' 'cake 10.0.3.2' 'cocoa fd00:3::2'; do
        queue=${with% *} reflector=${with#* }
        narrows qdisc attach s0 $queue --autorate --rate 10mbit --min 2mbit --max 50mbit --reflector $reflector >/tmp/auto 2>&1 &
        auto=$!
        # A connection that is open before `attach` sends joined packets.
        wait_for 'is attached' /tmp/auto
        iperf3 -c 10.0.3.2 -t 60 >/tmp/iperf 2>&1 &
        traffic=$!
        # Once, beside other tests, the rate was at 7 to 12 Mbit/s here; why is not known.
        follows $queue 20 1.3 20
        modem change 5
        follows $queue 5 1
        modem change 20
        [ $queue = cake ] || follows $queue 20 1.3
        kill $traffic; wait $traffic 2>/dev/null
        ip link set s0 down; sleep 0.2; ip link set s0 up
        ip route replace 10.0.3.0/24 via 10.0.2.2
        ip addr add fd00:2::1/64 dev s0 nodad; ip -6 route replace fd00:3::/64 via fd00:2::2
        check "$queue: packets pass after the link was down" ping -c 2 -i 0.2 -W 1 10.0.3.2
        check "$queue: --autorate has survived it" kill -0 $auto
        kill -TERM $auto; wait $auto; code=$?
        check "$queue: it detaches on SIGTERM and ends with 0: $code" [ $code -eq 0 ]
        says "$queue: it says so" 'is detached' cat /tmp/auto
        check "$queue: nothing is left" [ "$(tc qdisc show dev s0 | grep -cE 'cake|nw_|htb')" -eq 0 ]
    done
    cat /tmp/auto
    # The rules of cake-autorate: up by at most 4 % in 200 ms, down when half of a round trip is 30 ms longer for half of six probes.
    narrows qdisc attach s0 cake --autorate cake_autorate --rate 10mbit --min 2mbit --max 50mbit --reflector 10.0.3.2 >/tmp/auto 2>&1 &
    auto=$!
    wait_for 'is attached' /tmp/auto
    iperf3 -c 10.0.3.2 -t 60 >/tmp/iperf 2>&1 &
    traffic=$!
    sleep 8
    rate=$(shaped cake)
    check "cake_autorate rises to what 20 Mbit/s carry: $rate kbit/s" [ "$rate" -ge 14000 ]
    modem change 5
    sleep 8
    rate=$(shaped cake)
    check "cake_autorate falls to about 5 Mbit/s: $rate kbit/s" [ "$rate" -le 7500 ]
    modem change 20
    kill $traffic; wait $traffic 2>/dev/null
    kill -TERM $auto; wait $auto
    narrows qdisc attach s0 cocoa --autorate --min 2mbit --max 50mbit --reflector 10.0.3.2 >/tmp/auto 2>&1 &
    auto=$!
    wait_for 'is attached' /tmp/auto
    sleep 0.5
    ip link del s0
    wait $auto; code=$?
    check "it ends with 1 when the interface vanishes: $code" [ $code -eq 1 ]
    says "it says so" 's0 is gone, and the queue with it' cat /tmp/auto
    modem_down
    untouched "autorate"
}

topology
for part in ${*:-rates refusals lifecycle killed pair ingress namespace watchdog autorate repeated}; do
    say "== $part"
    case $part in
    killed) killed ''; killed --ifb ;;
    *) $part ;;
    esac
done
say "$failures failed"
[ $failures -eq 0 ]
