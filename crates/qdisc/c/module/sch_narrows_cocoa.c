// SPDX-License-Identifier: GPL-2.0-only
/*
 * Cocoa: fair queuing whose buffers fit each flow's congestion control (Bachl et al., 2019). The algorithm is
 * ../include/narrows/cocoa.h; this file gives it packets.
 *
 * Deviates: guard intervals cannot be bound to round-trip times (`guard_rtts`), for want of a spin bit in most packets.
 *
 * Memory, from the start: 4 B for each bucket, and 176 B for each flow that the mask can tell apart. That is 180 KB
 * by default and 12 MB at most; `limit` packets beside it.
 */
#define NW_DISCIPLINE "narrows/cocoa.h"
#include "flows.h"

struct cocoa_sched_data {
	struct nw_shell shell;
	struct nw_cocoa q;
	struct qdisc_watchdog watchdog;
};

static const struct nw_option cocoa_options[NW_COCOA_A_END] = { NW_COCOA_PARAMS(NW_OPTION) };
static struct nla_policy cocoa_policy[NW_COCOA_A_END];

/* A flow's limit has become lower than what waits of it. */
static noinline void cocoa_trim(struct Qdisc *sch, u32 slot, struct sk_buff **to_free)
{
	struct cocoa_sched_data *p = qdisc_priv(sch);
	struct nw_flow *flow = &p->q.sched.flows[slot];

	while (nw_cocoa_has_surplus(&p->q, slot)) {
		struct sk_buff *last = __skb_dequeue_tail(&flow->queue);

		nw_cocoa_trimmed(&p->q, slot, qdisc_pkt_len(last));
		nw_drop_waiting(sch, &p->shell, last, NW_FLOW_LIMIT, to_free);
	}
}

static __always_inline int cocoa_enqueue_one(struct sk_buff *skb, struct Qdisc *sch, u32 hash, u64 now, struct sk_buff **to_free)
{
	struct cocoa_sched_data *p = qdisc_priv(sch);
	enum nw_reason reason;
	u32 slot = 0;

	switch (nw_cocoa_enqueue(&p->q, hash, ktime_to_ns(skb->tstamp), false, now, &slot, &reason)) {
	case NW_ACCEPT:
	case NW_ACCEPT_MARKED:
		__skb_queue_tail(&p->q.sched.flows[slot].queue, skb);
		nw_cocoa_queued(&p->q, slot, qdisc_pkt_len(skb), now);
		nw_account_queued(sch, skb);
		return NET_XMIT_SUCCESS;
	case NW_DROP:
		break;
	case NW_DROP_AND_TRIM:
		cocoa_trim(sch, slot, to_free);
		break;
	}
	return nw_drop(sch, &p->shell, skb, reason, to_free);
}

static int cocoa_enqueue(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free)
{
	struct cocoa_sched_data *p = qdisc_priv(sch);

	return nw_enqueue(skb, sch, &p->shell, to_free, true, cocoa_enqueue_one);
}

static struct sk_buff *cocoa_dequeue(struct Qdisc *sch)
{
	struct cocoa_sched_data *p = qdisc_priv(sch);
	struct sk_buff *skb;
	u64 now, time = 0;
	u32 slot = 0;

	/* The kernel asks once more after the last packet. */
	if (!p->q.sched.packets)
		return NULL;
	now = ktime_get_ns();
	switch (nw_cocoa_next(&p->q, now, &slot, &time)) {
	case NW_PACKET:
		skb = __skb_dequeue(&p->q.sched.flows[slot].queue);
		nw_cocoa_departed(&p->q, slot, qdisc_pkt_len(skb), now);
		nw_account_sent(sch, skb);
		return skb;
	case NW_AT:
		qdisc_watchdog_schedule_ns(&p->watchdog, time);
		break;
	case NW_EMPTY:
		break;
	}
	return NULL;
}

static void cocoa_reset(struct Qdisc *sch)
{
	struct cocoa_sched_data *p = qdisc_priv(sch);

	qdisc_watchdog_cancel(&p->watchdog);
	/* A qdisc whose memory was refused is reset, too. */
	if (!p->q.sched.flows || !p->q.sched.buckets)
		return;
	nw_sched_purge(&p->q.sched);
	nw_cocoa_reset(&p->q);
	nw_shell_reset(&p->shell);
}

