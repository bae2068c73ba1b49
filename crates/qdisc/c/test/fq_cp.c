// SPDX-License-Identifier: GPL-2.0-only
/* fq_cp.h in user space. */
#include "shell.h"

#define NW_FLOW_LINKS struct nwt_chain chain;
/* Pacing is off. */
#define nw_head_depart(s, slot) ((void)(s), (void)(slot), 0ull)
#include "narrows/fq_cp.h"

struct nwt_fq_cp {
	struct nw_fq_cp q;
	struct nwt_pool pool;
};

void *nwt_fq_cp_new(const u64 *p)
{
	struct nwt_fq_cp *t = nwt_alloc(1, sizeof(*t));
	struct nw_sched *s = &t->q.sched;
	/*
	 * flow limit, threshold in packets, cmax − 1, whether a bucket is given, bucket, ecn, rate, mtu; then the
	 * scheduler's
	 */
	u64 mtu = p[7];
	u64 threshold = nw_mul_sat(p[1], mtu);
	u64 most = nw_mul_sat(p[0], mtu);

	t->q.flow_limit = (u32)p[0];
	t->q.ecn = p[5];
	t->q.link_rate = p[6];
	nw_policer_law_init(&t->q.law, threshold, most, p[2], p[3] ? p[4] : nw_policer_rule(threshold, most, p[2], mtu));
	nw_policer_for_measured_rate(&t->q.law);
	s->limit = (u32)p[8];
	s->quantum = (s32)p[9];
	s->initial_quantum = (s32)p[10];
	s->n_buckets = (u32)p[11];
	s->mask = (u32)p[12];
	s->buckets = nwt_alloc(s->n_buckets, sizeof(*s->buckets));
	s->flows = nwt_alloc(nw_sched_flows(s->mask), sizeof(*s->flows));
	nw_fq_cp_reset(&t->q);
	return t;
}

void nwt_fq_cp_free(void *opaque)
{
	struct nwt_fq_cp *t = opaque;

	free(t->q.sched.buckets);
	free(t->q.sched.flows);
	free(t->pool.packets);
	free(t);
}

void nwt_fq_cp_enqueue(void *opaque, u32 id, const struct nwt_meta *meta, u64 now, struct nwt_result *result)
{
	struct nwt_fq_cp *t = opaque;
	struct nwt_packet *packet = nwt_add(&t->pool, id, meta, now);
	enum nw_reason reason = NW_REASONS;
	u32 slot = 0;
	enum nw_verdict verdict = nw_fq_cp_enqueue(&t->q, meta->hash, meta->len, now, &slot, &reason);

	if (verdict == NW_ACCEPT || (verdict == NW_ACCEPT_MARKED && nwt_mark(packet))) {
		nwt_push(&t->pool, &t->q.sched.flows[slot].chain, id);
		nw_sched_queued(&t->q.sched, slot, meta->len, now);
		result->marked = packet->meta.marked;
	} else {
		nwt_report(result, id, reason);
	}
}

void nwt_fq_cp_dequeue(void *opaque, u64 now, struct nwt_result *result)
{
	struct nwt_fq_cp *t = opaque;
	u32 slot = 0;

	result->next = nw_sched_next(&t->q.sched, now, &slot, &result->at);
	if (result->next != NW_PACKET)
		return;
	result->id = nwt_pop_front(&t->pool, &t->q.sched.flows[slot].chain);
	result->marked = t->pool.packets[result->id].meta.marked;
	nw_fq_cp_departed(&t->q, slot, t->pool.packets[result->id].meta.len, now);
}

void nwt_fq_cp_on_rate(void *opaque, u64 rate, u64 now)
{
	struct nwt_fq_cp *t = opaque;

	(void)now;
	t->q.link_rate = rate;
}

void nwt_fq_cp_observe(void *opaque, const u32 *hash, u64 now, struct nwt_totals *totals)
{
	struct nwt_fq_cp *t = opaque;
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
	if (!flow)
		return;
	totals->more[2] = flow->packets;
	totals->more[3] = (u64)(s64)flow->deficit;
	totals->more[4] = nw_policer_tokens(&flow->state.policer);
	totals->more[5] = nw_fq_cp_token_rate(&t->q, &flow->state);
}
