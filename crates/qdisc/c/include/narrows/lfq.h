/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * LFQ, learned fair queuing, after `lfq.rs`: a buffer for each flow whose limit follows a policy over what the queue
 * sees of the flow (after Bachl, Fabini, Zseby: "LFQ: Online Learning of Per-flow Queuing Policies using Deep
 * Reinforcement Learning", 2020).
 *
 * - A flow's life is a row of cycles. A drop ends one if the queue has fallen below three quarters of the limit in it,
 *   or after sixteen limits' worth of packets. Each cycle starts from the limit that the last one ended with.
 * - At every tenth arrival a policy reads the features of the present and of the last cycle, and answers with a factor
 *   for the limit at which the cycle began, from a quarter to four.
 * - A limit falls no lower than one packet below the queue at a time: no packet that waits is dropped.
 *
 * Limits are in 256ths of a packet. Divisions happen at decisions and drops only.
 *
 * The shell: for a packet that arrives call nw_lfq_enqueue and do what it says; after NW_ACCEPT link the packet to the
 * flow and call nw_sched_queued. To send call nw_sched_next, and nw_lfq_departed when the packet is out of its list.
 */
#ifndef NARROWS_LFQ_H
#define NARROWS_LFQ_H

#include "base.h"

/* What a policy sees of a flow; `features.rs` says what each is. */
struct nw_lfq_features {
	u32 limit;
	u32 drain_us;
	u32 gap_us;
	u32 queue;
	u32 cycles;
	u32 idle;
	u32 min;
	u32 mean;
	u32 age;
	u32 drops;
	u32 last_idle;
	u32 last_min;
	u32 last_mean;
	u32 last_age;
	u32 last_drops;
};

#include "lfq_policy.h"

/* A cycle in figures. */
struct nw_lfq_summary {
	u64 span;
	u16 idle;
	u16 min;
	u16 mean;
	u16 age;
	u16 drops;
};

/* What is known of a flow. */
struct nw_lfq_flow {
	/* 256ths of a packet: the limit, and the limit at which the cycle began. */
	u64 limit;
	u64 base;
	/* When its queue ran empty, if is_idle; or the last departure, if has_departed. */
	u64 idle_since;
	u64 departed;
	/* The cycle: its start, the time in it without a packet, and the sum of the queue's lengths behind departures. */
	u64 start;
	u64 idle;
	u64 sum;
	/* Departures and drops in it, or as many as can be counted. */
	u32 sent;
	u32 drops;
	/* The smallest queue behind a departure, if sent. */
	u32 min;
	/* Arrivals since the last decision. */
	u32 arrivals;
	/* Time between two departures while packets wait, ns. */
	u32 gap;
	/* The last factor, 256ths. */
	u32 factor;
	struct nw_lfq_summary last;
	u8 cycles;
	bool is_known : 1;
	bool is_idle : 1;
	bool has_departed : 1;
	/* The queue has fallen to three quarters of the limit. */
	bool dipped : 1;
};

#define NW_FLOW_STATE struct nw_lfq_flow
#include "flow_scheduler.h"

#define NW_LFQ_SHIFT 8
/* A quarter and four, 256ths. */
#define NW_LFQ_SMALLEST 64
#define NW_LFQ_LARGEST 1024
/* Limits' worth of packets after which a drop ends a cycle in any case. */
#define NW_LFQ_LONGEST 16

struct nw_lfq {
	struct nw_sched sched;
	/* Parameters. Packets per decision. */
	u32 every;
	/* Packets. */
	u32 initial_limit;
	u32 min_limit;
	/* The rule that can be read, in place of the learned tree. */
	bool rule;
	/* Limits that were set anew, and cycles that ended. */
	u64 decisions;
	u64 cycles;
};

/* part / whole in these units, at most 65 535. */
static inline u16 nw_lfq_ratio(u64 part, u64 unit, u64 whole)
{
	return (u16)nw_min(nw_div(nw_min(part, 1ull << 50) * unit, nw_max(whole, 1)), 65535);
}

static inline u32 nw_lfq_packets(const struct nw_lfq_flow *f)
{
	return (u32)(f->limit >> NW_LFQ_SHIFT);
}

static inline void nw_lfq_begin_cycle(struct nw_lfq_flow *f, u64 now)
{
	f->start = now;
	f->idle = 0;
	f->sum = 0;
	f->sent = 0;
	f->drops = 0;
	f->min = 0;
	f->dipped = false;
}

/* The cycle in figures. Its idle time is a share of at least `span`. */
static inline void nw_lfq_summarise(const struct nw_lfq_flow *f, u64 span, u64 now, struct nw_lfq_summary *out)
{
	u64 limit = nw_lfq_packets(f);

	out->span = nw_sub(now, f->start);
	out->idle = nw_lfq_ratio(f->idle, 1024, nw_max(out->span, span));
	out->min = nw_lfq_ratio(f->min, 1024, limit);
	out->mean = nw_lfq_ratio(f->sum, 1024, f->sent * limit);
	out->age = nw_lfq_ratio(f->sent, 16, limit);
	out->drops = nw_lfq_ratio(f->drops, 1024, f->sent);
}

/* Sets the limit anew. */
NW_RARE void nw_lfq_decide(struct nw_lfq *q, struct nw_lfq_flow *f, u32 queue, u64 now)
{
	u64 least = (u64)nw_min(q->min_limit, q->sched.limit) << NW_LFQ_SHIFT;
	u64 most = (u64)q->sched.limit << NW_LFQ_SHIFT;
	u64 floor = nw_sub(queue, 1) << NW_LFQ_SHIFT;
	struct nw_lfq_summary cycle;
	struct nw_lfq_features features;
	u64 wanted;

	f->arrivals = 0;
	q->decisions++;
	nw_lfq_summarise(f, f->last.span, now, &cycle);
	features = (struct nw_lfq_features){
		.limit = (u32)(f->base >> NW_LFQ_SHIFT),
		.drain_us = (u32)nw_min(nw_div(f->base * f->gap >> NW_LFQ_SHIFT, 1000), NW_U32_MAX),
		.gap_us = f->gap / 1000,
		.queue = nw_lfq_ratio(queue, 1024, nw_lfq_packets(f)),
		.cycles = f->cycles,
		.idle = cycle.idle,
		.min = cycle.min,
		.mean = cycle.mean,
		.age = cycle.age,
		.drops = cycle.drops,
		.last_idle = f->last.idle,
		.last_min = f->last.min,
		.last_mean = f->last.mean,
		.last_age = f->last.age,
		.last_drops = f->last.drops,
	};
	f->factor = q->rule ? nw_lfq_rule(&features) : nw_lfq_tree(&features);
	f->factor = (u32)nw_min(nw_max(f->factor, NW_LFQ_SMALLEST), NW_LFQ_LARGEST);
	wanted = nw_min(nw_max(f->base * f->factor >> NW_LFQ_SHIFT, least), most);
	f->limit = nw_max(wanted, nw_min(floor, f->limit));
}

/* A packet finds the flow's queue full: the end of a cycle, if it has lasted. */
NW_RARE void nw_lfq_full(struct nw_lfq *q, struct nw_lfq_flow *f, u64 now)
{
	u64 limit = nw_lfq_packets(f);

	f->drops += f->drops != NW_U32_MAX;
	if (!(f->dipped && f->sent >= limit) && f->sent < limit * NW_LFQ_LONGEST)
		return;
	nw_lfq_summarise(f, 0, now, &f->last);
	nw_lfq_begin_cycle(f, now);
	f->cycles += f->cycles != 255;
	q->cycles++;
	f->base = f->limit;
}

/* A flow's first packet since it was made. */
static inline void nw_lfq_begin_flow(const struct nw_lfq *q, struct nw_lfq_flow *f, u64 now)
{
	u64 most = q->sched.limit;

	f->is_known = true;
	f->limit = nw_min(nw_max(q->initial_limit, nw_min(q->min_limit, most)), most) << NW_LFQ_SHIFT;
	f->base = f->limit;
	f->factor = 1u << NW_LFQ_SHIFT;
	nw_lfq_begin_cycle(f, now);
}

/*
 * A packet arrives. `depart` is when it may leave (looked at with pacing only). For a packet that is dropped *reason
 * says why. *slot is its flow, but not when the whole queue refuses it.
 */
NW_FREQUENT enum nw_verdict nw_lfq_enqueue(struct nw_lfq *q, u32 hash, u64 depart, u64 now, u32 *slot,
					   enum nw_reason *reason)
{
	struct nw_lfq_flow *f;
	struct nw_flow *flow;

	if (!nw_sched_admits(&q->sched, depart, now, reason))
		return NW_DROP;
	*slot = nw_sched_classify(&q->sched, hash, now);
	flow = NW_FLOW_AT(&q->sched, *slot);
	f = &flow->state;
	if (!f->is_known)
		nw_lfq_begin_flow(q, f, now);
	if (f->is_idle) {
		f->idle = nw_add(f->idle, nw_sub(now, nw_max(f->idle_since, f->start)));
		f->is_idle = false;
	}
	if (++f->arrivals >= q->every)
		nw_lfq_decide(q, f, flow->packets, now);
	*reason = NW_FLOW_LIMIT;
	if (flow->packets < nw_lfq_packets(f))
		return NW_ACCEPT;
	nw_lfq_full(q, f, now);
	return NW_DROP;
}

/* A packet was dropped from a flow's queue for a reason of the shell's, such as a limit that was lowered. */
static inline void nw_lfq_removed(struct nw_lfq *q, u32 slot, u32 len, u64 now)
{
	struct nw_flow *flow = NW_FLOW_AT(&q->sched, slot);

	nw_sched_removed(&q->sched, flow, len);
	if (flow->packets)
		return;
	flow->state.is_idle = true;
	flow->state.idle_since = now;
	flow->state.has_departed = false;
}

/* The first packet of the flow that was chosen has left. */
static inline void nw_lfq_departed(struct nw_lfq *q, u32 slot, u32 len, u64 now)
{
	struct nw_flow *flow = NW_FLOW_AT(&q->sched, slot);
	struct nw_lfq_flow *f = &flow->state;
	u32 left;

	nw_sched_sent(&q->sched, flow, len);
	left = flow->packets;
	if (f->has_departed) {
		u32 gap = (u32)nw_min(nw_sub(now, f->departed), NW_U32_MAX);

		f->gap = f->gap ? f->gap - f->gap / 16 + gap / 16 : gap;
	}
	f->departed = now;
	f->has_departed = left;
	f->idle_since = now;
	f->is_idle = !left;
	f->min = f->sent ? (u32)nw_min(f->min, left) : left;
	f->sent += f->sent != NW_U32_MAX;
	f->sum = nw_add(f->sum, left);
	f->dipped |= (u64)left * 4 <= (u64)nw_lfq_packets(f) * 3;
}

/* Forgets all flows. The shell has freed all packets. */
static inline void nw_lfq_reset(struct nw_lfq *q)
{
	nw_sched_reset(&q->sched);
}

#endif
