/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Cocoa (Bachl, Fabini, Zseby: "Cocoa: Congestion Control Aware Queuing", 2019), after `cocoa.rs`: fair queuing whose
 * buffer for each flow grows until the flow's congestion control keeps the link busy, and shrinks until no standing
 * queue is left.
 *
 * - An interval lies between two drops of a flow. A flow that ran dry in it needs a larger buffer: as many packets
 *   more as it would have sent meanwhile, at most `max_increase` times what it had. The packet that finds the queue
 *   full is let in.
 * - A guard interval, `multiplier` times the longest interval of the one before, keeps bursts of drops from being
 *   taken for intervals. When it is over, what never left the queue in its longest interval is a standing queue, and
 *   is taken away.
 * - An interval without a departure says nothing of a standing queue. Limits have a floor.
 *
 * Limits are in packets, with parts of one in 1024ths. Divisions happen only where a flow's queue is full.
 *
 * The shell: for a packet that arrives call nw_cocoa_enqueue and do what it says; after NW_ACCEPT link the packet to
 * the flow and call nw_sched_queued; after NW_DROP_AND_TRIM drop packets from the end of the flow's queue, with
 * nw_cocoa_trimmed for each, while nw_cocoa_has_surplus. To send call nw_sched_next, and nw_cocoa_departed when the
 * packet is out of its list.
 */
#ifndef NARROWS_COCOA_H
#define NARROWS_COCOA_H

#include "base.h"

/* What was decided last about a flow. */
enum nw_cocoa_decision {
	NW_COCOA_NONE = 0,
	/* The limit grew. */
	NW_COCOA_GREW = 1,
	/* The first interval, or one with a growth, ended: everything is measured anew. */
	NW_COCOA_BEGAN_ANEW = 2,
	/* The guard interval was over; a standing queue, if any, was taken away. */
	NW_COCOA_JUDGED = 3,
	/* Another interval of the same guard interval. */
	NW_COCOA_NEXT_INTERVAL = 4,
	NW_COCOA_DECISIONS
};

/* What is known of a flow. */
struct nw_cocoa_flow {
	/* When its queue ran empty, if is_idle. */
	u64 idle_since;
	/* The interval: its start, and the time in it during which the flow had nothing to send. */
	u64 interval_start;
	u64 interval_idle;
	/* The longest interval of the guard interval. */
	u64 longest;
	u64 guard_ends;
	/* When the spin bit changed last, if spin_has_changed; and the round-trip time, if has_rtt. */
	u64 spin_changed;
	u64 rtt;
	/* The idle time that the last decision was based on. */
	u64 decision_idle;
	u32 limit;
	/* Packets sent in the interval, or as many as can be counted. */
	u32 sent;
	/* Smallest queue after a departure of the interval, if has_min; and of the longest interval. */
	u32 min_queue;
	u32 longest_min_queue;
	/* 1024ths of a packet that the limit is beyond `limit`. */
	u16 part;
	/* One of enum nw_cocoa_decision. */
	u8 decision;
	bool is_known : 1;
	/* No drop yet. */
	bool first : 1;
	bool is_idle : 1;
	/* The limit has grown in the interval. */
	bool grown : 1;
	bool has_min : 1;
	bool longest_has_min : 1;
	bool spin : 1;
	bool spin_has_changed : 1;
	bool has_rtt : 1;
};

#define NW_FLOW_STATE struct nw_cocoa_flow
#include "flow_scheduler.h"

/* The parameters, in integers. */
struct nw_cocoa_law {
	/* Longest guard interval, ns. */
	u64 max_guard;
	/* Length of a guard interval as a multiple of the longest interval in the one before, 1024ths. */
	u32 multiplier;
	/* Largest factor by which one decision multiplies a limit, 1024ths. */
	u32 max_increase;
	/* Longest guard interval as a multiple of the flow's round-trip time; zero for none. */
	u32 guard_rtts;
	/* Packets. */
	u32 initial_limit;
	u32 min_limit;
	/* A part of a packet by which a limit should grow is lost, as in the authors' code. */
	bool whole;
	/* Start flows with the mean limit of earlier ones. */
	bool learn;
};

