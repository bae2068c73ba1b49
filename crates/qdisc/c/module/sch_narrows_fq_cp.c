// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fair queuing, each flow with a congestion policer of its own. The algorithm is ../include/narrows/fq_cp.h; this
 * file gives it packets.
 *
 * Deviates: nobody tells a qdisc the rate of its link. Until a flow's share has been measured its tokens come at
 * `rate`, and none come unless that is given; the full bucket that a flow starts with lasts until then.
 *
 * Memory, from the start: 4 B for each bucket, and 128 B for each flow that the mask can tell apart. That is 132 KB
 * by default and 8.3 MB at most; `limit` packets beside it.
 */
#define NW_DISCIPLINE "narrows/fq_cp.h"
#include "flows.h"

struct fq_cp_sched_data {
	struct nw_shell shell;
	struct nw_fq_cp q;
};

static const struct nw_option fq_cp_options[NW_FQ_CP_A_END] = { NW_FQ_CP_PARAMS(NW_OPTION) };
static struct nla_policy fq_cp_policy[NW_FQ_CP_A_END];

static __always_inline int fq_cp_enqueue_one(struct sk_buff *skb, struct Qdisc *sch, u32 hash, u64 now, struct sk_buff **to_free)
{
	struct fq_cp_sched_data *p = qdisc_priv(sch);
	enum nw_verdict verdict;
	enum nw_reason reason;
	u32 slot = 0;

	verdict = nw_fq_cp_enqueue(&p->q, hash, qdisc_pkt_len(skb), now, &slot, &reason);
	if (verdict == NW_ACCEPT || (verdict == NW_ACCEPT_MARKED && nw_mark(&p->shell, skb))) {
		__skb_queue_tail(&p->q.sched.flows[slot].queue, skb);
		nw_fq_cp_queued(&p->q, slot, qdisc_pkt_len(skb), now);
		nw_account_queued(sch, skb);
		return NET_XMIT_SUCCESS;
	}
	return nw_drop(sch, &p->shell, skb, reason, to_free);
}

static int fq_cp_enqueue(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free)
{
	struct fq_cp_sched_data *p = qdisc_priv(sch);

	return nw_enqueue(skb, sch, &p->shell, to_free, true, fq_cp_enqueue_one);
}

static struct sk_buff *fq_cp_dequeue(struct Qdisc *sch)
{
	struct fq_cp_sched_data *p = qdisc_priv(sch);
	struct sk_buff *skb;
	u64 now, time = 0;
	u32 slot = 0;

	/* The kernel asks once more after the last packet. */
	if (!p->q.sched.packets)
		return NULL;
	now = ktime_get_ns();
	if (nw_fq_cp_next(&p->q, now, &slot, &time) != NW_PACKET)
		return NULL;
	skb = __skb_dequeue(&p->q.sched.flows[slot].queue);
	nw_fq_cp_departed(&p->q, slot, qdisc_pkt_len(skb), now);
	nw_account_sent(sch, skb);
	return skb;
}

static void fq_cp_reset(struct Qdisc *sch)
{
	struct fq_cp_sched_data *p = qdisc_priv(sch);

	/* A qdisc whose memory was refused is reset, too. */
	if (!p->q.sched.flows || !p->q.sched.buckets)
		return;
	nw_sched_purge(&p->q.sched);
	nw_fq_cp_reset(&p->q);
	nw_shell_reset(&p->shell);
}

/* Drops packets that a new limit leaves no room for, from the heads of queues. */
static void fq_cp_keep_limit(struct Qdisc *sch)
{
	struct fq_cp_sched_data *p = qdisc_priv(sch);
	struct nw_sched *s = &p->q.sched;
	u32 slot;

	for (slot = 0; slot < s->used && s->packets > s->limit; slot++) {
		struct nw_flow *flow = &s->flows[slot];

		while (flow->packets && s->packets > s->limit) {
			struct sk_buff *skb = __skb_dequeue(&flow->queue);

			nw_sched_removed(s, flow, qdisc_pkt_len(skb));
			nw_drop_at_dequeue(sch, &p->shell, skb, NW_QUEUE_FULL);
		}
	}
	nw_tell(sch, &p->shell);
}

static int fq_cp_set(struct Qdisc *sch, struct nlattr *opt, bool adding, struct netlink_ext_ack *extack)
{
	struct fq_cp_sched_data *p = qdisc_priv(sch);
	u64 values[NW_OPTIONS], threshold, most, bucket, mtu;
	struct nw_fq_cp *q = &p->q;
	int err;

	memcpy(values, p->shell.options, sizeof(values));
	err = nw_parse(opt, fq_cp_options, fq_cp_policy, NW_FQ_CP_A_END, values, adding, extack);
	if (err)
		return err;
	if (adding) {
		err = nw_sched_alloc(&q->sched, values, false);
		if (err)
			return err;
		nw_fq_cp_reset(q);
	}
	mtu = nw_mtu(sch, values[NW_FQ_CP_A_MTU]);
	threshold = nw_mul_sat(values[NW_FQ_CP_A_THRESHOLD], mtu);
	most = nw_mul_sat(values[NW_FQ_CP_A_FLOW_LIMIT], mtu);
	bucket = values[NW_FQ_CP_A_BUCKET];
	if (!bucket)
		bucket = nw_policer_rule(threshold, most, values[NW_FQ_CP_A_MAX_CONGESTION], mtu);

	sch_tree_lock(sch);
	memcpy(p->shell.options, values, sizeof(values));
	nw_sched_set(&q->sched, values);
	q->flow_limit = values[NW_FQ_CP_A_FLOW_LIMIT];
	q->ecn = values[NW_FQ_CP_A_ECN];
	q->link_rate = values[NW_FQ_CP_A_RATE];
	nw_policer_law_init(&q->law, threshold, most, values[NW_FQ_CP_A_MAX_CONGESTION], bucket);
	nw_policer_for_measured_rate(&q->law);
	sch->limit = q->sched.limit;
	fq_cp_keep_limit(sch);
	sch_tree_unlock(sch);
	return 0;
}

