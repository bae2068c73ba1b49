/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * FQ-CoDel that protects backlogged flows, after `fq_codel_fair.rs`, which explains the rules:
 *
 * - A flow that has been sent no more than the backlogged ones is served first; any other waits its turn. Virtual
 *   time, the lowest tag of the backlogged flows in the last round, says which.
 * - Newcomers, 5-tuples not seen in `memory`, share one queue until a packet of theirs has been sent, and count as
 *   one flow until they have been sending for `probation` and been sent a quantum. What they are sent meanwhile is a
 *   debt.
 * - A full buffer costs the flow with most packets beyond its part of it.
 * - CoDel's target is at least the time in which each waiting flow sends a packet.
 *
 * The shell defines the functions of codel.h for packets; and NW_FLOW_LINKS, fields for a flow's list of packets. For
 * a packet that arrives it calls nw_fair_enqueue, which pushes or drops it; to send, nw_fair_dequeue.
 *
 * Memory: a flow for each bucket and one for newcomers, the shell's from the start. The search for a flow that pays
 * for a full buffer walks the flows that wait; it then drops up to 64 packets.
 *
 * Deviates: see codel.h.
 */
#ifndef NARROWS_FQ_CODEL_FAIR_H
#define NARROWS_FQ_CODEL_FAIR_H

#include "base.h"
#include "drain_rate.h"

/* Most packets that one overflow drops. */
#define NW_FAIR_BATCH 64u

struct nw_fair;
#define NW_CODEL_OWNER struct nw_fair
static inline nw_pkt nw_fair_pop(struct nw_fair *q, u32 slot);
static inline u64 nw_fair_left(const struct nw_fair *q, u32 slot);
static inline void nw_fair_drop_head(struct nw_fair *q, u32 slot, nw_pkt packet);
#define NW_CODEL_POP nw_fair_pop
#define NW_CODEL_LEFT nw_fair_left
#define NW_CODEL_DROP nw_fair_drop_head
#include "codel.h"

struct nw_flow {
	NW_FLOW_LINKS
	/* Bytes that wait, and packets. */
	u64 bytes;
	u32 packets;
	s32 deficit;
	/* The next flow on its list. */
	u32 next;
	/* The 5-tuple that the bucket belongs to, if has_owner. */
	u32 owner;
	/* What it has been sent, as virtual time counts it, bytes. */
	u64 tag;
	/* When the owner last sent, and, of a newcomer, when it came. */
	u64 seen;
	u64 since;
	/* It waits until this many newcomers have left: the last of them is the owner's. */
	u64 until;
	/* Bytes that a newcomer has been sent. */
	u32 sent;
	u8 listed;
	bool has_owner : 1;
	bool settled : 1;
	struct nw_codel codel;
};

struct nw_fair {
	/* Parameters. */
	struct nw_codel_law law;
	u32 limit;
	u32 newcomers_limit;
	u64 memory;
	u64 probation;
	u64 ahead;
	/* bit/s, until a rate has been measured. */
	u64 link_rate;
	/* Buckets of flows. The slot with this number is that of newcomers. */
	u32 n_flows;
	s32 quantum;
	struct nw_flow *flows;
	/* State. */
	struct nw_list new_flows;
	struct nw_list old_flows;
	/* Flows that are listed, and those of them that have settled. */
	u32 waiting;
	u32 settled_waiting;
	/* The lowest tag of the backlogged flows in the last round, bytes. */
	u64 virtual_time;
	/*
	 * The round: slots plus one, whose turn it was at its start and last; others have had a turn since; turns;
	 * lowest tag.
	 */
	u32 round_first;
	u32 round_last;
	bool round_others;
	bool round_has_lowest;
	u32 round_turns;
	u64 round_lowest;
	/* Newcomers that have been queued, and that have left again. */
	u64 came;
	u64 left;
	/* What newcomers have been sent, beyond one share, while settled flows waited, bytes. */
	u64 debt;
	/* When the last packet left. */
	u64 departed;
	struct nw_drain_rate drain;
	u32 packets;
	u64 bytes;
};

#define NW_FLOW_AT(q, n) (&(q)->flows[n])
#define NW_DRR_OWNER struct nw_fair
#include "drr.h"