/* Drops packets that a new limit leaves no room for, from the heads of queues. */
static void cocoa_keep_limit(struct Qdisc *sch)
{
	struct cocoa_sched_data *p = qdisc_priv(sch);
	struct nw_sched *s = &p->q.sched;
	u64 now = ktime_get_ns();
	u32 slot;

	for (slot = 0; slot < s->used && s->packets > s->limit; slot++) {
		struct nw_flow *flow = &s->flows[slot];

		while (flow->packets && s->packets > s->limit) {
			struct sk_buff *skb = __skb_dequeue(&flow->queue);

			nw_cocoa_removed(&p->q, slot, qdisc_pkt_len(skb), now);
			nw_drop_at_dequeue(sch, &p->shell, skb, NW_QUEUE_FULL);
		}
	}
	nw_tell(sch, &p->shell);
}

/*
 * Pacing begins or ends while packets wait. Departure times beyond the horizon, which are refused with pacing, do not
 * count; and flows that were set aside go on.
 */
static void cocoa_set_pacing(struct cocoa_sched_data *p, bool pacing)
{
	struct nw_sched *s = &p->q.sched;
	u64 now = ktime_get_ns();
	u32 slot;

	if (pacing == s->pacing)
		return;
	s->pacing = pacing;
	if (!pacing) {
		nw_sched_wake(s, NW_U64_MAX);
		qdisc_watchdog_schedule_ns(&p->watchdog, now);
		return;
	}
	for (slot = 0; slot < s->used; slot++) {
		struct sk_buff *skb;

		skb_queue_walk(&s->flows[slot].queue, skb) {
			if ((u64)ktime_to_ns(skb->tstamp) > nw_later(now, NW_HORIZON_NS))
				skb->tstamp = 0;
		}
	}
}

static int cocoa_set(struct Qdisc *sch, struct nlattr *opt, bool adding, struct netlink_ext_ack *extack)
{
	struct cocoa_sched_data *p = qdisc_priv(sch);
	u64 values[NW_OPTIONS];
	int err;

	memcpy(values, p->shell.options, sizeof(values));
	err = nw_parse(opt, cocoa_options, cocoa_policy, NW_COCOA_A_END, values, adding, extack);
	if (err)
		return err;
	if (adding) {
		/* Pacing may be switched on later. */
		err = nw_sched_alloc(&p->q.sched, values, true);
		if (err)
			return err;
		nw_cocoa_reset(&p->q);
	}
	sch_tree_lock(sch);
	memcpy(p->shell.options, values, sizeof(values));
	nw_sched_set(&p->q.sched, values);
	cocoa_set_pacing(p, values[NW_COCOA_A_PACING]);
	p->q.law = (struct nw_cocoa_law){
		.max_guard = values[NW_COCOA_A_MAX_GUARD],
		.multiplier = values[NW_COCOA_A_MULTIPLIER],
		.max_increase = values[NW_COCOA_A_MAX_INCREASE],
		.initial_limit = values[NW_COCOA_A_INITIAL_LIMIT],
		.min_limit = values[NW_COCOA_A_MIN_LIMIT],
		.whole = values[NW_COCOA_A_GROWTH],
		.learn = values[NW_COCOA_A_LEARN],
	};
	sch->limit = p->q.sched.limit;
	cocoa_keep_limit(sch);
	sch_tree_unlock(sch);
	return 0;
}

static int cocoa_change(struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *extack)
{
	return cocoa_set(sch, opt, false, extack);
}

static int cocoa_init(struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *extack)
{
	struct cocoa_sched_data *p = qdisc_priv(sch);

	qdisc_watchdog_init(&p->watchdog, sch);
	nw_shell_init(&p->shell, cocoa_options, NW_COCOA_A_END);
	return cocoa_set(sch, opt, true, extack);
}

static void cocoa_destroy(struct Qdisc *sch)
{
	struct cocoa_sched_data *p = qdisc_priv(sch);

	qdisc_watchdog_cancel(&p->watchdog);
	nw_sched_free(&p->q.sched);
}

