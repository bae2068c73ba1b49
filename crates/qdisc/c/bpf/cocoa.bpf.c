// SPDX-License-Identifier: GPL-2.0-only
/*
 * cocoa.h as a BPF qdisc, without pacing. Memory: 16 384 nodes of 24 B, 1024 flows of 136 B and 40 B for the addresses
 * that they are shown with.
 */
#include "shell.bpf.h"

/* Flows that are told apart, and buckets to search: powers of two. */
#define FLOWS 1024u

#define NW_FLOW_LINKS struct pkt_chain chain;
#define nw_head_depart(s, slot) ((void)(s), (void)(slot), 0ull)
#define NW_FLOW_AT(s, n) (&flows[(n) & (FLOWS - 1)])
#define NW_BUCKET_AT(s, n) (&buckets[(n) & (FLOWS - 1)])
#define NW_DELAYED_AT(s, n) (&delayed[(n) & 0])
#define NW_FLOW_STORE                      \
	struct nw_flow flows[FLOWS];        \
	static u32 buckets[FLOWS];          \
	static struct nw_delayed delayed[1];
#include "narrows/cocoa.h"

/* opt_multiplier and so on. */
NW_COCOA_PARAMS(NW_CONSTANT)

/* Remember the addresses of flows, to show them. */
const volatile bool name_flows = true;

/* Where a flow's first packet came from and went to; ports are in network byte order. */
struct flow_name {
	/* 4, 6, or zero for what is no IP. */
	u8 version;
	u8 protocol;
	u16 source_port;
	u16 destination_port;
	u8 source[16];
	u8 destination[16];
};

struct nw_cocoa cocoa;
struct flow_name names[FLOWS];

/* Numbers of linux/if_ether.h, in network byte order, and of linux/in.h. */
#define ETH_P_IP __builtin_bswap16(0x0800)
#define ETH_P_IPV6 __builtin_bswap16(0x86dd)
#define IPPROTO_TCP 6
#define IPPROTO_UDP 17
/* More fragments, or an offset: such a packet has no ports, and neither has its hash. */
#define IP_FRAGMENT __builtin_bswap16(0x3fff)

static __always_inline void name_flow(const struct sk_buff *skb, struct flow_name *name)
{
	const unsigned char *header = skb->head + skb->network_header;
	u8 ip[40] = { 0 };
	u16 ports[2] = { 0 };
	u32 len = 40;

	__builtin_memset(name, 0, sizeof(*name));
	if (bpf_probe_read_kernel(ip, sizeof(ip), header))
		return;
	if (skb->protocol == ETH_P_IP) {
		name->version = 4;
		name->protocol = ip[9];
		__builtin_memcpy(name->source, ip + 12, 4);
		__builtin_memcpy(name->destination, ip + 16, 4);
		len = (ip[0] & 15) * 4;
		if (*(u16 *)(ip + 6) & IP_FRAGMENT)
			return;
	} else if (skb->protocol == ETH_P_IPV6) {
		name->version = 6;
		name->protocol = ip[6];
		__builtin_memcpy(name->source, ip + 8, 16);
		__builtin_memcpy(name->destination, ip + 24, 16);
	} else {
		return;
	}
	if (name->protocol != IPPROTO_TCP && name->protocol != IPPROTO_UDP)
		return;
	if (bpf_probe_read_kernel(ports, sizeof(ports), header + len))
		return;
	name->source_port = ports[0];
	name->destination_port = ports[1];
}

/* Has a flow begun with the packet that arrives now? */
static __always_inline bool has_begun(const struct nw_flow *flow, u64 now)
{
	return flow->state.first && flow->state.interval_start == now && !flow->packets;
}

