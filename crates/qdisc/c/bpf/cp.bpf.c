// SPDX-License-Identifier: GPL-2.0-only
/* cp.h as a BPF qdisc. Memory: 16 384 nodes of 24 B. */
#include "shell.bpf.h"
#include "narrows/cp.h"

/* A full-sized packet of Ethernet, unless opt_mtu says another length. */
#define MTU 1514u

/* opt_limit and so on. */
NW_CP_PARAMS(NW_CONSTANT)

struct nw_cp cp;
static struct pkt_chain queue;

SEC("struct_ops/cp_enqueue")
int BPF_PROG(cp_enqueue, struct sk_buff *skb, struct Qdisc *sch, struct bpf_sk_buff_ptr *to_free)
{
	u32 len = packet_len(skb), number;
	enum nw_reason reason = NW_QUEUE_FULL;
	struct sk_buff *old;
	struct pkt_node *node;

	if (nw_cp_enqueue(&cp, len, bpf_ktime_get_ns(), &reason) != NW_ACCEPT)
		goto drop;
	node = take_node(&number);
	if (!node)
		goto drop;
	node->len = len;
	old = bpf_kptr_xchg(&node->skb, skb);
	if (old)
		bpf_qdisc_skb_drop(old, to_free);
	push(&queue, number, node);
	nw_cp_queued(&cp, len);
	account_queued(sch, len);
	return NET_XMIT_SUCCESS;
drop:
	dropped[reason & 7]++;
	sch->qstats.drops++;
	bpf_qdisc_skb_drop(skb, to_free);
	return NET_XMIT_DROP;
}

SEC("struct_ops/cp_dequeue")
struct sk_buff *BPF_PROG(cp_dequeue, struct Qdisc *sch)
{
	struct sk_buff *skb;
	struct pkt_node *node;
	u32 number, len;
	u64 now;

	if (!cp.packets)
		return NULL;
	now = bpf_ktime_get_ns();
	if (is_shaped(sch, now))
		return NULL;
	node = pop_front(&queue, &number);
	if (!node)
		return NULL;
	skb = bpf_kptr_xchg(&node->skb, NULL);
	len = node->len;
	free_node(number, node);
	nw_cp_departed(&cp, len, now);
	account_removed(sch, len);
	if (!skb)
		return NULL;
	bpf_qdisc_bstats_update(sch, skb);
	account_sent(len, now);
	return skb;
}

SEC("struct_ops/cp_init")
int BPF_PROG(cp_init, struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *extack)
{
	u32 mtu = opt_mtu ? opt_mtu : MTU;
	u64 threshold = (u64)opt_threshold * mtu;
	u64 most;

	if (in_use)
		return -EBUSY;
	in_use = true;
	cp.limit_is_bytes = opt_limit_bytes;
	cp.limit = opt_limit_bytes ? opt_limit_bytes : opt_limit;
	cp.rate = opt_rate;
	cp.follow_drain = opt_follow_drain || !opt_rate;
	most = nw_cp_most(cp.limit, cp.limit_is_bytes, mtu);
	nw_policer_law_init(&cp.law, threshold, most, opt_max_congestion,
			    opt_bucket ? opt_bucket :
				nw_policer_rule(threshold, most, opt_max_congestion, mtu));
	if (cp.follow_drain)
		nw_policer_for_measured_rate(&cp.law);
	nw_cp_reset(&cp, bpf_ktime_get_ns());
	sch->limit = opt_limit;
	return 0;
}

SEC("struct_ops/cp_reset")
void BPF_PROG(cp_reset, struct Qdisc *sch)
{
	nw_for(freed, NW_NODES) {
		u32 number;
		struct pkt_node *node = pop_front(&queue, &number);
		struct sk_buff *skb;

		if (!node)
			break;
		skb = bpf_kptr_xchg(&node->skb, NULL);
		free_node(number, node);
		if (skb)
			bpf_kfree_skb(skb);
	}
	nw_cp_reset(&cp, bpf_ktime_get_ns());
	next_tx = 0;
	sch->q.qlen = 0;
	sch->qstats.backlog = 0;
}

SEC("struct_ops/cp_destroy")
void BPF_PROG(cp_destroy, struct Qdisc *sch)
{
	in_use = false;
}

SEC(".struct_ops.link")
struct Qdisc_ops cp_ops = {
	.enqueue = (void *)cp_enqueue,
	.dequeue = (void *)cp_dequeue,
	.init = (void *)cp_init,
	.reset = (void *)cp_reset,
	.destroy = (void *)cp_destroy,
	.id = "bpf_cp",
};
