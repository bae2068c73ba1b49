#!/bin/sh
# Sends a trace of arrivals through a discipline that is loaded, and prints what the discipline was asked and what it did, for `tests/replay`.
#
#   boot.sh -k 7.2 -f TRACE [-p NARROWS] replay.sh RATE RUN...
#
# A RUN is MODULE:ENQUEUE:DEQUEUE:OPTIONS: the module `sch_MODULE` below htb with that rate (bit/s) and these options (commas for blanks), where its functions
# have read the clock (FUNCTION+OFFSET); or bpf:QUEUE:OPTIONS, a program that `narrows qdisc attach` puts at the root with these options, each after a
# `--set`. Kernel probes tell:
#
#   = NAME              a run begins
#   e NS                a packet arrived and was queued, this long after the event before by the discipline's own reading of the clock
#   r NS                a packet arrived and was refused
#   d NS PACKET         a packet left: the number of its arrival, from zero on
#   n NS                none left that could have
#   x PACKET            a BPF program dropped this packet, perhaps the one that has just arrived
#   ! WORDS             the kernel's counters in the end
#
# Packets arrive in the order of the trace, so that the nth arrival is the trace's nth line.
#
# loads: veth sch_htb
# carries: sch_narrows_*
set -eu
rate=$1
shift
mount -t tracefs tracefs /sys/kernel/tracing
tracing=/sys/kernel/tracing
ip netns add b
ip link add f0 type veth peer name f1 netns b
echo 1 >/proc/sys/net/ipv6/conf/f0/disable_ipv6
ip link set f0 arp off up
ip -n b link set f1 arp off up
echo mono >$tracing/trace_clock
echo 16384 >$tracing/buffer_size_kb

probes() {
    echo 0 >$tracing/events/enable
    echo >$tracing/kprobe_events
    for probe; do echo "$probe" >>$tracing/kprobe_events; done
    echo >$tracing/trace
    [ $# -eq 0 ] || echo 1 >$tracing/events/replay/enable
}
# Prints what an awk program says of the probes' events: e is an event's name, v its value. Without regular expressions, which take most of the time.
events() {
    grep -v '^#' $tracing/trace | awk "
        function since(t) { d = t - last; last = t; return sprintf(\"%.0f\", d) }
        { e = substr(\$0, index(\$0, \": \") + 2); split(e, sides, \"=\"); v = sides[2]; e = substr(e, 1, index(e, \":\") - 1) }
        $1"
}

for run; do
    kind=${run%%:*}
    rest=${run#*:}
    echo "= $run"
    if [ "$kind" = bpf ]; then
        queue=${rest%%:*}
        sets=''
        for option in $(echo "${rest#*:}" | tr , ' '); do sets="$sets --set $option"; done
        # The programs tell few flows apart. With other ports than these they do where two fell together.
        for port in 1000 2000 3000; do
            narrows qdisc attach f0 $queue --rate ${rate}bit $sets >/dev/null
            grep -v '#' /lab/trace | awk -F , '!seen[$2]++ { print "1000," $2 ",60" }' >/tmp/each
            /lab/packets replay f0 /tmp/each $port
            sleep 1
            known=$(narrows qdisc show f0 | sed -n 's/.*flows *\([0-9]*\) known.*/\1/p')
            narrows qdisc detach f0 >/dev/null
            [ "$known" -ne "$(wc -l </tmp/each)" ] || break
        done
        narrows qdisc attach f0 $queue --rate ${rate}bit $sets >/dev/null
        # What the programs call, with the packet. The clock is read before each of them.
        probes 'r:replay/now bpf_ktime_get_ns at=$retval:u64' 'p:replay/arrival bpf_skb_get_hash skb=%di:x64' \
            'p:replay/drop bpf_qdisc_skb_drop skb=%di:x64' 'p:replay/departure bpf_qdisc_bstats_update skb=%si:x64'
        /lab/packets replay f0 /lab/trace $port
        sleep 3
        events '
            e == "now" { now = v }
            e == "arrival" { print "e", since(now); number[v] = came++ }
            e == "drop" { print "x", number[v] }
            e == "departure" { print "d", since(now), number[v] }'
        echo "! ports from $port"
        narrows qdisc show f0 | sed 's/^/! /'
        narrows qdisc detach f0 >/dev/null
    else
        insmod /lab/modules/sch_$kind.ko
        enqueue=${rest%%:*}
        rest=${rest#*:}
        dequeue=${rest%%:*}
        tc qdisc add dev f0 root handle 1: htb default 1
        tc class add dev f0 parent 1: classid 1:1 htb rate $rate burst 1600 quantum 1514
        tc qdisc add dev f0 parent 1:1 handle 10: ${kind#narrows_} $(echo "${rest#*:}" | tr , ' ')
        probes "p:replay/skb sch_$kind:${enqueue%+*} skb=%di:x64" "p:replay/arrived sch_$kind:$enqueue at=%ax:u64" \
            "r:replay/result sch_$kind:${enqueue%+*} result=\$retval:x64" \
            "p:replay/asked sch_$kind:$dequeue at=%ax:u64" "r:replay/sent sch_$kind:${dequeue%+*} skb=\$retval:x64"
        /lab/packets replay f0 /lab/trace 1000
        sleep 3
        events '
            e == "skb" { number[v] = came++ }
            e == "arrived" { now = v }
            e == "result" { print v == "0x0" ? "e" : "r", since(now) }
            e == "asked" { asked = v }
            e == "sent" && asked { if (v == "0x0") print "n", since(asked); else print "d", since(asked), number[v]; asked = 0 }'
        tc -s qdisc show dev f0 | sed 's/^/! /'
        tc qdisc del dev f0 root
    fi
    probes
done