/* The first packet of a queue, accounted for. */
static inline nw_pkt nw_fair_pop(struct nw_fair *q, u32 slot)
{
	struct nw_flow *flow = NW_FLOW_AT(q, slot);
	nw_pkt packet;
	u32 len;

	if (!flow->packets)
		return NW_PKT_NONE;
	packet = nw_pkt_pop(q, slot);
	len = nw_pkt_len(q, packet);
	flow->packets--;
	flow->bytes -= len;
	q->packets--;
	q->bytes -= len;
	return packet;
}

static inline void nw_fair_push(struct nw_fair *q, u32 slot, nw_pkt packet)
{
	struct nw_flow *flow = NW_FLOW_AT(q, slot);
	u32 len = nw_pkt_len(q, packet);

	nw_pkt_push(q, slot, packet);
	flow->packets++;
	flow->bytes += len;
	q->packets++;
	q->bytes += len;
}

static inline u64 nw_fair_left(const struct nw_fair *q, u32 slot)
{
	return NW_FLOW_AT(q, slot)->bytes;
}

/* The link's rate, as measured. */
static inline u64 nw_fair_rate(struct nw_fair *q)
{
	return nw_drain_rate(&q->drain, q->link_rate);
}

/* A bucket's flow has packets here or there, or was heard of lately. */
static inline bool nw_fair_is_owned(const struct nw_fair *q, u32 slot, u64 now)
{
	const struct nw_flow *flow = NW_FLOW_AT(q, slot);

	if (flow->packets || flow->until > q->left || flow->listed)
		return true;
	return flow->has_owner && nw_sub(now, flow->seen) <= q->memory;
}

/* One of the two buckets that a 5-tuple may have. */
static inline u32 nw_fair_bucket(const struct nw_fair *q, u32 hash, u32 which)
{
	return nw_scale(which ? nw_mix(hash, 1) : hash, q->n_flows);
}

/* The bucket that belongs to a 5-tuple, or last did, plus one. */
static inline u32 nw_fair_bucket_of(const struct nw_fair *q, u32 hash)
{
	nw_for(which, 2) {
		u32 slot = nw_fair_bucket(q, hash, which);

		if (NW_FLOW_AT(q, slot)->has_owner && NW_FLOW_AT(q, slot)->owner == hash)
			return slot + 1;
	}
	return 0;
}

/* Is there room among the newcomers? */
static inline bool nw_fair_has_room(const struct nw_fair *q)
{
	return NW_FLOW_AT(q, q->n_flows)->packets < q->newcomers_limit;
}

/* Flows wait, and newcomers have used up what they may be ahead of them. */
static inline bool nw_fair_is_overdrawn(struct nw_fair *q)
{
	return q->settled_waiting && q->debt && q->debt >= nw_bytes_in(nw_fair_rate(q), q->ahead);
}

/* A newcomer that has lasted and been sent a quantum becomes a flow. */
static inline void nw_fair_settle(struct nw_fair *q, u32 slot, u64 now)
{
	struct nw_flow *flow = NW_FLOW_AT(q, slot);

	if (flow->settled || flow->sent < (u32)q->quantum || nw_sub(now, flow->since) < q->probation)
		return;
	flow->settled = true;
	q->settled_waiting += flow->listed != NW_UNLISTED;
}

/*
 * A newcomer has a queue of its own when a packet of its has been sent and while newcomers may be ahead. What waits
 * there already is not overtaken.
 */
static inline bool nw_fair_has_own_queue(struct nw_fair *q, u32 slot)
{
	const struct nw_flow *flow = NW_FLOW_AT(q, slot);

	return flow->settled || (flow->sent && !nw_fair_is_overdrawn(q)) || flow->packets || flow->listed;
}

/* Gives a newcomer a bucket of its own, from its next packet on, if one is free. */
static inline void nw_fair_register(struct nw_fair *q, u32 hash, u64 now)
{
	/* With no room among the newcomers its packet is dropped, and nobody's first. */
	if (!nw_fair_has_room(q))
		return;
	nw_for(which, 2) {
		u32 slot = nw_fair_bucket(q, hash, which);
		struct nw_flow *flow = NW_FLOW_AT(q, slot);

		if (nw_fair_is_owned(q, slot, now))
			continue;
		flow->has_owner = true;
		flow->owner = hash;
		flow->seen = now;
		flow->until = q->came + 1;
		flow->settled = false;
		flow->since = now;
		flow->sent = 0;
		return;
	}
}

