/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Disciplines with a queue per flow, in the kernel: all but the decisions about an arrival. The module defines before
 * the include, beside the names of qdisc.h:
 *
 *   NW_DISCIPLINE     its header, in quotes, which defines struct nw_NAME with a `sched`, and nw_NAME_removed, _departed, _reset
 *   NW_FLOW_BYTES     what a flow takes at most, as the module states it
 *   NW_PACES          whether there may be departure times
 *
 * and after it:
 *
 *   NAME_arrive       what happens to a packet that arrives
 *   NAME_trim         drops what is beyond a flow's limit, after NW_DROP_AND_TRIM
 *   NAME_options      the options, but those of the scheduler
 *   NAME_counters     its statistics, and NAME_flow_counters those of a flow
 *
 * and at its end it includes qdisc.h.
 */
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

/* A kernel that debugs its locks needs more. */
#if !defined(CONFIG_DEBUG_SPINLOCK) && !defined(CONFIG_DEBUG_LOCK_ALLOC)
static_assert(sizeof(struct nw_flow) <= NW_FLOW_BYTES);
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

#define NW_LAW(what) NW_JOIN(NW_JOIN(nw, NW_NAME), what)
#define NW_STATE NW_JOIN(nw, NW_NAME)
#define NW_CLASSES nw_class_ops

static_assert((int)NW_ENUM(NW_PREFIX, A_ORPHAN_MASK) == (int)NW_A_ORPHAN_MASK, "the scheduler's parameters come first");

static __always_inline enum nw_verdict NW_OWN(arrive)(struct NW_STATE *q, const struct sk_buff *skb, u32 hash, u64 now,
						      u32 *slot, enum nw_reason *reason);
static void NW_OWN(trim)(struct Qdisc *sch, u32 slot, struct sk_buff **to_free);
static void NW_OWN(options)(struct Qdisc *sch, struct NW_STATE *q, const u64 *values);
static void NW_OWN(counters)(struct NW_STATE *q, u64 *s);
static void NW_OWN(flow_counters)(struct NW_STATE *q, struct nw_flow *flow, u64 *s);

struct NW_OWN(sched_data) {
	struct nw_shell shell;
	struct NW_STATE q;
	struct qdisc_watchdog watchdog;
};

static __always_inline int NW_OWN(enqueue_one)(struct sk_buff *skb, struct Qdisc *sch, u32 hash, u64 now,
					       struct sk_buff **to_free)
{
	struct NW_OWN(sched_data) *p = qdisc_priv(sch);
	struct nw_sched *s = &p->q.sched;
	enum nw_verdict verdict;
	enum nw_reason reason;
	u32 slot = 0;

	verdict = NW_OWN(arrive)(&p->q, skb, hash, now, &slot, &reason);
	if (verdict == NW_ACCEPT || (verdict == NW_ACCEPT_MARKED && nw_mark(&p->shell, skb))) {
		__skb_queue_tail(&s->flows[slot].queue, skb);
		nw_sched_queued(s, slot, qdisc_pkt_len(skb), now);
		nw_account_queued(sch, skb);
		return NET_XMIT_SUCCESS;
	}
	if (verdict == NW_DROP_AND_TRIM)
		NW_OWN(trim)(sch, slot, to_free);
	return nw_drop(sch, &p->shell, skb, reason, to_free);
}

static int NW_OWN(enqueue)(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free)
{
	struct NW_OWN(sched_data) *p = qdisc_priv(sch);

	return nw_enqueue(skb, sch, &p->shell, to_free, true, NW_OWN(enqueue_one));
}

static struct sk_buff *NW_OWN(dequeue)(struct Qdisc *sch)
{
	struct NW_OWN(sched_data) *p = qdisc_priv(sch);
	struct sk_buff *skb;
	u64 now, time = 0;
	u32 slot = 0;

	/* The kernel asks once more after the last packet. */
	if (!p->q.sched.packets)
		return NULL;
	now = ktime_get_ns();
	switch (nw_sched_next(&p->q.sched, now, &slot, &time)) {
	case NW_PACKET:
		skb = __skb_dequeue(&p->q.sched.flows[slot].queue);
		NW_LAW(departed)(&p->q, slot, qdisc_pkt_len(skb), now);
		nw_account_sent(sch, skb);
		return skb;
	case NW_AT:
		qdisc_watchdog_schedule_ns(&p->watchdog, time);
		break;
	case NW_EMPTY:
		break;
	}
	return NULL;
}

static void NW_OWN(reset)(struct Qdisc *sch)
{
	struct NW_OWN(sched_data) *p = qdisc_priv(sch);

	qdisc_watchdog_cancel(&p->watchdog);
	/* A qdisc whose memory was refused is reset, too. */
	if (!p->q.sched.flows || !p->q.sched.buckets)
		return;
	nw_sched_purge(&p->q.sched);
	NW_LAW(reset)(&p->q);
	nw_shell_reset(&p->shell);
}