struct nw_cocoa {
	struct nw_cocoa_law law;
	struct nw_sched sched;
	/* Eight times the mean limit that flows have come to, if has_learned. */
	u64 learned8;
	bool has_learned;
	/* How often each decision was made, and limits that were shrunk. */
	u64 decisions[NW_COCOA_DECISIONS];
	u64 shrunk;
};

static inline u32 nw_cocoa_initial_limit(const struct nw_cocoa *q)
{
	u32 most = q->sched.limit;
	u64 start = q->law.learn && q->has_learned ? (u32)(q->learned8 / 8) : q->law.initial_limit;

	return (u32)nw_min(nw_max(start, nw_min(q->law.min_limit, most)), most);
}

/* A flow has come to a limit. */
static inline void nw_cocoa_learn(struct nw_cocoa *q, u32 limit)
{
	q->learned8 = q->has_learned ? q->learned8 + limit - q->learned8 / 8 : (u64)limit * 8;
	q->has_learned = true;
}

static inline void nw_cocoa_begin_interval(struct nw_cocoa_flow *f, u64 now)
{
	f->interval_start = now;
	f->interval_idle = 0;
	f->sent = 0;
	f->has_min = false;
	f->grown = false;
}

/* What a limit (1024ths of a packet) grows to: by what would have been sent while the flow was idle. */
static inline u64 nw_cocoa_grown(const struct nw_cocoa *q, const struct nw_cocoa_flow *f, u64 limit, u64 now)
{
	u64 active = nw_max(nw_sub(nw_sub(now, f->interval_start), f->interval_idle), 1);
	u64 most = nw_min(limit * q->law.max_increase >> NW_ONE_SHIFT, (u64)q->sched.limit << NW_ONE_SHIFT);
	u64 missed;

	if (q->law.whole)
		missed = nw_mul_sat(nw_mul_div(f->sent, f->interval_idle, active), NW_ONE);
	else
		missed = nw_mul_div((u64)f->sent << NW_ONE_SHIFT, f->interval_idle, active);
	return nw_min(nw_add(limit, missed), nw_max(most, limit));
}

/* How long the guard interval is that follows one with this longest interval. */
static inline u64 nw_cocoa_guard(const struct nw_cocoa_law *law, const struct nw_cocoa_flow *f)
{
	u64 length = nw_shr_sat(nw_mul(f->longest, law->multiplier), NW_ONE_SHIFT);
	u64 bound = law->max_guard;

	if (law->guard_rtts && f->has_rtt)
		bound = nw_min(bound, nw_mul_sat(f->rtt, law->guard_rtts));
	return nw_min(length, bound);
}

/* A packet finds the flow's queue full (algorithm 1 of the paper). */
NW_RARE enum nw_verdict nw_cocoa_full(struct nw_cocoa *q, struct nw_cocoa_flow *f, u64 now)
{
	u64 idle = f->interval_idle;
	u32 standing = 0;
	bool anew, judged;

	f->decision_idle = idle;
	if (idle && !f->first && !f->grown) {
		u64 grown = nw_cocoa_grown(q, f, ((u64)f->limit << NW_ONE_SHIFT) + f->part, now);

		f->limit = (u32)(grown >> NW_ONE_SHIFT);
		f->part = grown & (NW_ONE - 1);
		f->grown = true;
		f->decision = NW_COCOA_GREW;
		q->decisions[NW_COCOA_GREW]++;
		return NW_ACCEPT;
	}
	anew = f->first || f->grown;
	judged = !anew && now >= f->guard_ends;
	if (nw_sub(now, f->interval_start) >= f->longest) {
		f->longest = nw_sub(now, f->interval_start);
		f->longest_min_queue = f->min_queue;
		f->longest_has_min = f->has_min;
	}
	nw_cocoa_begin_interval(f, now);
	f->first = false;
	if (judged && f->longest_has_min)
		standing = f->longest_min_queue;
	f->limit = (u32)nw_max(nw_sub(f->limit, standing), nw_min(q->law.min_limit, f->limit));
	if (anew || judged) {
		f->guard_ends = nw_later(now, nw_cocoa_guard(&q->law, f));
		f->longest = 0;
		f->longest_has_min = false;
		nw_cocoa_learn(q, f->limit);
	}
	f->decision = anew ? NW_COCOA_BEGAN_ANEW : judged ? NW_COCOA_JUDGED : NW_COCOA_NEXT_INTERVAL;
	q->decisions[f->decision]++;
	if (!standing)
		return NW_DROP;
	q->shrunk++;
	return NW_DROP_AND_TRIM;
}