/* The queue for a packet: its flow's own, or the newcomers'. */
static inline u32 nw_fair_classify(struct nw_fair *q, u32 hash, u64 now)
{
	u32 found = nw_fair_bucket_of(q, hash);

	if (!found || !nw_fair_is_owned(q, found - 1, now)) {
		nw_fair_register(q, hash, now);
		return q->n_flows;
	}
	NW_FLOW_AT(q, found - 1)->seen = now;
	nw_fair_settle(q, found - 1, now);
	if (nw_fair_has_own_queue(q, found - 1))
		return found - 1;
	if (nw_fair_has_room(q))
		NW_FLOW_AT(q, found - 1)->until = q->came + 1;
	return q->n_flows;
}

/* A flow that was idle joins those that wait: first if it is within its share. */
static inline void nw_fair_join(struct nw_fair *q, u32 slot)
{
	struct nw_flow *flow = NW_FLOW_AT(q, slot);

	flow->listed = NW_LISTED;
	/* Backlogged flows move in steps of a quantum: who is less than that ahead is not ahead. */
	if (flow->tag <= q->virtual_time + (u32)q->quantum) {
		flow->deficit = q->quantum;
		nw_list_push(q, &q->new_flows, slot);
	} else {
		/* Going away for a moment does not pay off a debt. */
		flow->deficit = q->quantum + (flow->deficit < 0 ? flow->deficit : 0);
		nw_list_push(q, &q->old_flows, slot);
	}
	q->waiting++;
	q->settled_waiting += flow->settled;
}

/* The flow whose turn it is waits no longer. */
static inline void nw_fair_leave(struct nw_fair *q, u32 slot)
{
	nw_drr_unlist(q);
	q->waiting--;
	q->settled_waiting -= NW_FLOW_AT(q, slot)->settled;
}

/* A newcomer has left, after `bytes` of it were sent: its flow's own queue may go on. */
static inline void nw_fair_let_go(struct nw_fair *q, u32 hash, u32 bytes)
{
	u32 found = nw_fair_bucket_of(q, hash);
	struct nw_flow *flow;

	q->left++;
	if (!found)
		return;
	flow = NW_FLOW_AT(q, found - 1);
	if (!flow->settled)
		flow->sent = (u32)nw_min((u64)flow->sent + bytes, NW_U32_MAX);
	if (flow->until <= q->left && flow->packets && !flow->listed)
		nw_fair_join(q, found - 1);
}

/* CoDel drops a packet. If it is a newcomer's, its flow's own queue may go on, which is no concern of CoDel's. */
static inline void nw_fair_drop_head(struct nw_fair *q, u32 slot, nw_pkt packet)
{
	if (slot == q->n_flows)
		nw_fair_let_go(q, nw_pkt_hash(q, packet), 0);
	nw_pkt_drop(q, packet, NW_AQM);
}

/* Newcomers may not get further ahead: the packets of the one whose turn it is join the others'. */
static inline void nw_fair_park(struct nw_fair *q, u32 slot)
{
	nw_fair_leave(q, slot);
	nw_for(parked, NW_U32_MAX) {
		nw_pkt packet = nw_fair_pop(q, slot);

		if (nw_pkt_none(packet))
			break;
		if (nw_fair_has_room(q)) {
			q->came++;
			NW_FLOW_AT(q, slot)->until = q->came;
			nw_fair_push(q, q->n_flows, packet);
		} else {
			nw_pkt_drop(q, packet, NW_FLOW_LIMIT);
		}
	}
	if (!NW_FLOW_AT(q, q->n_flows)->listed)
		nw_fair_join(q, q->n_flows);
}

/* A flow that newcomers keep from sending settles all the same. */
static inline void nw_fair_settle_next(struct nw_fair *q, u64 now)
{
	u32 next = q->old_flows.head;

	if (q->settled_waiting || !q->new_flows.head || !next)
		return;
	if (next - 1 == q->n_flows)
		next = NW_FLOW_AT(q, next - 1)->next;
	if (next)
		nw_fair_settle(q, next - 1, now);
}

/* Books what was sent. */
static inline void nw_fair_charge(struct nw_fair *q, u32 slot, u32 len)
{
	struct nw_flow *flow = NW_FLOW_AT(q, slot);

	nw_drr_charge(&flow->deficit, len);
	flow->tag = nw_max(flow->tag, q->virtual_time) + len;
	if (flow->settled)
		return;
	flow->sent = (u32)nw_min((u64)flow->sent + len, NW_U32_MAX);
	/* What is sent while no flow waits is taken from nobody. */
	if (q->settled_waiting)
		q->debt += len;
}

