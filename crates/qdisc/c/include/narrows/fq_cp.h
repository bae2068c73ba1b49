/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Fair queuing with a congestion policer for each flow, after `fq_cp.rs`: CP-AQM (Menth, Veith, 2018) behind fq's
 * turns.
 *
 * - A flow's queue holds at most `flow_limit` packets.
 * - Every flow pays from a bucket of its own for the congestion in its own queue.
 * - A flow's tokens come at the rate at which its queue was seen to drain, which is its share of the link while it is
 *   backlogged; until one is known, at the link's.
 *
 * The shell: as for cocoa.h and cp.h. A packet that nw_fq_cp_enqueue accepts is linked to the flow, then
 * nw_sched_queued is called.
 */
#ifndef NARROWS_FQ_CP_H
#define NARROWS_FQ_CP_H

#include "base.h"
#include "drain_rate.h"
#include "policer.h"

/* What is known of a flow. */
struct nw_fq_cp_flow {
	struct nw_policer policer;
	struct nw_drain_rate drain;
	bool is_known;
};

#define NW_FLOW_STATE struct nw_fq_cp_flow
#include "flow_scheduler.h"

struct nw_fq_cp {
	struct nw_policer_law law;
	/* Parameters. Most packets of one flow. */
	u32 flow_limit;
	/* Mark instead of dropping. */
	bool ecn;
	/* bit/s. */
	u64 link_rate;
	struct nw_sched sched;
};

/* The rate of a flow's tokens now, bit/s. */
static inline u64 nw_fq_cp_token_rate(const struct nw_fq_cp *q, struct nw_fq_cp_flow *f)
{
	return nw_drain_rate(&f->drain, q->link_rate);
}

/* A packet arrives. For one that is dropped *reason says why. *slot is its flow, if it is not dropped. */
static inline enum nw_verdict nw_fq_cp_enqueue(struct nw_fq_cp *q, u32 hash, u32 len, u64 now, u32 *slot, enum nw_reason *reason)
{
	struct nw_fq_cp_flow *f;
	struct nw_flow *flow;

	if (!nw_sched_admits(&q->sched, 0, now, reason))
		return NW_DROP;
	*slot = nw_sched_classify(&q->sched, hash, now);
	flow = NW_FLOW_AT(&q->sched, *slot);
	f = &flow->state;
	if (!f->is_known) {
		f->is_known = true;
		nw_policer_init(&f->policer, &q->law, now);
	}
	if (flow->packets >= q->flow_limit) {
		*reason = NW_FLOW_LIMIT;
		return NW_DROP;
	}
	*reason = NW_POLICED;
	if (nw_policer_admits(&f->policer, &q->law, flow->bytes, len, nw_fq_cp_token_rate(q, f), now))
		return NW_ACCEPT;
	return q->ecn ? NW_ACCEPT_MARKED : NW_DROP;
}

/* A packet was dropped from a flow's queue for a reason of the shell's, such as a limit that was lowered. */
static inline void nw_fq_cp_removed(struct nw_fq_cp *q, u32 slot, u32 len, u64 now)
{
	(void)now;
	nw_sched_removed(&q->sched, NW_FLOW_AT(&q->sched, slot), len);
}

/* The first packet of the flow that was chosen has left. */
static inline void nw_fq_cp_departed(struct nw_fq_cp *q, u32 slot, u32 len, u64 now)
{
	struct nw_flow *flow = NW_FLOW_AT(&q->sched, slot);

	nw_sched_sent(&q->sched, flow, len);
	nw_drain_on_departure(&flow->state.drain, len, flow->packets > 0, now);
}

/* Forgets all flows. The shell has freed all packets. */
static inline void nw_fq_cp_reset(struct nw_fq_cp *q)
{
	nw_sched_reset(&q->sched);
}

#endif
