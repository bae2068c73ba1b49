/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Flow queues in fair turns, after `parts/flow_scheduler.rs`: deficit round robin with credits and, where it is asked
 * for, pacing. What happens to a packet that arrives at its flow's queue is the business of the discipline that
 * includes this header.
 *
 * - Flows are told apart by `hash & mask`, exactly. There are lists of flows to search, which are called buckets.
 * - A flow without a deficit gets a quantum and goes to the end of the old list. A flow that comes is new and served
 *   first; an emptied new flow passes through the old list once.
 * - A new flow starts with `initial_quantum`. One that comes back after a pause has at least a quantum; debts stay.
 * - Pacing: a flow whose first packet may not leave yet is set aside until it may.
 * - A flow that has been idle for three seconds is collected when a search comes past it.
 *
 * Packets are not seen here. The shell that includes this header links them, one list per flow, and keeps to what it
 * is told. It defines before the include:
 *
 *   NW_FLOW_STATE        the type of what the discipline remembers of a flow; all bytes zero are that of a new one
 *   NW_FLOW_LINKS        fields for a flow's list of packets; they are not touched here (may be empty)
 *   nw_head_depart(s, n) when the first packet of the flow in slot n may leave; it has one (asked with pacing only)
 *
 * and may define how the arrays are reached, where a pointer to them cannot be kept (BPF):
 *
 *   NW_FLOW_AT(s, n)     a pointer to the flow in slot n
 *   NW_BUCKET_AT(s, n)   a pointer to the head of bucket n
 *   NW_DELAYED_AT(s, n)  a pointer to the nth element of the heap of flows that are set aside
 *   NW_FLOW_STORE        the definitions of the arrays that these three name
 *
 * Memory: a flow for each value that the mask allows, four bytes per bucket, and with pacing 24 bytes per flow. All
 * of it is the shell's, from the start.
 *
 * Links between flows are numbers of slots plus one, and zero is none, so that zeroed memory is an empty scheduler.
 */
#ifndef NARROWS_FLOW_SCHEDULER_H
#define NARROWS_FLOW_SCHEDULER_H

#include "base.h"

/* Idle time after which a flow may be collected (Linux: FQ_GC_AGE). */
#define NW_GC_AGE (3 * NW_SEC)
/* Pause after which a flow has at least a quantum of credit again (Linux: flow_refill_delay). */
#define NW_REFILL_DELAY (40 * NW_MSEC)
/* How far ahead a departure may be asked for (Linux: horizon). */
#define NW_HORIZON_NS (10 * NW_SEC)

struct nw_flow {
	NW_FLOW_LINKS
	/* When it left the lists. */
	u64 idle_since;
	/* Bytes that wait. */
	u64 bytes;
	/* Packets that wait. */
	u32 packets;
	/* Bytes that it may still send in this round. */
	s32 deficit;
	/* The next flow on its list. */
	u32 next;
	/* The next flow in its bucket, or the next free slot. */
	u32 next_in_bucket;
	/* What tells it from others. */
	u32 key;
	/* One of enum nw_listed. */
	u8 listed;
	/* What the discipline remembers. */
	NW_FLOW_STATE state;
};

/* A flow that is set aside. */
struct nw_delayed {
	u64 time;
	/* Of several with the same time, the one that was set aside first goes on first. */
	u64 order;
	u32 slot;
};

struct nw_sched {
	/* Parameters. Maximum queue length in packets. */
	u32 limit;
	/* Bytes per round, at least one. */
	s32 quantum;
	/* Bytes that a new flow may send at first. */
	s32 initial_quantum;
	/* Number of buckets, at least one. */
	u32 n_buckets;
	/* Bits of the hash that tell flows apart. */
	u32 mask;
	/* Honour departure times. */
	bool pacing;

	/* Arrays of the shell: n_buckets, nw_sched_flows(mask) and, with pacing, as many again. */
#ifndef NW_FLOW_AT
	u32 *buckets;
	struct nw_flow *flows;
	struct nw_delayed *delayed;
#endif

	/* State. Slots that have ever been used, and those of them that are free again. */
	u32 used;
	u32 free;
	struct nw_list new_flows;
	struct nw_list old_flows;
	/* Flows that are set aside, and how often one was. */
	u32 n_delayed;
	u64 throttlings;
	/* Flows in the buckets. */
	u32 known;
	/* Flows that were collected. */
	u64 collected;
	/* All that waits. */
	u32 packets;
	u64 bytes;
};

#ifdef NW_FLOW_AT
NW_FLOW_STORE
#else
#define NW_FLOW_AT(s, n) (&(s)->flows[n])
#define NW_BUCKET_AT(s, n) (&(s)->buckets[n])
#define NW_DELAYED_AT(s, n) (&(s)->delayed[n])
#endif