/* An old flow has its turn: virtual time becomes the lowest tag of a round. */
static inline void nw_fair_follow(struct nw_fair *q, u32 slot)
{
	u64 tag = nw_max(NW_FLOW_AT(q, slot)->tag, q->virtual_time);
	const struct nw_list *list = q->new_flows.head ? &q->new_flows : &q->old_flows;
	u64 before = q->virtual_time;
	bool comes_again;

	if (!q->round_first)
		q->round_first = slot + 1;
	comes_again = slot + 1 == q->round_first && q->round_others;
	q->round_others |= slot + 1 != q->round_first;
	q->round_turns += q->round_last != slot + 1;
	q->round_last = slot + 1;
	q->round_lowest = q->round_has_lowest ? nw_min(q->round_lowest, tag) : tag;
	q->round_has_lowest = true;
	/* Should the first have gone away, as many turns as flows wait will do. */
	if (!comes_again && list->head != list->tail && q->round_turns < q->waiting)
		return;
	q->virtual_time = nw_max(before, q->round_lowest);
	q->debt = nw_sub(q->debt, q->virtual_time - before);
	q->round_first = 0;
	q->round_last = 0;
	q->round_others = false;
	q->round_has_lowest = false;
	q->round_turns = 0;
}

/* CoDel's law at the present share: no packet need leave sooner than each waiting flow's has. */
static inline struct nw_codel_law nw_fair_law_now(struct nw_fair *q)
{
	struct nw_codel_law law = q->law;
	u64 rate = nw_fair_rate(q);

	if (rate) {
		/* Time on the wire, rounded up. */
		u64 bits = nw_mul_sat(law.mtu, NW_BYTE);
		u64 time = nw_div(bits, rate);

		time += time * rate != bits;
		law.target = nw_max(law.target, nw_mul_sat(time, q->waiting));
	}
	law.interval = nw_max(law.interval, law.target);
	return law;
}

/* The places that a flow's bytes fill, in packets of full size: none of a newcomer. */
static inline u32 nw_fair_filled(const struct nw_fair *q, const struct nw_flow *flow)
{
	u64 mtu = nw_max(q->law.mtu, 1);

	return flow->settled ? (u32)nw_min(nw_div(flow->bytes + mtu / 2, mtu), NW_U32_MAX) : 0;
}

/* How many packets a flow has beyond the places that it fills. At most `part` places count. */
static inline u32 nw_fair_beyond(const struct nw_flow *flow, u32 filled, u32 part)
{
	return (u32)nw_sub(flow->packets, nw_min(filled, part));
}

/*
 * The flow behind another in the order of all that are listed: the new ones, then the old. Both are numbers plus one.
 */
static inline u32 nw_fair_behind(const struct nw_fair *q, u32 at)
{
	u32 next = NW_FLOW_AT(q, at - 1)->next;

	return next || at != q->new_flows.tail ? next : q->old_flows.head;
}

/* The flow that pays for a full buffer, plus one, and how many packets it has beyond its places: see the model. */
static inline u32 nw_fair_victim(const struct nw_fair *q, u32 *beyond)
{
	u32 first = q->new_flows.head ? q->new_flows.head : q->old_flows.head;
	u32 filling = 0, backlogged = 0, victim = 0, spared = 0, part, at;
	u64 tag = 0;

	at = first;
	nw_for(n, q->waiting) {
		u32 filled = nw_fair_filled(q, NW_FLOW_AT(q, at - 1));

		filling += filled > 0;
		backlogged += filled > 1;
		at = nw_fair_behind(q, at);
	}
	part = q->limit / 2 / (u32)nw_max(nw_min(filling, 2 * backlogged), 1);
	at = first;
	nw_for(m, q->waiting) {
		const struct nw_flow *flow = NW_FLOW_AT(q, at - 1);

		if (flow->packets) {
			u32 filled = nw_fair_filled(q, flow);
			u32 more = nw_fair_beyond(flow, filled, part);
			/* If nobody has more than its places, the flow that fills most of them pays last. */
			u32 spares = more ? 0 : filled;

			if (!victim || more > *beyond || (more == *beyond && spares < spared) ||
			    (more == *beyond && spares == spared && flow->tag >= tag)) {
				victim = at;
				*beyond = more;
				spared = spares;
				tag = flow->tag;
			}
		}
		at = nw_fair_behind(q, at);
	}
	return victim;
}

