/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Congestion policing (Menth, Veith, 2018), after `cp.rs`: one queue, whose arrivals pay for the congestion that they
 * add to.
 *
 * - Nothing is paid while the queue is shorter than `threshold`, then ever more per byte: see policer.h.
 * - Tokens come at a given rate or, with `follow_drain`, at the rate measured while packets waited; until one has
 *   been measured, at the given one.
 * - A burst may fill the whole queue once: the bucket is made for that.
 *
 * The shell: for a packet that arrives call nw_cp_enqueue and do what it says; after NW_ACCEPT, or NW_ACCEPT_MARKED
 * and a mark, link the packet and call nw_cp_queued. Call nw_cp_departed for each packet that is sent, and
 * nw_cp_removed for one that is dropped while it waits.
 */
#ifndef NARROWS_CP_H
#define NARROWS_CP_H

#include "base.h"
#include "drain_rate.h"
#include "policer.h"

struct nw_cp {
	struct nw_policer_law law;
	/* Parameters. Most that waits, in packets or in bytes. */
	u64 limit;
	bool limit_is_bytes;
	/* Refill at the measured rate. */
	bool follow_drain;
	/* Mark instead of dropping. */
	bool ecn;
	/* Rate of the tokens, bit/s. */
	u64 rate;
	/* State. */
	struct nw_policer policer;
	struct nw_drain_rate drain;
	u32 packets;
	u64 bytes;
};

/* The rate of the tokens now, bit/s. */
static inline u64 nw_cp_token_rate(struct nw_cp *q)
{
	return q->follow_drain ? nw_drain_rate(&q->drain, q->rate) : q->rate;
}

/* The most bytes that the queue may hold, which is where congestion is largest. */
static inline u64 nw_cp_most(u64 limit, bool limit_is_bytes, u64 mtu)
{
	return limit_is_bytes ? limit : nw_mul_sat(limit, mtu);
}

/* A packet arrives. For one that is dropped *reason says why. */
static inline enum nw_verdict nw_cp_enqueue(struct nw_cp *q, u32 len, u64 now, enum nw_reason *reason)
{
	bool fits = q->limit_is_bytes ? q->bytes + len <= q->limit : q->packets < q->limit;

	if (!fits) {
		*reason = NW_QUEUE_FULL;
		return NW_DROP;
	}
	*reason = NW_POLICED;
	if (nw_policer_admits(&q->policer, &q->law, q->bytes, len, nw_cp_token_rate(q), now))
		return NW_ACCEPT;
	return q->ecn ? NW_ACCEPT_MARKED : NW_DROP;
}

/* The packet that was accepted is in the queue. */
static inline void nw_cp_queued(struct nw_cp *q, u32 len)
{
	q->packets++;
	q->bytes += len;
}

/* A packet has left the queue without being sent. */
static inline void nw_cp_removed(struct nw_cp *q, u32 len)
{
	q->packets--;
	q->bytes -= len;
}

/* A packet has left the queue. */
static inline void nw_cp_departed(struct nw_cp *q, u32 len, u64 now)
{
	nw_cp_removed(q, len);
	if (q->follow_drain)
		nw_drain_on_departure(&q->drain, len, q->packets > 0, now);
}

/* The given rate has changed. What came until now came at the old one. */
static inline void nw_cp_set_rate(struct nw_cp *q, u64 rate, u64 now)
{
	nw_policer_fill(&q->policer, &q->law, nw_cp_token_rate(q), now);
	q->rate = rate;
}

/* Forgets what was measured; the bucket is full. The shell has freed all packets. */
static inline void nw_cp_reset(struct nw_cp *q, u64 now)
{
	nw_policer_init(&q->policer, &q->law, now);
	q->drain = (struct nw_drain_rate){ 0 };
	q->packets = 0;
	q->bytes = 0;
}

#endif
