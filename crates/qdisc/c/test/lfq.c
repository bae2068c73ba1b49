// SPDX-License-Identifier: GPL-2.0-only
/* lfq.h in user space. */
#include "shell.h"

#define NW_FLOW_LINKS struct nwt_chain chain;
struct nw_sched;
static u64 nw_head_depart(struct nw_sched *s, u32 slot);
#include "narrows/lfq.h"

struct nwt_lfq {
	struct nw_lfq q;
	struct nwt_pool pool;
};

static u64 nw_head_depart(struct nw_sched *s, u32 slot)
{
	struct nwt_lfq *t = (struct nwt_lfq *)((char *)s - offsetof(struct nwt_lfq, q.sched));

	return t->pool.packets[s->flows[slot].chain.head - 1].meta.depart;
}

void *nwt_lfq_new(const u64 *p)
{
	struct nwt_lfq *t = nwt_alloc(1, sizeof(*t));
	struct nw_sched *s = &t->q.sched;

	t->q.rule = p[0];
	t->q.every = (u32)p[1];
	t->q.initial_limit = (u32)p[2];
	t->q.min_limit = (u32)p[3];
	s->limit = (u32)p[4];
	s->quantum = (s32)p[5];
	s->initial_quantum = (s32)p[6];
	s->n_buckets = (u32)p[7];
	s->mask = (u32)p[8];
	s->pacing = p[9];
	s->buckets = nwt_alloc(s->n_buckets, sizeof(*s->buckets));
	s->flows = nwt_alloc(nw_sched_flows(s->mask), sizeof(*s->flows));
	s->delayed = nwt_alloc(nw_sched_flows(s->mask), sizeof(*s->delayed));
	nw_lfq_reset(&t->q);
	return t;
}

void nwt_lfq_free(void *opaque)
{
	struct nwt_lfq *t = opaque;

	free(t->q.sched.buckets);
	free(t->q.sched.flows);
	free(t->q.sched.delayed);
	free(t->pool.packets);
	free(t);
}

void nwt_lfq_enqueue(void *opaque, u32 id, const struct nwt_meta *meta, u64 now, struct nwt_result *result)
{
	struct nwt_lfq *t = opaque;
	enum nw_reason reason = NW_REASONS;
	u32 slot = 0;

	nwt_add(&t->pool, id, meta, now);
	if (nw_lfq_enqueue(&t->q, meta->hash, meta->depart, now, &slot, &reason) == NW_DROP) {
		nwt_report(result, id, reason);
		return;
	}
	nwt_push(&t->pool, &t->q.sched.flows[slot].chain, id);
	nw_sched_queued(&t->q.sched, slot, meta->len, now);
}

void nwt_lfq_dequeue(void *opaque, u64 now, struct nwt_result *result)
{
	struct nwt_lfq *t = opaque;
	u32 slot = 0;

	result->next = nw_sched_next(&t->q.sched, now, &slot, &result->at);
	if (result->next != NW_PACKET)
		return;
	result->id = nwt_pop_front(&t->pool, &t->q.sched.flows[slot].chain);
	nw_lfq_departed(&t->q, slot, t->pool.packets[result->id].meta.len, now);
}

void nwt_lfq_on_rate(void *opaque, u64 rate, u64 now)
{
	(void)opaque, (void)rate, (void)now;
}

/* Totals; and of the flow with this hash, if one is given: its limits in 256ths, the last factor, and so on. */
void nwt_lfq_observe(void *opaque, const u32 *hash, u64 now, struct nwt_totals *totals)
{
	struct nwt_lfq *t = opaque;
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
	totals->more[4] = flow->state.limit;
	totals->more[5] = flow->state.base;
	totals->more[6] = flow->state.factor;
	totals->more[7] = flow->state.cycles;
	totals->more[8] = flow->state.last.idle;
}