/* Drops from the heads of queues until the limit is kept; in a small buffer one packet at a time. */
static inline void nw_fair_overflow(struct nw_fair *q)
{
	nw_for(round, NW_U32_MAX) {
		u32 beyond = 0, victim, batch;

		if (q->packets <= q->limit)
			break;
		victim = nw_fair_victim(q, &beyond);
		if (!victim)
			break;
		batch = (u32)nw_min(nw_max(q->limit / NW_FAIR_BATCH, 1), NW_FAIR_BATCH);
		batch = (u32)nw_min(nw_max(beyond / 2, 1), batch);
		nw_for(n, batch) {
			nw_pkt packet = nw_fair_pop(q, victim - 1);

			if (nw_pkt_none(packet))
				break;
			if (victim - 1 == q->n_flows)
				nw_fair_let_go(q, nw_pkt_hash(q, packet), 0);
			nw_pkt_drop(q, packet, NW_EVICTED);
		}
		NW_FLOW_AT(q, victim - 1)->codel.count += batch;
	}
}

/* A packet arrives. It is pushed to a queue or dropped; so may be others. */
static inline void nw_fair_enqueue(struct nw_fair *q, nw_pkt packet, u64 now)
{
	struct nw_flow *flow;
	u32 slot;

	if (!q->packets && q->debt)
		/* An idle link pays debts as one flow's share of it would. */
		q->debt = nw_sub(q->debt, nw_bytes_in(nw_fair_rate(q), nw_sub(now, q->departed)));
	slot = nw_fair_classify(q, nw_pkt_hash(q, packet), now);
	if (slot == q->n_flows) {
		if (!nw_fair_has_room(q)) {
			nw_pkt_drop(q, packet, NW_FLOW_LIMIT);
			return;
		}
		q->came++;
	}
	flow = NW_FLOW_AT(q, slot);
	nw_fair_push(q, slot, packet);
	if (flow->until <= q->left && !flow->listed)
		nw_fair_join(q, slot);
	if (q->packets > q->limit)
		nw_fair_overflow(q);
}

/* The next packet, or NW_PKT_NONE. */
static inline nw_pkt nw_fair_dequeue(struct nw_fair *q, u64 now)
{
	nw_for(passed, NW_U32_MAX) {
		u32 turn = nw_drr_turn(q), slot = turn - 1, len;
		struct nw_codel_law law;
		bool is_new;
		nw_pkt packet;

		if (!turn)
			break;
		nw_fair_settle_next(q, now);
		if (slot != q->n_flows && !NW_FLOW_AT(q, slot)->settled && nw_fair_is_overdrawn(q)) {
			nw_fair_park(q, slot);
			continue;
		}
		law = nw_fair_law_now(q);
		packet = nw_codel_dequeue(q, slot, &NW_FLOW_AT(q, slot)->codel, &law, now);
		if (nw_pkt_none(packet)) {
			nw_fair_leave(q, slot);
			continue;
		}
		is_new = q->new_flows.head;
		len = nw_pkt_len(q, packet);
		if (!is_new)
			nw_fair_follow(q, slot);
		nw_fair_charge(q, slot, len);
		q->departed = now;
		nw_drain_on_departure(&q->drain, len, q->packets > 0, now);
		if (slot == q->n_flows)
			nw_fair_let_go(q, nw_pkt_hash(q, packet), len);
		return packet;
	}
	return NW_PKT_NONE;
}

/* All bytes zero but the parameters; the shell has freed all packets and zeroed the flows. */
static inline void nw_fair_reset(struct nw_fair *q)
{
	q->new_flows = (struct nw_list){ 0 };
	q->old_flows = (struct nw_list){ 0 };
	q->waiting = 0;
	q->settled_waiting = 0;
	q->virtual_time = 0;
	q->round_first = 0;
	q->round_last = 0;
	q->round_others = false;
	q->round_has_lowest = false;
	q->round_turns = 0;
	q->came = 0;
	q->left = 0;
	q->debt = 0;
	q->departed = 0;
	q->drain = (struct nw_drain_rate){ 0 };
	q->packets = 0;
	q->bytes = 0;
}

#endif
