// SPDX-License-Identifier: GPL-2.0-only
/*
 * Congestion policing: arrivals pay for congestion from a token bucket (CP-AQM; Menth, Veith, 2018). The algorithm is
 * ../include/narrows/cp.h; this file gives it packets.
 *
 * Deviates: nobody tells a qdisc the rate of its link. Tokens come at the measured rate unless `rate` is given.
 *
 * Memory: less than a kilobyte, and limit packets.
 */
#include "shell.h"
#include "narrows/cp.h"

struct cp_sched_data {
	struct nw_shell shell;
	struct nw_cp q;
	struct sk_buff_head queue;
};

static const struct nw_option cp_options[NW_CP_A_END] = { NW_CP_PARAMS(NW_OPTION) };
static struct nla_policy cp_policy[NW_CP_A_END];

static __always_inline int cp_enqueue_one(struct sk_buff *skb, struct Qdisc *sch, u32 hash, u64 now, struct sk_buff **to_free)
{
	struct cp_sched_data *p = qdisc_priv(sch);
	enum nw_reason reason;
	enum nw_verdict verdict = nw_cp_enqueue(&p->q, qdisc_pkt_len(skb), now, &reason);

	if (verdict == NW_ACCEPT || (verdict == NW_ACCEPT_MARKED && nw_mark(&p->shell, skb))) {
		__skb_queue_tail(&p->queue, skb);
		nw_cp_queued(&p->q, qdisc_pkt_len(skb));
		nw_account_queued(sch, skb);
		return NET_XMIT_SUCCESS;
	}
	return nw_drop(sch, &p->shell, skb, reason, to_free);
}

static int cp_enqueue(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free)
{
	struct cp_sched_data *p = qdisc_priv(sch);

	return nw_enqueue(skb, sch, &p->shell, to_free, false, cp_enqueue_one);
}

static struct sk_buff *cp_dequeue(struct Qdisc *sch)
{
	struct cp_sched_data *p = qdisc_priv(sch);
	struct sk_buff *skb = __skb_dequeue(&p->queue);

	if (!skb)
		return NULL;
	nw_cp_departed(&p->q, qdisc_pkt_len(skb), ktime_get_ns());
	nw_account_sent(sch, skb);
	return skb;
}

static void cp_reset(struct Qdisc *sch)
{
	struct cp_sched_data *p = qdisc_priv(sch);

	nw_purge(&p->queue);
	nw_cp_reset(&p->q, ktime_get_ns());
	nw_shell_reset(&p->shell);
}

static bool cp_is_too_long(const struct nw_cp *q)
{
	return q->limit_is_bytes ? q->bytes > q->limit : q->packets > q->limit;
}

