/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Congestion policing (Menth, Veith: "Active Queue Management Based on Congestion Policing (CP-AQM)", 2018, §3),
 * after `parts/congestion_policer.rs`: a token bucket that is paid not in bytes but in congestion, which only exists
 * while a queue is long. A packet of B bytes that finds x bytes queued contributes B · c(x): nothing below the
 * threshold, B at it, and cmax · B when the queue is full. With too few tokens it is turned away, and costs nothing.
 *
 * Deviates: cmax is given in 2⁻³²ths, and the rule for the bucket's depth is computed in integers, where the model
 * uses floating point. The rule's depth differs by at most 1 + span · 2⁻³³ bytes, and not at all for a cmax that both
 * can express.
 */
#ifndef NARROWS_POLICER_H
#define NARROWS_POLICER_H

#include "base.h"

/* The deepest bucket, bytes: tokens are counted in bit·ns/s in 64 bits. */
#define NW_MAX_BUCKET (1ull << 30)

struct nw_policer_law {
	/* Bytes queued from which there is congestion (Tc). */
	u64 threshold;
	/* Rise of c per byte beyond it, 2⁻³²ths: (cmax − 1) / (Qmax − Tc). */
	u64 slope;
	/* Depth of the bucket, bit·ns/s (BCA). */
	u64 depth;
};

struct nw_policer {
	/* Tokens, bit·ns/s. */
	u64 tokens;
	/* Filled up to this instant. */
	u64 filled;
};

/*
 * A bucket (bytes) that lets a burst fill the queue: (Qmax − Tc) · (1 + cmax) / 2 (§3.3), rounded up, and a packet
 * more; at most what tokens can count. `excess` is cmax − 1 in 2⁻³²ths.
 */
static inline u64 nw_policer_rule(u64 threshold, u64 most, u64 excess, u64 mtu)
{
	u64 span = nw_sub(most, threshold);
	struct nw_u128 half = nw_mul(span, excess);
	/* span · excess / 2³³, rounded up. */
	u64 extra = nw_add(nw_shr_sat(half, 33), (half.lo & ((1ull << 33) - 1)) != 0);

	return nw_min(nw_add(nw_add(span, extra), mtu), NW_MAX_BUCKET);
}

/* For a queue of at most `most` bytes and a bucket of `bucket` bytes. */
static inline void nw_policer_law_init(struct nw_policer_law *law, u64 threshold, u64 most, u64 excess, u64 bucket)
{
	law->threshold = threshold;
	law->slope = nw_div(excess, nw_max(nw_sub(most, threshold), 1));
	law->depth = nw_mul_sat(bucket, NW_BYTE);
}

/*
 * For tokens at a measured rate a packet that finds nothing queued is free, even with a threshold of nothing: drain
 * is only measured while packets wait, so a rate once measured too low could never be unlearned.
 */
static inline void nw_policer_for_measured_rate(struct nw_policer_law *law)
{
	law->threshold = nw_max(law->threshold, 1);
}

/* A full bucket. */
static inline void nw_policer_init(struct nw_policer *policer, const struct nw_policer_law *law, u64 now)
{
	policer->tokens = law->depth;
	policer->filled = now;
}

/* Congestion that a packet contributes, bit·ns/s. */
static inline u64 nw_policer_cost(const struct nw_policer_law *law, u64 queued, u32 len)
{
	u64 plain, excess;

	if (queued < law->threshold)
		return 0;
	plain = nw_mul_sat(len, NW_BYTE);
	excess = nw_mul_sat(queued - law->threshold, law->slope);
	return nw_add(plain, nw_shr_sat(nw_mul(plain, excess), 32));
}

/* Tokens that have come at a rate (bit/s) since the last time. */
static inline void nw_policer_fill(struct nw_policer *policer, const struct nw_policer_law *law, u64 rate, u64 now)
{
	u64 gained = nw_mul_sat(rate, nw_sub(now, policer->filled));

	policer->tokens = nw_min(nw_add(policer->tokens, gained), law->depth);
	policer->filled = now;
}

/* Does a packet that finds `queued` bytes stay within the allowance? It has paid then. */
static inline bool nw_policer_admits(struct nw_policer *policer, const struct nw_policer_law *law, u64 queued, u32 len, u64 rate,
				     u64 now)
{
	u64 cost = nw_policer_cost(law, queued, len);

	nw_policer_fill(policer, law, rate, now);
	if (policer->tokens < cost)
		return false;
	policer->tokens -= cost;
	return true;
}

/* Tokens, bytes. */
static inline u64 nw_policer_tokens(const struct nw_policer *policer)
{
	return nw_div(policer->tokens, NW_BYTE);
}

#endif
