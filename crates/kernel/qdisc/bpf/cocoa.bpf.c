// SPDX-License-Identifier: GPL-2.0-only
/* cocoa.h as a BPF qdisc, without pacing. Memory: 16 384 nodes of 24 B, 1024 flows of 136 B. */
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

/* Options, as those of the module. */
const volatile u32 opt_limit = 10000;
const volatile u32 opt_quantum = 3028;
const volatile u32 opt_initial_quantum = 3028;
const volatile u32 opt_multiplier = 1280;
const volatile u32 opt_max_increase = 2048;
const volatile u64 opt_max_guard = 1000000000;
const volatile u32 opt_initial_limit = 100;
const volatile u32 opt_min_limit = 4;
const volatile bool opt_whole = false;
const volatile bool opt_learn = false;

struct nw_cocoa cocoa;

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
	number = take_node();
	node = number ? node_at(number) : NULL;
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
		number = pop_back(&NW_FLOW_AT(NULL, slot)->chain);
		node = number ? node_at(number) : NULL;
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
	u64 now = bpf_ktime_get_ns(), time = 0;
	u32 slot = 0, number, len;
	struct sk_buff *skb;
	struct pkt_node *node;

	if (!cocoa.sched.packets || is_shaped(sch, now))
		return NULL;
	if (nw_cocoa_next(&cocoa, now, &slot, &time) != NW_PACKET)
		return NULL;
	number = pop_front(&NW_FLOW_AT(NULL, slot)->chain);
	node = number ? node_at(number) : NULL;
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
	cocoa.law.whole = opt_whole;
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
			u32 number = pop_front(&NW_FLOW_AT(NULL, slot)->chain);
			struct pkt_node *node = number ? node_at(number) : NULL;
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