static int cocoa_dump(struct Qdisc *sch, struct sk_buff *skb)
{
	struct cocoa_sched_data *p = qdisc_priv(sch);

	return nw_dump(skb, cocoa_options, NW_COCOA_A_END, p->shell.options);
}

static int cocoa_dump_stats(struct Qdisc *sch, struct gnet_dump *d)
{
	struct cocoa_sched_data *p = qdisc_priv(sch);
	const struct nw_cocoa *q = &p->q;
	u64 s[NW_COCOA_S_END];

	sch_tree_lock(sch);
	nw_shell_statistics(&p->shell, s);
	s[NW_COCOA_S_FLOWS] = q->sched.known;
	s[NW_COCOA_S_COLLECTED] = q->sched.collected;
	s[NW_COCOA_S_THROTTLED] = q->sched.n_delayed;
	s[NW_COCOA_S_GREW] = q->decisions[NW_COCOA_GREW];
	s[NW_COCOA_S_ANEW] = q->decisions[NW_COCOA_BEGAN_ANEW];
	s[NW_COCOA_S_JUDGED] = q->decisions[NW_COCOA_JUDGED];
	s[NW_COCOA_S_SHRUNK] = q->shrunk;
	s[NW_COCOA_S_INTERVALS] = q->decisions[NW_COCOA_NEXT_INTERVAL];
	sch_tree_unlock(sch);
	return gnet_stats_copy_app(d, s, sizeof(s));
}

static void cocoa_walk(struct Qdisc *sch, struct qdisc_walker *arg)
{
	struct cocoa_sched_data *p = qdisc_priv(sch);

	nw_sched_walk(sch, &p->q.sched, arg);
}

static int cocoa_dump_class_stats(struct Qdisc *sch, unsigned long cl, struct gnet_dump *d)
{
	struct cocoa_sched_data *p = qdisc_priv(sch);
	struct gnet_stats_queue queue = {};
	const struct nw_flow *flow;
	u64 s[NW_COCOA_F_END];

	sch_tree_lock(sch);
	flow = nw_sched_class(&p->q.sched, cl, &queue, s);
	s[NW_COCOA_F_LIMIT] = ((u64)flow->state.limit << NW_ONE_SHIFT) + flow->state.part;
	s[NW_COCOA_F_LONGEST] = flow->state.longest;
	s[NW_COCOA_F_IDLE] = flow->state.decision_idle;
	s[NW_COCOA_F_DECISION] = flow->state.decision;
	sch_tree_unlock(sch);
	if (gnet_stats_copy_queue(d, NULL, &queue, queue.qlen) < 0)
		return -1;
	return gnet_stats_copy_app(d, s, sizeof(s));
}

static const struct Qdisc_class_ops cocoa_class_ops = {
	.leaf = nw_class_leaf,
	.find = nw_class_find,
	.walk = cocoa_walk,
	.dump = nw_class_dump,
	.dump_stats = cocoa_dump_class_stats,
};

static struct Qdisc_ops cocoa_qdisc_ops __read_mostly = {
	.cl_ops = &cocoa_class_ops,
	.id = "cocoa",
	.priv_size = sizeof(struct cocoa_sched_data),
	.enqueue = cocoa_enqueue,
	.dequeue = cocoa_dequeue,
	.peek = qdisc_peek_dequeued,
	.init = cocoa_init,
	.reset = cocoa_reset,
	.destroy = cocoa_destroy,
	.change = cocoa_change,
	.dump = cocoa_dump,
	.dump_stats = cocoa_dump_stats,
	.owner = THIS_MODULE,
};

static int __init cocoa_module_init(void)
{
	nw_policy_init(cocoa_policy, cocoa_options, NW_COCOA_A_END);
	return register_qdisc(&cocoa_qdisc_ops);
}

static void __exit cocoa_module_exit(void)
{
	unregister_qdisc(&cocoa_qdisc_ops);
}

module_init(cocoa_module_init);
module_exit(cocoa_module_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Fair queuing whose buffers fit each flow's congestion control (cocoa)");
MODULE_ALIAS("net-sch-cocoa");
MODULE_ALIAS("sch_cocoa");