SEC("struct_ops/cocoa_enqueue")
int BPF_PROG(cocoa_enqueue, struct sk_buff *skb, struct Qdisc *sch, struct bpf_sk_buff_ptr *to_free)
{
	u32 len = packet_len(skb), slot = 0, number;
	u64 now = bpf_ktime_get_ns();
	enum nw_reason reason = NW_QUEUE_FULL;
	enum nw_verdict verdict;
	struct sk_buff *old;
	struct pkt_node *node;

	verdict = nw_cocoa_enqueue(&cocoa, bpf_skb_get_hash(skb), 0, false, now, &slot, &reason);
	if (verdict != NW_ACCEPT)
		goto drop;
	if (name_flows && has_begun(NW_FLOW_AT(NULL, slot), now))
		name_flow(skb, &names[slot & (FLOWS - 1)]);
	node = take_node(&number);
	if (!node)
		goto drop;
	node->len = len;
	old = bpf_kptr_xchg(&node->skb, skb);
	if (old)
		bpf_qdisc_skb_drop(old, to_free);
	push(&NW_FLOW_AT(NULL, slot)->chain, number, node);
	nw_cocoa_queued(&cocoa, slot, len, now);
	account_queued(sch, len);
	return NET_XMIT_SUCCESS;
drop:
	dropped[reason & 7]++;
	sch->qstats.drops++;
	bpf_qdisc_skb_drop(skb, to_free);
	if (verdict != NW_DROP_AND_TRIM)
		return NET_XMIT_DROP;
	nw_for(trimmed, NW_NODES) {
		if (!nw_cocoa_has_surplus(&cocoa, slot))
			break;
		node = pop_back(&NW_FLOW_AT(NULL, slot)->chain, &number);
		if (!node)
			break;
		old = bpf_kptr_xchg(&node->skb, NULL);
		len = node->len;
		free_node(number, node);
		nw_cocoa_trimmed(&cocoa, slot, len);
		account_removed(sch, len);
		dropped[reason & 7]++;
		sch->qstats.drops++;
		if (old)
			bpf_qdisc_skb_drop(old, to_free);
	}
	return NET_XMIT_DROP;
}

SEC("struct_ops/cocoa_dequeue")
struct sk_buff *BPF_PROG(cocoa_dequeue, struct Qdisc *sch)
{
	u32 slot = 0, number, len;
	u64 now, time = 0;
	struct sk_buff *skb;
	struct pkt_node *node;

	if (!cocoa.sched.packets)
		return NULL;
	now = bpf_ktime_get_ns();
	if (is_shaped(sch, now))
		return NULL;
	if (nw_cocoa_next(&cocoa, now, &slot, &time) != NW_PACKET)
		return NULL;
	node = pop_front(&NW_FLOW_AT(NULL, slot)->chain, &number);
	if (!node)
		return NULL;
	skb = bpf_kptr_xchg(&node->skb, NULL);
	len = node->len;
	free_node(number, node);
	nw_cocoa_departed(&cocoa, slot, len, now);
	account_removed(sch, len);
	if (!skb)
		return NULL;
	bpf_qdisc_bstats_update(sch, skb);
	account_sent(len, now);
	return skb;
}

SEC("struct_ops/cocoa_init")
int BPF_PROG(cocoa_init, struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *extack)
{
	if (in_use)
		return -EBUSY;
	in_use = true;
	cocoa.law.max_guard = opt_max_guard;
	cocoa.law.multiplier = opt_multiplier;
	cocoa.law.max_increase = opt_max_increase;
	cocoa.law.initial_limit = opt_initial_limit;
	cocoa.law.min_limit = opt_min_limit;
	cocoa.law.whole = opt_growth;
	cocoa.law.learn = opt_learn;
	cocoa.sched.limit = opt_limit < NW_NODES ? opt_limit : NW_NODES;
	cocoa.sched.quantum = opt_quantum ? opt_quantum : 1;
	cocoa.sched.initial_quantum = opt_initial_quantum;
	cocoa.sched.n_buckets = FLOWS;
	cocoa.sched.mask = FLOWS - 1;
	nw_cocoa_reset(&cocoa);
	sch->limit = cocoa.sched.limit;
	return 0;
}

SEC("struct_ops/cocoa_reset")
void BPF_PROG(cocoa_reset, struct Qdisc *sch)
{
	nw_for(slot, FLOWS) {
		nw_for(freed, NW_NODES) {
			u32 number;
			struct pkt_node *node = pop_front(&NW_FLOW_AT(NULL, slot)->chain, &number);
			struct sk_buff *skb;

			if (!node)
				break;
			skb = bpf_kptr_xchg(&node->skb, NULL);
			free_node(number, node);
			if (skb)
				bpf_kfree_skb(skb);
		}
	}
	nw_cocoa_reset(&cocoa);
	next_tx = 0;
	sch->q.qlen = 0;
	sch->qstats.backlog = 0;
}

SEC("struct_ops/cocoa_destroy")
void BPF_PROG(cocoa_destroy, struct Qdisc *sch)
{
	in_use = false;
}

SEC(".struct_ops.link")
struct Qdisc_ops cocoa_ops = {
	.enqueue = (void *)cocoa_enqueue,
	.dequeue = (void *)cocoa_dequeue,
	.init = (void *)cocoa_init,
	.reset = (void *)cocoa_reset,
	.destroy = (void *)cocoa_destroy,
	.id = "bpf_cocoa",
};
