// SPDX-License-Identifier: GPL-2.0-only
/*
 * Congestion policing: arrivals pay for congestion from a token bucket (CP-AQM; Menth, Veith, 2018). The algorithm is
 * ../include/narrows/cp.h; this file gives it packets.
 *
 * Deviates: nobody tells a qdisc the rate of its link. Tokens come at the measured rate unless `rate` is given.
 *
 * Memory: less than a kilobyte, and limit packets.
 */
#define NW_NAME cp
#define NW_PREFIX CP
#define NW_ABOUT "Congestion policing: arrivals pay for congestion from a token bucket"
#include "shell.h"
#include "narrows/cp.h"

struct cp_sched_data {
	struct nw_shell shell;
	struct nw_cp q;
	struct sk_buff_head queue;
};

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

static void cp_begin(struct Qdisc *sch)
{
	struct cp_sched_data *p = qdisc_priv(sch);

	__skb_queue_head_init(&p->queue);
}

static int cp_alloc(struct Qdisc *sch, const u64 *values)
{
	return 0;
}

static void cp_destroy(struct Qdisc *sch)
{
}

static void cp_set(struct Qdisc *sch, const u64 *values, bool adding)
{
	struct cp_sched_data *p = qdisc_priv(sch);
	u64 mtu = nw_mtu(sch, values[NW_CP_A_MTU]), threshold = nw_mul_sat(values[NW_CP_A_THRESHOLD], mtu);
	u64 bucket = values[NW_CP_A_BUCKET], now = ktime_get_ns(), most, depth;
	struct nw_cp *q = &p->q;

	/* What came until now came at the old rate. */
	if (!adding)
		nw_cp_set_rate(q, values[NW_CP_A_RATE], now);
	q->limit_is_bytes = values[NW_CP_A_LIMIT_BYTES];
	q->limit = q->limit_is_bytes ? values[NW_CP_A_LIMIT_BYTES] : values[NW_A_LIMIT];
	q->rate = values[NW_CP_A_RATE];
	q->follow_drain = values[NW_CP_A_FOLLOW_DRAIN] || !q->rate;
	q->ecn = values[NW_CP_A_ECN];
	most = nw_cp_most(q->limit, q->limit_is_bytes, mtu);
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
	/*
	 * A packet that finds nothing waiting costs nothing, always fits and changes nothing of what is measured. The
	 * kernel may send it at once.
	 */
	if (q->law.threshold && !q->limit_is_bytes)
		sch->flags |= TCQ_F_CAN_BYPASS;
	else
		sch->flags &= ~TCQ_F_CAN_BYPASS;
}

static void cp_statistics(struct Qdisc *sch, u64 *s)
{
	struct cp_sched_data *p = qdisc_priv(sch);

	s[NW_CP_S_TOKENS] = nw_policer_tokens(&p->q.policer);
	s[NW_CP_S_TOKEN_RATE] = nw_cp_token_rate(&p->q);
	s[NW_CP_S_THRESHOLD] = p->q.law.threshold;
	s[NW_CP_S_BUCKET] = nw_div(p->q.law.depth, NW_BYTE);
}

#include "qdisc.h"
