// SPDX-License-Identifier: GPL-2.0-only
/* cp.h in user space. */
#include "shell.h"
#include "narrows/cp.h"

struct nwt_cp {
	struct nw_cp q;
	struct nwt_pool pool;
	struct nwt_chain chain;
	/* The given rate does not follow the link's. */
	bool fixed_rate;
};

void *nwt_cp_new(const u64 *p)
{
	struct nwt_cp *t = nwt_alloc(1, sizeof(*t));
	/*
	 * limit, whether in bytes, threshold in packets, cmax − 1, bucket or zero for the rule, rate, follow_drain,
	 * ecn, mtu, fixed
	 */
	u64 mtu = p[8];
	u64 threshold = nw_mul_sat(p[2], mtu);
	u64 most = nw_cp_most(p[0], p[1], mtu);
	u64 bucket = p[10] ? p[4] : nw_policer_rule(threshold, most, p[3], mtu);

	t->q.limit = p[0];
	t->q.limit_is_bytes = p[1];
	t->q.rate = p[5];
	t->q.follow_drain = p[6];
	t->q.ecn = p[7];
	t->fixed_rate = p[9];
	nw_policer_law_init(&t->q.law, threshold, most, p[3], bucket);
	if (t->q.follow_drain)
		nw_policer_for_measured_rate(&t->q.law);
	nw_cp_reset(&t->q, 0);
	return t;
}

void nwt_cp_free(void *opaque)
{
	struct nwt_cp *t = opaque;

	free(t->pool.packets);
	free(t);
}

void nwt_cp_enqueue(void *opaque, u32 id, const struct nwt_meta *meta, u64 now, struct nwt_result *result)
{
	struct nwt_cp *t = opaque;
	struct nwt_packet *packet = nwt_add(&t->pool, id, meta, now);
	enum nw_reason reason = NW_REASONS;
	enum nw_verdict verdict = nw_cp_enqueue(&t->q, meta->len, now, &reason);

	if (verdict == NW_ACCEPT || (verdict == NW_ACCEPT_MARKED && nwt_mark(packet))) {
		nwt_push(&t->pool, &t->chain, id);
		nw_cp_queued(&t->q, meta->len);
		result->marked = packet->meta.marked;
	} else {
		nwt_report(result, id, reason);
	}
}

void nwt_cp_dequeue(void *opaque, u64 now, struct nwt_result *result)
{
	struct nwt_cp *t = opaque;

	result->next = NW_EMPTY;
	if (!t->q.packets)
		return;
	result->next = NW_PACKET;
	result->id = nwt_pop_front(&t->pool, &t->chain);
	result->marked = t->pool.packets[result->id].meta.marked;
	nw_cp_departed(&t->q, t->pool.packets[result->id].meta.len, now);
}

void nwt_cp_on_rate(void *opaque, u64 rate, u64 now)
{
	struct nwt_cp *t = opaque;

	if (!t->fixed_rate)
		nw_cp_set_rate(&t->q, rate, now);
}

void nwt_cp_observe(void *opaque, const u32 *hash, u64 now, struct nwt_totals *totals)
{
	struct nwt_cp *t = opaque;

	(void)hash, (void)now;
	totals->packets = t->q.packets;
	totals->bytes = t->q.bytes;
	totals->more[0] = nw_policer_tokens(&t->q.policer);
	totals->more[1] = nw_cp_token_rate(&t->q);
}

/* The rule for the bucket's depth, for a test of how it deviates. */
u64 nwt_policer_rule(u64 threshold, u64 most, u64 excess, u64 mtu)
{
	return nw_policer_rule(threshold, most, excess, mtu);
}

/* a · b / d with the product by its parts, as in BPF, for a test of the arithmetic. */
u64 nwt_mul_div(u64 a, u64 b, u64 d)
{
	return nw_div_sat(nw_mul_parts(a, b), d);
}