/* How many flows a mask tells apart. The mask has at most 31 bits that are set. */
static inline u32 nw_sched_flows(u32 mask)
{
	u32 flows = 1;

	nw_for(bit, 32) {
		if (mask & (1u << bit))
			flows <<= 1;
	}
	return flows;
}

#define NW_DRR_OWNER struct nw_sched
#include "drr.h"

/* The flow whose turn it is has nothing to send: a new one goes through the old list, an old one leaves. */
static inline void nw_sched_emptied(struct nw_sched *s, u64 now)
{
	bool is_new = s->new_flows.head;
	u32 slot = nw_drr_unlist(s);
	struct nw_flow *flow = NW_FLOW_AT(s, slot);

	if (is_new) {
		flow->listed = NW_LISTED;
		nw_list_push(s, &s->old_flows, slot);
	} else {
		flow->idle_since = now;
	}
}

/* Does the first leave its heap before the second? */
static inline bool nw_delayed_before(const struct nw_delayed *a, const struct nw_delayed *b)
{
	return a->time < b->time || (a->time == b->time && a->order < b->order);
}

/* Sets the flow whose turn it is aside until a time. */
static inline void nw_sched_throttle(struct nw_sched *s, u64 time)
{
	u32 slot = nw_drr_unlist(s);
	struct nw_delayed new_one = { .time = time, .order = s->throttlings++, .slot = slot };
	u32 at = s->n_delayed++;

	NW_FLOW_AT(s, slot)->listed = NW_THROTTLED;
	nw_for(level, 32) {
		u32 parent = (at - 1) / 2;

		if (!at || !nw_delayed_before(&new_one, NW_DELAYED_AT(s, parent)))
			break;
		*NW_DELAYED_AT(s, at) = *NW_DELAYED_AT(s, parent);
		at = parent;
	}
	*NW_DELAYED_AT(s, at) = new_one;
}

/* Takes the first flow out of the heap. There is one. */
static inline u32 nw_sched_pop_delayed(struct nw_sched *s)
{
	u32 slot = NW_DELAYED_AT(s, 0)->slot;
	u32 last = --s->n_delayed;
	struct nw_delayed moved = *NW_DELAYED_AT(s, last);
	u32 at = 0;

	nw_for(level, 32) {
		u32 child = 2 * at + 1;

		if (child >= last)
			break;
		if (child + 1 < last && nw_delayed_before(NW_DELAYED_AT(s, child + 1), NW_DELAYED_AT(s, child)))
			child++;
		if (!nw_delayed_before(NW_DELAYED_AT(s, child), &moved))
			break;
		*NW_DELAYED_AT(s, at) = *NW_DELAYED_AT(s, child);
		at = child;
	}
	*NW_DELAYED_AT(s, at) = moved;
	return slot;
}

/* Flows whose time has come go on, at the end of the old ones. */
static inline void nw_sched_wake(struct nw_sched *s, u64 now)
{
	nw_for(woken, NW_U32_MAX) {
		u32 slot;

		if (!s->n_delayed || NW_DELAYED_AT(s, 0)->time > now)
			break;
		slot = nw_sched_pop_delayed(s);
		NW_FLOW_AT(s, slot)->listed = NW_LISTED;
		nw_list_push(s, &s->old_flows, slot);
	}
}

/* A slot for a new flow. There is one free: flows differ in their keys. */
static inline u32 nw_sched_take_slot(struct nw_sched *s)
{
	u32 slot = s->free;

	if (!slot)
		return s->used++;
	s->free = NW_FLOW_AT(s, slot - 1)->next_in_bucket;
	return slot - 1;
}

/*
 * The slot of the flow with a key, which is not its bucket's first; it is made if there is none. Flows passed on the way
 * that have been idle for long are collected.
 */
NW_RARE u32 nw_sched_search(struct nw_sched *s, u32 *bucket, u32 key, u64 now)
{
	/* Where the number of the next flow is written: in the bucket, or in the flow before. */
	u32 *link = bucket;
	struct nw_flow *flow;
	u32 slot;

	nw_for(searched, NW_U32_MAX) {
		u32 next;

		if (!*link)
			break;
		slot = *link - 1;
		flow = NW_FLOW_AT(s, slot);
		if (flow->key == key)
			return slot;
		if (flow->listed == NW_UNLISTED && nw_sub(now, flow->idle_since) > NW_GC_AGE) {
			next = flow->next_in_bucket;
			flow->next_in_bucket = s->free;
			s->free = slot + 1;
			*link = next;
			s->known--;
			s->collected++;
		} else {
			link = &flow->next_in_bucket;
		}
	}
	slot = nw_sched_take_slot(s);
	*link = slot + 1;
	flow = NW_FLOW_AT(s, slot);
	flow->idle_since = now;
	flow->bytes = 0;
	flow->packets = 0;
	flow->deficit = s->initial_quantum;
	flow->next = 0;
	flow->next_in_bucket = 0;
	flow->key = key;
	flow->listed = NW_UNLISTED;
	flow->state = (NW_FLOW_STATE){ 0 };
	s->known++;
	return slot;
}

