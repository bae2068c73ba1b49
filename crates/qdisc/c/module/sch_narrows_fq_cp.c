// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fair queuing, each flow with a congestion policer of its own. The algorithm is ../include/narrows/fq_cp.h; this
 * file gives it packets.
 *
 * Deviates: nobody tells a qdisc the rate of its link. Until a flow's share has been measured its tokens come at
 * `rate`, and none come unless that is given; the full bucket that a flow starts with lasts until then.
 *
 * Memory, from the start: 4 B for each bucket, and 144 B for each flow that the mask can tell apart. That is 148 KB
 * by default and 9.3 MB at most; `limit` packets beside it.
 */
#define NW_NAME fq_cp
#define NW_PREFIX FQ_CP
#define NW_ABOUT "Fair queuing, each flow with a congestion policer of its own"
#define NW_DISCIPLINE "narrows/fq_cp.h"
#define NW_FLOW_BYTES 144
#define NW_PACES 0
#include "flows.h"

static __always_inline enum nw_verdict fq_cp_arrive(struct nw_fq_cp *q, const struct sk_buff *skb, u32 hash, u64 now,
						    u32 *slot, enum nw_reason *reason)
{
	return nw_fq_cp_enqueue(q, hash, qdisc_pkt_len(skb), now, slot, reason);
}

/* Flows have one limit, which does not change. */
static void fq_cp_trim(struct Qdisc *sch, u32 slot, struct sk_buff **to_free)
{
}

static void fq_cp_options(struct Qdisc *sch, struct nw_fq_cp *q, const u64 *values)
{
	u64 mtu = nw_mtu(sch, values[NW_FQ_CP_A_MTU]), bucket = values[NW_FQ_CP_A_BUCKET];
	u64 threshold = nw_mul_sat(values[NW_FQ_CP_A_THRESHOLD], mtu);
	u64 most = nw_mul_sat(values[NW_FQ_CP_A_FLOW_LIMIT], mtu);

	if (!bucket)
		bucket = nw_policer_rule(threshold, most, values[NW_FQ_CP_A_MAX_CONGESTION], mtu);
	q->flow_limit = values[NW_FQ_CP_A_FLOW_LIMIT];
	q->ecn = values[NW_FQ_CP_A_ECN];
	q->link_rate = values[NW_FQ_CP_A_RATE];
	nw_policer_law_init(&q->law, threshold, most, values[NW_FQ_CP_A_MAX_CONGESTION], bucket);
	nw_policer_for_measured_rate(&q->law);
}

static void fq_cp_counters(struct nw_fq_cp *q, u64 *s)
{
	s[NW_FQ_CP_S_THRESHOLD] = q->law.threshold;
	s[NW_FQ_CP_S_BUCKET] = nw_div(q->law.depth, NW_BYTE);
}

static void fq_cp_flow_counters(struct nw_fq_cp *q, struct nw_flow *flow, u64 *s)
{
	s[NW_FQ_CP_F_TOKENS] = nw_policer_tokens(&flow->state.policer);
	s[NW_FQ_CP_F_TOKEN_RATE] = nw_fq_cp_token_rate(q, &flow->state);
}

#include "qdisc.h"