static int fq_cp_change(struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *extack)
{
	return fq_cp_set(sch, opt, false, extack);
}

static int fq_cp_init(struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *extack)
{
	struct fq_cp_sched_data *p = qdisc_priv(sch);

	nw_shell_init(&p->shell, fq_cp_options, NW_FQ_CP_A_END);
	return fq_cp_set(sch, opt, true, extack);
}

static void fq_cp_destroy(struct Qdisc *sch)
{
	struct fq_cp_sched_data *p = qdisc_priv(sch);

	nw_sched_free(&p->q.sched);
}

static int fq_cp_dump(struct Qdisc *sch, struct sk_buff *skb)
{
	struct fq_cp_sched_data *p = qdisc_priv(sch);

	return nw_dump(skb, fq_cp_options, NW_FQ_CP_A_END, p->shell.options);
}

static int fq_cp_dump_stats(struct Qdisc *sch, struct gnet_dump *d)
{
	struct fq_cp_sched_data *p = qdisc_priv(sch);
	u64 s[NW_FQ_CP_S_END];

	sch_tree_lock(sch);
	nw_shell_statistics(&p->shell, s);
	s[NW_FQ_CP_S_FLOWS] = p->q.sched.known;
	s[NW_FQ_CP_S_COLLECTED] = p->q.sched.collected;
	s[NW_FQ_CP_S_THRESHOLD] = p->q.law.threshold;
	s[NW_FQ_CP_S_BUCKET] = nw_div(p->q.law.depth, NW_BYTE);
	sch_tree_unlock(sch);
	return gnet_stats_copy_app(d, s, sizeof(s));
}

static void fq_cp_walk(struct Qdisc *sch, struct qdisc_walker *arg)
{
	struct fq_cp_sched_data *p = qdisc_priv(sch);

	nw_sched_walk(sch, &p->q.sched, arg);
}

static int fq_cp_dump_class_stats(struct Qdisc *sch, unsigned long cl, struct gnet_dump *d)
{
	struct fq_cp_sched_data *p = qdisc_priv(sch);
	struct gnet_stats_queue queue = {};
	struct nw_flow *flow;
	u64 s[NW_FQ_CP_F_END];

	sch_tree_lock(sch);
	flow = nw_sched_class(&p->q.sched, cl, &queue, s);
	s[NW_FQ_CP_F_TOKENS] = nw_policer_tokens(&flow->state.policer);
	s[NW_FQ_CP_F_TOKEN_RATE] = nw_fq_cp_token_rate(&p->q, &flow->state);
	sch_tree_unlock(sch);
	if (gnet_stats_copy_queue(d, NULL, &queue, queue.qlen) < 0)
		return -1;
	return gnet_stats_copy_app(d, s, sizeof(s));
}

static const struct Qdisc_class_ops fq_cp_class_ops = {
	.leaf = nw_class_leaf,
	.find = nw_class_find,
	.walk = fq_cp_walk,
	.dump = nw_class_dump,
	.dump_stats = fq_cp_dump_class_stats,
};

static struct Qdisc_ops fq_cp_qdisc_ops __read_mostly = {
	.cl_ops = &fq_cp_class_ops,
	.id = "fq_cp",
	.priv_size = sizeof(struct fq_cp_sched_data),
	.enqueue = fq_cp_enqueue,
	.dequeue = fq_cp_dequeue,
	.peek = qdisc_peek_dequeued,
	.init = fq_cp_init,
	.reset = fq_cp_reset,
	.destroy = fq_cp_destroy,
	.change = fq_cp_change,
	.dump = fq_cp_dump,
	.dump_stats = fq_cp_dump_stats,
	.owner = THIS_MODULE,
};

static int __init fq_cp_module_init(void)
{
	nw_policy_init(fq_cp_policy, fq_cp_options, NW_FQ_CP_A_END);
	return register_qdisc(&fq_cp_qdisc_ops);
}

static void __exit fq_cp_module_exit(void)
{
	unregister_qdisc(&fq_cp_qdisc_ops);
}

module_init(fq_cp_module_init);
module_exit(fq_cp_module_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Fair queuing, each flow with a congestion policer of its own (fq_cp)");
MODULE_ALIAS("net-sch-fq_cp");
MODULE_ALIAS("sch_fq_cp");