static void NW_OWN(begin)(struct Qdisc *sch)
{
	struct NW_OWN(sched_data) *p = qdisc_priv(sch);

	qdisc_watchdog_init(&p->watchdog, sch);
}

static int NW_OWN(alloc)(struct Qdisc *sch, const u64 *values)
{
	struct NW_OWN(sched_data) *p = qdisc_priv(sch);
	/* Pacing may be switched on later. */
	int err = nw_sched_alloc(&p->q.sched, values, NW_PACES);

	if (!err)
		NW_LAW(reset)(&p->q);
	return err;
}

static void NW_OWN(destroy)(struct Qdisc *sch)
{
	struct NW_OWN(sched_data) *p = qdisc_priv(sch);

	qdisc_watchdog_cancel(&p->watchdog);
	nw_sched_free(&p->q.sched);
}

/* Drops packets that a new limit leaves no room for, from the heads of queues. */
static void NW_OWN(keep_limit)(struct Qdisc *sch)
{
	struct NW_OWN(sched_data) *p = qdisc_priv(sch);
	struct nw_sched *s = &p->q.sched;
	u64 now = ktime_get_ns();
	u32 slot;

	for (slot = 0; slot < s->used && s->packets > s->limit; slot++) {
		struct nw_flow *flow = &s->flows[slot];

		while (flow->packets && s->packets > s->limit) {
			struct sk_buff *skb = __skb_dequeue(&flow->queue);

			NW_LAW(removed)(&p->q, slot, qdisc_pkt_len(skb), now);
			nw_drop_at_dequeue(sch, &p->shell, skb, NW_QUEUE_FULL);
		}
	}
}

/*
 * Pacing begins or ends while packets wait. Departure times beyond the horizon, which are refused with pacing, do not
 * count; and flows that were set aside go on.
 */
static inline void nw_sched_set_pacing(struct nw_sched *s, struct qdisc_watchdog *watchdog, bool pacing)
{
	u64 now = ktime_get_ns();
	u32 slot;

	if (pacing == s->pacing)
		return;
	s->pacing = pacing;
	if (!pacing) {
		nw_sched_wake(s, NW_U64_MAX);
		qdisc_watchdog_schedule_ns(watchdog, now);
		return;
	}
	for (slot = 0; slot < s->used; slot++) {
		struct sk_buff *skb;

		skb_queue_walk(&s->flows[slot].queue, skb) {
			if ((u64)ktime_to_ns(skb->tstamp) > nw_later(now, NW_HORIZON_NS))
				skb->tstamp = 0;
		}
	}
}

static void NW_OWN(set)(struct Qdisc *sch, const u64 *values, bool adding)
{
	struct NW_OWN(sched_data) *p = qdisc_priv(sch);

	nw_sched_set(&p->q.sched, values);
#if NW_PACES
	nw_sched_set_pacing(&p->q.sched, &p->watchdog, values[NW_ENUM(NW_PREFIX, A_PACING)]);
#endif
	NW_OWN(options)(sch, &p->q, values);
	NW_OWN(keep_limit)(sch);
}

static void NW_OWN(statistics)(struct Qdisc *sch, u64 *s)
{
	struct NW_OWN(sched_data) *p = qdisc_priv(sch);

	s[NW_ENUM(NW_PREFIX, S_FLOWS)] = p->q.sched.known;
	s[NW_ENUM(NW_PREFIX, S_COLLECTED)] = p->q.sched.collected;
#if NW_PACES
	s[NW_ENUM(NW_PREFIX, S_THROTTLED)] = p->q.sched.n_delayed;
#endif
	NW_OWN(counters)(&p->q, s);
}

static void NW_OWN(walk)(struct Qdisc *sch, struct qdisc_walker *arg)
{
	struct NW_OWN(sched_data) *p = qdisc_priv(sch);

	nw_sched_walk(sch, &p->q.sched, arg);
}

static int NW_OWN(dump_class_stats)(struct Qdisc *sch, unsigned long cl, struct gnet_dump *d)
{
	struct NW_OWN(sched_data) *p = qdisc_priv(sch);
	struct gnet_stats_queue queue = {};
	u64 s[NW_ENUM(NW_PREFIX, F_END)];

	sch_tree_lock(sch);
	NW_OWN(flow_counters)(&p->q, nw_sched_class(&p->q.sched, cl, &queue, s), s);
	sch_tree_unlock(sch);
	if (gnet_stats_copy_queue(d, NULL, &queue, queue.qlen) < 0)
		return -1;
	return gnet_stats_copy_app(d, s, sizeof(s));
}

static const struct Qdisc_class_ops nw_class_ops = {
	.leaf = nw_class_leaf,
	.find = nw_class_find,
	.walk = NW_OWN(walk),
	.dump = nw_class_dump,
	.dump_stats = NW_OWN(dump_class_stats),
};

#endif
