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
#define NW_NAME cocoa
#define NW_PREFIX COCOA
#define NW_ABOUT "Fair queuing whose buffers fit each flow's congestion control"
#define NW_DISCIPLINE "narrows/cocoa.h"
#define NW_FLOW_BYTES 152
#define NW_PACES 1
#include "flows.h"

static __always_inline enum nw_verdict cocoa_arrive(struct nw_cocoa *q, const struct sk_buff *skb, u32 hash, u64 now,
						    u32 *slot, enum nw_reason *reason)
{
	return nw_cocoa_enqueue(q, hash, ktime_to_ns(skb->tstamp), false, now, slot, reason);
}

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

static void cocoa_options(struct Qdisc *sch, struct nw_cocoa *q, const u64 *values)
{
	q->law = (struct nw_cocoa_law){
		.max_guard = values[NW_COCOA_A_MAX_GUARD],
		.multiplier = values[NW_COCOA_A_MULTIPLIER],
		.max_increase = values[NW_COCOA_A_MAX_INCREASE],
		.initial_limit = values[NW_COCOA_A_INITIAL_LIMIT],
		.min_limit = values[NW_COCOA_A_MIN_LIMIT],
		.whole = values[NW_COCOA_A_GROWTH],
		.learn = values[NW_COCOA_A_LEARN],
	};
}

static void cocoa_counters(struct nw_cocoa *q, u64 *s)
{
	s[NW_COCOA_S_GREW] = q->decisions[NW_COCOA_GREW];
	s[NW_COCOA_S_ANEW] = q->decisions[NW_COCOA_BEGAN_ANEW];
	s[NW_COCOA_S_JUDGED] = q->decisions[NW_COCOA_JUDGED];
	s[NW_COCOA_S_SHRUNK] = q->shrunk;
	s[NW_COCOA_S_INTERVALS] = q->decisions[NW_COCOA_NEXT_INTERVAL];
}

static void cocoa_flow_counters(struct nw_cocoa *q, struct nw_flow *flow, u64 *s)
{
	s[NW_COCOA_F_LIMIT] = ((u64)flow->state.limit << NW_ONE_SHIFT) + flow->state.part;
	s[NW_COCOA_F_LONGEST] = flow->state.longest;
	s[NW_COCOA_F_IDLE] = flow->state.decision_idle;
	s[NW_COCOA_F_DECISION] = flow->state.decision;
}

#include "qdisc.h"
