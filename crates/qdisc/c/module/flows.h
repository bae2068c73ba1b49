/* SPDX-License-Identifier: GPL-2.0-only */
/* Disciplines with a queue per flow, in the kernel: memory of the scheduler, its options, classes. */
#ifndef NARROWS_FLOWS_H
#define NARROWS_FLOWS_H

#include <linux/mm.h>

#include "shell.h"

#define NW_FLOW_LINKS struct sk_buff_head queue;
struct nw_sched;
static u64 nw_head_depart(struct nw_sched *s, u32 slot);
#include NW_DISCIPLINE

/* When the sender asks the first packet of a flow to leave; the epoch for at once. */
static u64 nw_head_depart(struct nw_sched *s, u32 slot)
{
	return ktime_to_ns(skb_peek(&s->flows[slot].queue)->tstamp);
}

/* The modules state their memory for 152 B and 128 B. A kernel that debugs its locks needs more. */
#if !defined(CONFIG_DEBUG_SPINLOCK) && !defined(CONFIG_DEBUG_LOCK_ALLOC)
static_assert(sizeof(struct nw_flow) <= 152);
#endif

static inline void nw_sched_set(struct nw_sched *s, const u64 *options)
{
	s->limit = options[NW_A_LIMIT];
	s->quantum = options[NW_A_QUANTUM];
	s->initial_quantum = options[NW_A_INITIAL_QUANTUM];
}

/* The arrays of a scheduler, for as many flows as there can be. */
static inline int nw_sched_alloc(struct nw_sched *s, const u64 *options, bool pacing)
{
	u32 flows = nw_sched_flows(options[NW_A_ORPHAN_MASK]);
	u32 n;

	s->n_buckets = options[NW_A_BUCKETS];
	s->mask = options[NW_A_ORPHAN_MASK];
	s->buckets = kvcalloc(s->n_buckets, sizeof(*s->buckets), GFP_KERNEL);
	s->flows = kvcalloc(flows, sizeof(*s->flows), GFP_KERNEL);
	if (pacing)
		s->delayed = kvcalloc(flows, sizeof(*s->delayed), GFP_KERNEL);
	if (!s->buckets || !s->flows || (pacing && !s->delayed))
		return -ENOMEM;
	for (n = 0; n < flows; n++)
		__skb_queue_head_init(&s->flows[n].queue);
	return 0;
}

/* After an allocation that failed, too. */
static inline void nw_sched_free(struct nw_sched *s)
{
	kvfree(s->buckets);
	kvfree(s->flows);
	kvfree(s->delayed);
}

/* Frees all packets that wait. */
static inline void nw_sched_purge(struct nw_sched *s)
{
	u32 slot;

	for (slot = 0; slot < s->used; slot++)
		nw_purge(&s->flows[slot].queue);
}

/* Shows flows that are on a list. */
static inline void nw_sched_walk(struct Qdisc *sch, const struct nw_sched *s, struct qdisc_walker *arg)
{
	u32 slot;

	if (arg->stop)
		return;
	/* Minor numbers have 16 bits, of which zero and the last stand for others. */
	for (slot = 0; slot < min(READ_ONCE(s->used), 0xfffeu); slot++) {
		if (READ_ONCE(s->flows[slot].listed) == NW_UNLISTED) {
			arg->count++;
			continue;
		}
		if (!tc_qdisc_stats_dump(sch, slot + 1, arg))
			break;
	}
}

/* What the classes of all disciplines show of a flow. Called with the qdisc's lock held. */
static inline struct nw_flow *nw_sched_class(struct nw_sched *s, unsigned long cl, struct gnet_stats_queue *queue,
					     u64 *statistics)
{
	struct nw_flow *flow = &s->flows[cl - 1];

	queue->qlen = flow->packets;
	queue->backlog = flow->bytes;
	statistics[NW_S_KIND] = 1;
	statistics[NW_FLOW_S_DEFICIT] = (s64)flow->deficit;
	return flow;
}

#endif
