#!/bin/sh
# Records the arrivals that `tests/replay` plays again: TCP (CUBIC, Reno, BBR), and UDP in small and in large packets, at a queue of 10 Mbit/s, for
# five seconds. Prints a line for each packet that the queue is given: seconds, bytes with the link header, source port, protocol.
#
#   boot.sh -k 7.2 record.sh >LOG
#
# awk makes crates/qdisc/tests/replay/arrivals.csv of it, which has the first 4500; flows are numbered in the order in which they begin:
#
#   awk '/^@/ && $5 ~ /^(6|17)$/ { if (!($4 in f)) f[$4] = n++; t = int($2 * 1e6 + 0.5); print (last ? t - last : 0) "," f[$4] "," $3; last = t }' LOG
#
# loads: veth sch_htb sch_netem tcp_bbr
# programs: iperf3
set -eu
mount -t tracefs tracefs /sys/kernel/tracing
ip netns add b
ip link add v0 type veth peer name v1 netns b
ip link set v0 gso_max_segs 1
ip -n b link set v1 gso_max_segs 1
ip addr add 10.0.0.1/24 dev v0
ip -n b addr add 10.0.0.2/24 dev v1
ip link set v0 up
ip -n b link set v1 up
tc qdisc add dev v0 root handle 1: htb default 1
tc class add dev v0 parent 1: classid 1:1 htb rate 10mbit burst 1600 quantum 1514
tc qdisc add dev v0 parent 1:1 handle 10: pfifo limit 60
tc -n b qdisc add dev v1 root netem delay 20ms limit 10000
for port in 5201 5202 5203 5204 5205; do ip netns exec b iperf3 -s -D -p $port >/dev/null; done
sleep 1
cd /sys/kernel/tracing
echo mono >trace_clock
echo 16384 >buffer_size_kb
# Of skb (%di): qdisc_skb_cb.pkt_len; in the packet, which skb->data points to, the source port and the protocol. The offsets are those of 7.2.
echo 'p:record/arrival pfifo_enqueue len=+40(%di):u32 port=+34(+208(%di)):u16 protocol=+23(+208(%di)):u8' >kprobe_events
echo 1 >events/record/enable
iperf3 -c 10.0.0.2 -p 5201 -t 5 -C cubic >/dev/null &
iperf3 -c 10.0.0.2 -p 5202 -u -b 1M -l 172 -t 5 >/dev/null &
sleep 1
iperf3 -c 10.0.0.2 -p 5203 -t 4 -C reno >/dev/null &
iperf3 -c 10.0.0.2 -p 5204 -t 2 -C bbr >/dev/null &
sleep 1.5
iperf3 -c 10.0.0.2 -p 5205 -u -b 6M -l 1400 -t 1 >/dev/null &
wait
echo 0 >events/record/enable
sed -n 's/.* \([0-9.]*\): arrival: (.*) len=\([0-9]*\) port=\([0-9]*\) protocol=\([0-9]*\)/@ \1 \2 \3 \4/p' trace
