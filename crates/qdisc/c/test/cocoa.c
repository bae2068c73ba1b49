// SPDX-License-Identifier: GPL-2.0-only
/* cocoa.h in user space. */
#include "shell.h"

#define NW_FLOW_LINKS struct nwt_chain chain;
struct nw_sched;
static u64 nw_head_depart(struct nw_sched *s, u32 slot);
#include "narrows/cocoa.h"

struct nwt_cocoa {
	struct nw_cocoa q;
	struct nwt_pool pool;
};

static u64 nw_head_depart(struct nw_sched *s, u32 slot)
{
	struct nwt_cocoa *t = (struct nwt_cocoa *)((char *)s - offsetof(struct nwt_cocoa, q.sched));

	return t->pool.packets[s->flows[slot].chain.head - 1].meta.depart;
}

void *nwt_cocoa_new(const u64 *p)
{
	struct nwt_cocoa *t = nwt_alloc(1, sizeof(*t));
	struct nw_sched *s = &t->q.sched;

	t->q.law = (struct nw_cocoa_law){
		.max_guard = p[0],
		.multiplier = (u32)p[1],
		.max_increase = (u32)p[2],
		.guard_rtts = (u32)p[3],
		.initial_limit = (u32)p[4],
		.min_limit = (u32)p[5],
		.whole = p[6],
		.learn = p[7],
	};
	s->limit = (u32)p[8];
	s->quantum = (s32)p[9];
	s->initial_quantum = (s32)p[10];
	s->n_buckets = (u32)p[11];
	s->mask = (u32)p[12];
	s->pacing = p[13];
	s->buckets = nwt_alloc(s->n_buckets, sizeof(*s->buckets));
	s->flows = nwt_alloc(nw_sched_flows(s->mask), sizeof(*s->flows));
	s->delayed = nwt_alloc(nw_sched_flows(s->mask), sizeof(*s->delayed));
	nw_cocoa_reset(&t->q);
	return t;
}

void nwt_cocoa_free(void *opaque)
{
	struct nwt_cocoa *t = opaque;

	free(t->q.sched.buckets);
	free(t->q.sched.flows);
	free(t->q.sched.delayed);
	free(t->pool.packets);
	free(t);
}

void nwt_cocoa_enqueue(void *opaque, u32 id, const struct nwt_meta *meta, u64 now, struct nwt_result *result)
{
	struct nwt_cocoa *t = opaque;
	enum nw_reason reason = NW_REASONS;
	u32 slot = 0;

	nwt_add(&t->pool, id, meta, now);
	switch (nw_cocoa_enqueue(&t->q, meta->hash, meta->depart, meta->spin, now, &slot, &reason)) {
	case NW_ACCEPT:
	case NW_ACCEPT_MARKED:
		nwt_push(&t->pool, &t->q.sched.flows[slot].chain, id);
		nw_sched_queued(&t->q.sched, slot, meta->len, now);
		break;
	case NW_DROP:
		nwt_report(result, id, reason);
		break;
	case NW_DROP_AND_TRIM:
		nwt_report(result, id, reason);
		while (nw_cocoa_has_surplus(&t->q, slot)) {
			u32 last = nwt_pop_back(&t->pool, &t->q.sched.flows[slot].chain);

			nw_cocoa_trimmed(&t->q, slot, t->pool.packets[last].meta.len);
			nwt_report(result, last, reason);
		}
		break;
	}
}

void nwt_cocoa_dequeue(void *opaque, u64 now, struct nwt_result *result)
{
	struct nwt_cocoa *t = opaque;
	u32 slot = 0;

	result->next = nw_sched_next(&t->q.sched, now, &slot, &result->at);
	if (result->next != NW_PACKET)
		return;
	result->id = nwt_pop_front(&t->pool, &t->q.sched.flows[slot].chain);
	nw_cocoa_departed(&t->q, slot, t->pool.packets[result->id].meta.len, now);
}

void nwt_cocoa_on_rate(void *opaque, u64 rate, u64 now)
{
	(void)opaque, (void)rate, (void)now;
}

/* Totals; and of the flow with this hash, if one is given: its limit in 1024ths, the longest interval, and so on. */
void nwt_cocoa_observe(void *opaque, const u32 *hash, u64 now, struct nwt_totals *totals)
{
	struct nwt_cocoa *t = opaque;
	struct nw_flow *flow = NULL;

	for (u32 slot = 0; hash && slot < t->q.sched.used; slot++) {
		/* A slot that is free again has no flow, but holds the key that it had. */
		if (t->q.sched.flows[slot].key == (*hash & t->q.sched.mask) && t->q.sched.flows[slot].listed)
			flow = &t->q.sched.flows[slot];
	}
	(void)now;
	totals->packets = t->q.sched.packets;
	totals->bytes = t->q.sched.bytes;
	totals->more[0] = t->q.sched.known;
	totals->more[1] = t->q.sched.n_delayed;
	if (!flow)
		return;
	totals->more[2] = flow->packets;
	totals->more[3] = (u64)(s64)flow->deficit;
	totals->more[4] = ((u64)flow->state.limit << NW_ONE_SHIFT) + flow->state.part;
	totals->more[5] = flow->state.longest;
	totals->more[6] = flow->state.decision;
	totals->more[7] = flow->state.decision_idle;
	totals->more[8] = flow->state.has_rtt;
	totals->more[9] = flow->state.rtt;
}