static int cp_set(struct Qdisc *sch, struct nlattr *opt, bool adding, struct netlink_ext_ack *extack)
{
	struct cp_sched_data *p = qdisc_priv(sch);
	u64 values[NW_OPTIONS], threshold, most, bucket, depth, mtu, now;
	struct nw_cp *q = &p->q;
	int err;

	memcpy(values, p->shell.options, sizeof(values));
	err = nw_parse(opt, cp_options, cp_policy, NW_CP_A_END, values, adding, extack);
	if (err)
		return err;
	mtu = nw_mtu(sch, values[NW_CP_A_MTU]);
	threshold = nw_mul_sat(values[NW_CP_A_THRESHOLD], mtu);

	sch_tree_lock(sch);
	now = ktime_get_ns();
	memcpy(p->shell.options, values, sizeof(values));
	/* What came until now came at the old rate. */
	if (!adding)
		nw_cp_set_rate(q, values[NW_CP_A_RATE], now);
	q->limit_is_bytes = values[NW_CP_A_LIMIT_BYTES];
	q->limit = q->limit_is_bytes ? values[NW_CP_A_LIMIT_BYTES] : values[NW_A_LIMIT];
	q->rate = values[NW_CP_A_RATE];
	q->follow_drain = values[NW_CP_A_FOLLOW_DRAIN] || !q->rate;
	q->ecn = values[NW_CP_A_ECN];
	most = nw_cp_most(q->limit, q->limit_is_bytes, mtu);
	bucket = values[NW_CP_A_BUCKET];
	if (!bucket)
		bucket = nw_policer_rule(threshold, most, values[NW_CP_A_MAX_CONGESTION], mtu);
	depth = q->law.depth;
	nw_policer_law_init(&q->law, threshold, most, values[NW_CP_A_MAX_CONGESTION], bucket);
	if (q->follow_drain)
		nw_policer_for_measured_rate(&q->law);
	if (adding)
		nw_cp_reset(q, now);
	else if (q->law.depth != depth)
		/* A burst may fill the new queue once, as it may the first. */
		nw_policer_init(&q->policer, &q->law, now);
	while (cp_is_too_long(q)) {
		struct sk_buff *skb = __skb_dequeue(&p->queue);

		nw_cp_removed(q, qdisc_pkt_len(skb));
		nw_drop_at_dequeue(sch, &p->shell, skb, NW_QUEUE_FULL);
	}
	nw_tell(sch, &p->shell);
	/*
	 * A packet that finds nothing waiting costs nothing, always fits and changes nothing of what is measured. The
	 * kernel may send it at once.
	 */
	if (q->law.threshold && !q->limit_is_bytes)
		sch->flags |= TCQ_F_CAN_BYPASS;
	else
		sch->flags &= ~TCQ_F_CAN_BYPASS;
	sch->limit = values[NW_A_LIMIT];
	sch_tree_unlock(sch);
	return 0;
}

static int cp_change(struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *extack)
{
	return cp_set(sch, opt, false, extack);
}

static int cp_init(struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *extack)
{
	struct cp_sched_data *p = qdisc_priv(sch);

	__skb_queue_head_init(&p->queue);
	nw_shell_init(&p->shell, cp_options, NW_CP_A_END);
	return cp_set(sch, opt, true, extack);
}

static int cp_dump(struct Qdisc *sch, struct sk_buff *skb)
{
	struct cp_sched_data *p = qdisc_priv(sch);

	return nw_dump(skb, cp_options, NW_CP_A_END, p->shell.options);
}

static int cp_dump_stats(struct Qdisc *sch, struct gnet_dump *d)
{
	struct cp_sched_data *p = qdisc_priv(sch);
	u64 s[NW_CP_S_END];

	sch_tree_lock(sch);
	nw_shell_statistics(&p->shell, s);
	s[NW_CP_S_TOKENS] = nw_policer_tokens(&p->q.policer);
	s[NW_CP_S_TOKEN_RATE] = nw_cp_token_rate(&p->q);
	s[NW_CP_S_THRESHOLD] = p->q.law.threshold;
	s[NW_CP_S_BUCKET] = nw_div(p->q.law.depth, NW_BYTE);
	sch_tree_unlock(sch);
	return gnet_stats_copy_app(d, s, sizeof(s));
}

static struct Qdisc_ops cp_qdisc_ops __read_mostly = {
	.id = "cp",
	.priv_size = sizeof(struct cp_sched_data),
	.enqueue = cp_enqueue,
	.dequeue = cp_dequeue,
	.peek = qdisc_peek_dequeued,
	.init = cp_init,
	.reset = cp_reset,
	.change = cp_change,
	.dump = cp_dump,
	.dump_stats = cp_dump_stats,
	.owner = THIS_MODULE,
};

static int __init cp_module_init(void)
{
	nw_policy_init(cp_policy, cp_options, NW_CP_A_END);
	return register_qdisc(&cp_qdisc_ops);
}

static void __exit cp_module_exit(void)
{
	unregister_qdisc(&cp_qdisc_ops);
}

module_init(cp_module_init);
module_exit(cp_module_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Congestion policing: arrivals pay for congestion from a token bucket (CP-AQM)");
MODULE_ALIAS("net-sch-cp");
MODULE_ALIAS("sch_cp");