/* A flow's first packet since it was made. */
static inline void nw_cocoa_begin_flow(struct nw_cocoa *q, struct nw_cocoa_flow *f, u64 now)
{
	f->is_known = true;
	f->first = true;
	f->limit = nw_cocoa_initial_limit(q);
	f->guard_ends = now;
	nw_cocoa_begin_interval(f, now);
}

/* The time between two changes of the spin bit is a round trip (RFC 9000 §17.4). */
static inline void nw_cocoa_spin(struct nw_cocoa_flow *f, bool spin, u64 now)
{
	if (spin == f->spin)
		return;
	f->spin = spin;
	if (f->spin_has_changed) {
		f->rtt = nw_sub(now, f->spin_changed);
		f->has_rtt = true;
	}
	f->spin_changed = now;
	f->spin_has_changed = true;
}

/*
 * A packet arrives. `depart` is when it may leave (looked at with pacing only), `spin` its spin bit, false where
 * there is none. For a packet that is dropped *reason says why. *slot is its flow but after NW_DROP.
 */
NW_FREQUENT enum nw_verdict nw_cocoa_enqueue(struct nw_cocoa *q, u32 hash, u64 depart, bool spin, u64 now, u32 *slot,
					     enum nw_reason *reason)
{
	enum nw_verdict verdict = NW_ACCEPT;
	struct nw_cocoa_flow *f;
	struct nw_flow *flow;

	if (!nw_sched_admits(&q->sched, depart, now, reason))
		return NW_DROP;
	*slot = nw_sched_classify(&q->sched, hash, now);
	flow = NW_FLOW_AT(&q->sched, *slot);
	f = &flow->state;
	if (!f->is_known)
		nw_cocoa_begin_flow(q, f, now);
	if (f->is_idle) {
		f->interval_idle = nw_add(f->interval_idle, nw_sub(now, nw_max(f->idle_since, f->interval_start)));
		f->is_idle = false;
	}
	nw_cocoa_spin(f, spin, now);
	if (flow->packets >= f->limit)
		verdict = nw_cocoa_full(q, f, now);
	*reason = NW_FLOW_LIMIT;
	return verdict;
}

/* Has the flow more packets than its limit? */
static inline bool nw_cocoa_has_surplus(const struct nw_cocoa *q, u32 slot)
{
	const struct nw_flow *flow = NW_FLOW_AT(&q->sched, slot);

	return flow->packets > flow->state.limit;
}

/* A packet was dropped from the end of a flow's queue, because the queue is longer than its limit. */
static inline void nw_cocoa_trimmed(struct nw_cocoa *q, u32 slot, u32 len)
{
	nw_sched_removed(&q->sched, NW_FLOW_AT(&q->sched, slot), len);
}

/* A packet was dropped from a flow's queue for a reason of the shell's, such as a limit that was lowered. */
static inline void nw_cocoa_removed(struct nw_cocoa *q, u32 slot, u32 len, u64 now)
{
	struct nw_flow *flow = NW_FLOW_AT(&q->sched, slot);

	nw_sched_removed(&q->sched, flow, len);
	if (!flow->packets) {
		flow->state.is_idle = true;
		flow->state.idle_since = now;
	}
}

/* The first packet of the flow that was chosen has left. */
static inline void nw_cocoa_departed(struct nw_cocoa *q, u32 slot, u32 len, u64 now)
{
	struct nw_flow *flow = NW_FLOW_AT(&q->sched, slot);
	struct nw_cocoa_flow *f = &flow->state;

	nw_sched_sent(&q->sched, flow, len);
	f->sent += f->sent != (u32)-1;
	f->min_queue = f->has_min ? (u32)nw_min(f->min_queue, flow->packets) : flow->packets;
	f->has_min = true;
	if (!flow->packets) {
		f->is_idle = true;
		f->idle_since = now;
	}
}

/* Forgets all flows and what was learned of them. The shell has freed all packets. */
static inline void nw_cocoa_reset(struct nw_cocoa *q)
{
	nw_sched_reset(&q->sched);
	q->has_learned = false;
}

#endif
