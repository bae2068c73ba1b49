// SPDX-License-Identifier: GPL-2.0-only
/*
 * LFQ: fair queuing whose buffers follow a learned policy (after Bachl et al., 2020). The algorithm is
 * ../include/narrows/lfq.h; this file gives it packets.
 *
 * Memory, from the start: 4 B for each bucket, and 200 B for each flow that the mask can tell apart. That is 204 KB
 * by default and 13 MB at most; `limit` packets beside it.
 */
#define NW_NAME lfq
#define NW_PREFIX LFQ
#define NW_ABOUT "Fair queuing whose buffers follow a learned policy"
#define NW_DISCIPLINE "narrows/lfq.h"
#define NW_FLOW_BYTES 176
#define NW_PACES 1
#include "flows.h"

static __always_inline enum nw_verdict lfq_arrive(struct nw_lfq *q, const struct sk_buff *skb, u32 hash, u64 now,
						  u32 *slot, enum nw_reason *reason)
{
	return nw_lfq_enqueue(q, hash, ktime_to_ns(skb->tstamp), now, slot, reason);
}

/* No limit falls below what waits. */
static void lfq_trim(struct Qdisc *sch, u32 slot, struct sk_buff **to_free)
{
}

static void lfq_options(struct Qdisc *sch, struct nw_lfq *q, const u64 *values)
{
	q->rule = values[NW_LFQ_A_POLICY];
	q->every = values[NW_LFQ_A_EVERY];
	q->initial_limit = values[NW_LFQ_A_INITIAL_LIMIT];
	q->min_limit = values[NW_LFQ_A_MIN_LIMIT];
}

static void lfq_counters(struct nw_lfq *q, u64 *s)
{
	s[NW_LFQ_S_DECISIONS] = q->decisions;
	s[NW_LFQ_S_CYCLES] = q->cycles;
}

static void lfq_flow_counters(struct nw_lfq *q, struct nw_flow *flow, u64 *s)
{
	/* 256ths are shown as 1024ths. */
	s[NW_LFQ_F_LIMIT] = flow->state.limit << 2;
	s[NW_LFQ_F_CYCLE_LIMIT] = flow->state.base << 2;
	s[NW_LFQ_F_FACTOR] = (u64)flow->state.factor << 2;
	s[NW_LFQ_F_CYCLES] = flow->state.cycles;
	s[NW_LFQ_F_IDLE] = flow->state.last.idle;
}

#include "qdisc.h"
