/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * CoDel's law (RFC 8289), after `parts/codel_law.rs`: at dequeue, above `target` for a whole `interval` → drop the
 * head, and go on dropping at spacings of interval/√count until a packet is below target again. The reciprocal square
 * root is a 16-bit fraction that one step of Newton's iteration per drop keeps up to date.
 *
 * A queue's own backlog of at most one full-sized packet counts as below target.
 *
 * Here packets are popped and dropped in the midst of a decision. The header that includes this one defines
 * NW_CODEL_OWNER, which holds the queues, and the shell defines
 *
 *   nw_pkt                        the type of a packet
 *   nw_pkt_len(owner, p)          its length, bytes
 *   nw_pkt_hash(owner, p)         the hash of its flow
 *   nw_pkt_arrived(owner, p)      when it was queued
 *   nw_pkt_mark(owner, p)         marks it CE; says whether its transport takes part in ECN
 *   nw_pkt_drop(owner, p, reason) drops it; it is in no queue any more
 *   nw_pkt_push(owner, slot, p)   puts it at the end of a queue
 *   nw_pkt_pop(owner, slot)       takes the first of a queue, which has one
 *   nw_pkt_none(p)                says whether it is no packet at all, which is NW_PKT_NONE
 *
 * NW_CODEL_POP, _LEFT and _DROP are the including header's: they keep its counts.
 */
#ifndef NARROWS_CODEL_H
#define NARROWS_CODEL_H

#include "base.h"

/* An episode that starts within this many intervals of the last drop goes on from its count (RFC 8289 §5.5). */
#define NW_CODEL_RESUME 16

struct nw_codel_law {
	/* Acceptable standing sojourn time, and how long it may be exceeded, ns. */
	u64 target;
	u64 interval;
	/* A backlog up to this counts as below target, bytes. */
	u64 mtu;
	bool ecn;
};

/* One queue's state. It outlives the queue's being empty. */
struct nw_codel {
	/* When the sojourn time will have been above target for an interval, if is_above. */
	u64 first_above;
	u64 drop_next;
	/* Drops in this episode, and what this was when it began. */
	u32 count;
	u32 lastcount;
	/* 1/√count as a 16-bit fraction. */
	u16 rec_inv_sqrt;
	bool is_above;
	bool dropping;
};

/* The root of a number of at most 33 bits, rounded down. */
static inline u32 nw_isqrt(u64 n)
{
	u32 root = 0;

	nw_for(step, 17) {
		u32 bit = 1u << (16 - step);

		if ((u64)(root + bit) * (root + bit) <= n)
			root += bit;
	}
	return root;
}

/* x ← x/2 · (3 − count·x²), with x a 16-bit fraction widened to 32 bits; exactly, where that would leave its range. */
static inline void nw_codel_newton(struct nw_codel *c)
{
	u64 x = (u64)c->rec_inv_sqrt << 16;
	u64 product = c->count * ((x * x) >> 32);
	u16 next;

	if (product <= 3ull << 32)
		next = (u16)(((((3ull << 32) - product) >> 2) * x) >> 47);
	else
		next = (u16)nw_min(nw_isqrt(nw_div(1ull << 32, nw_max(c->count, 1))), 0xffff);
	c->rec_inv_sqrt = next ? next : 1;
}

/* Time to the next drop: interval/√count. */
static inline u64 nw_codel_spacing(const struct nw_codel *c, const struct nw_codel_law *law)
{
	return nw_shr_sat(nw_mul(law->interval, c->rec_inv_sqrt), 16);
}

/* Has the sojourn time been above target for an interval? `left` bytes wait behind the packet. */
static inline bool nw_codel_ok_to_drop(struct nw_codel *c, const struct nw_codel_law *law, u64 arrived, u64 left, u64 now)
{
	if (nw_sub(now, arrived) < law->target || left <= law->mtu) {
		c->is_above = false;
		return false;
	}
	if (c->is_above)
		return now >= c->first_above;
	c->is_above = true;
	c->first_above = nw_later(now, law->interval);
	return false;
}

/* Takes and judges a packet. */
static inline nw_pkt nw_codel_dodequeue(NW_CODEL_OWNER *owner, u32 slot, struct nw_codel *c, const struct nw_codel_law *law,
					u64 now, bool *ok_to_drop)
{
	nw_pkt packet = NW_CODEL_POP(owner, slot);

	*ok_to_drop = false;
	if (nw_pkt_none(packet))
		c->is_above = false;
	else
		*ok_to_drop = nw_codel_ok_to_drop(c, law, nw_pkt_arrived(owner, packet), NW_CODEL_LEFT(owner, slot), now);
	return packet;
}

/* In an episode: one drop is due, or several when drops are dense, or none. */
static inline nw_pkt nw_codel_go_on(NW_CODEL_OWNER *owner, u32 slot, struct nw_codel *c, const struct nw_codel_law *law, u64 now,
				    nw_pkt head)
{
	nw_for(dropped, NW_U32_MAX) {
		bool ok_to_drop;

		if (now < c->drop_next)
			break;
		c->count++;
		nw_codel_newton(c);
		if (law->ecn && nw_pkt_mark(owner, head)) {
			c->drop_next = nw_later(c->drop_next, nw_codel_spacing(c, law));
			return head;
		}
		NW_CODEL_DROP(owner, slot, head);
		head = nw_codel_dodequeue(owner, slot, c, law, now, &ok_to_drop);
		if (!ok_to_drop) {
			c->dropping = false;
			return head;
		}
		c->drop_next = nw_later(c->drop_next, nw_codel_spacing(c, law));
	}
	return head;
}

/* An episode begins: the packet that ended the interval above target is dropped; the next is returned. */
static inline nw_pkt nw_codel_enter(NW_CODEL_OWNER *owner, u32 slot, struct nw_codel *c, const struct nw_codel_law *law, u64 now,
				    nw_pkt head)
{
	u32 gained;
	bool ok_to_drop;

	if (!law->ecn || !nw_pkt_mark(owner, head)) {
		NW_CODEL_DROP(owner, slot, head);
		head = nw_codel_dodequeue(owner, slot, c, law, now, &ok_to_drop);
	}
	c->dropping = true;
	gained = c->count - c->lastcount;
	if (gained > 1 && nw_sub(now, c->drop_next) < nw_mul_sat(law->interval, NW_CODEL_RESUME)) {
		c->count = gained;
		nw_codel_newton(c);
	} else {
		c->count = 1;
		c->rec_inv_sqrt = 0xffff;
	}
	c->lastcount = c->count;
	c->drop_next = nw_later(now, nw_codel_spacing(c, law));
	return head;
}

/* Takes the next packet to deliver from a queue; drops those that the law condemns. NW_PKT_NONE when none is left. */
static inline nw_pkt nw_codel_dequeue(NW_CODEL_OWNER *owner, u32 slot, struct nw_codel *c, const struct nw_codel_law *law, u64 now)
{
	nw_pkt head = NW_CODEL_POP(owner, slot);
	bool ok_to_drop;

	if (nw_pkt_none(head)) {
		c->dropping = false;
		c->is_above = false;
		return head;
	}
	ok_to_drop = nw_codel_ok_to_drop(c, law, nw_pkt_arrived(owner, head), NW_CODEL_LEFT(owner, slot), now);
	if (!c->dropping)
		return ok_to_drop ? nw_codel_enter(owner, slot, c, law, now, head) : head;
	if (!ok_to_drop) {
		c->dropping = false;
		return head;
	}
	return nw_codel_go_on(owner, slot, c, law, now, head);
}

#endif