/* The slot of the flow that a hash belongs to. */
static inline u32 nw_sched_classify(struct nw_sched *s, u32 hash, u64 now)
{
	u32 key = hash & s->mask;
	/* The key is a few low bits of a hash, perhaps; the bucket comes from high bits. */
	u32 *bucket = NW_BUCKET_AT(s, nw_scale(nw_mix(key, 0), s->n_buckets));

	/* Mostly it is the bucket's first, and no loop is begun, which costs BPF as much as all the rest here. */
	if (*bucket && NW_FLOW_AT(s, *bucket - 1)->key == key)
		return *bucket - 1;
	return nw_sched_search(s, bucket, key, now);
}

/* May the packet that arrives go to its flow? If not, *reason says why. */
static inline bool nw_sched_admits(const struct nw_sched *s, u64 depart, u64 now, enum nw_reason *reason)
{
	if (s->packets >= s->limit) {
		*reason = NW_QUEUE_FULL;
		return false;
	}
	if (s->pacing && depart > nw_later(now, NW_HORIZON_NS)) {
		*reason = NW_HORIZON;
		return false;
	}
	return true;
}

/* A packet has left its flow's queue, sent or dropped. */
static inline void nw_sched_removed(struct nw_sched *s, struct nw_flow *flow, u32 len)
{
	flow->packets--;
	flow->bytes -= len;
	s->packets--;
	s->bytes -= len;
}

/* A packet that arrived has joined its flow's queue. The flow, if it was idle, joins the new ones. */
static inline void nw_sched_queued(struct nw_sched *s, u32 slot, u32 len, u64 now)
{
	struct nw_flow *flow = NW_FLOW_AT(s, slot);

	flow->packets++;
	flow->bytes += len;
	s->packets++;
	s->bytes += len;
	if (flow->listed != NW_UNLISTED)
		return;
	if (nw_sub(now, flow->idle_since) > NW_REFILL_DELAY && flow->deficit >= 0 && flow->deficit < s->quantum)
		flow->deficit = s->quantum;
	flow->listed = NW_LISTED;
	nw_list_push(s, &s->new_flows, slot);
}

/* Chooses the flow whose first packet leaves (*slot), or says when there will be one (*time). */
static inline enum nw_next nw_sched_next(struct nw_sched *s, u64 now, u32 *slot, u64 *time)
{
	u32 ready;

	if (!s->packets)
		return NW_EMPTY;
	if (s->n_delayed)
		nw_sched_wake(s, now);
	ready = nw_drr_ready(s);
	if (ready && !s->pacing && NW_FLOW_AT(s, ready - 1)->packets) {
		*slot = ready - 1;
		return NW_PACKET;
	}
	nw_for(passed, NW_U32_MAX) {
		u32 turn = nw_drr_turn(s);

		if (!turn)
			break;
		if (!NW_FLOW_AT(s, turn - 1)->packets) {
			nw_sched_emptied(s, now);
			continue;
		}
		if (s->pacing) {
			u64 depart = nw_head_depart(s, turn - 1);

			if (depart > now) {
				nw_sched_throttle(s, depart);
				continue;
			}
		}
		*slot = turn - 1;
		return NW_PACKET;
	}
	if (!s->n_delayed)
		return NW_EMPTY;
	*time = NW_DELAYED_AT(s, 0)->time;
	return NW_AT;
}

/* The first packet of the flow that was chosen has left. */
static inline void nw_sched_sent(struct nw_sched *s, struct nw_flow *flow, u32 len)
{
	nw_drr_charge(&flow->deficit, len);
	nw_sched_removed(s, flow, len);
}

/* Forgets all flows. The shell has freed all packets. */
static inline void nw_sched_reset(struct nw_sched *s)
{
	nw_for(bucket, s->n_buckets)
		*NW_BUCKET_AT(s, bucket) = 0;
	s->used = 0;
	s->free = 0;
	s->new_flows = (struct nw_list){ 0 };
	s->old_flows = (struct nw_list){ 0 };
	s->n_delayed = 0;
	s->known = 0;
	s->packets = 0;
	s->bytes = 0;
}

#endif
