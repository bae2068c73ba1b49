// SPDX-License-Identifier: GPL-2.0-only
/* fq_codel_fair.h in user space. */
#include "shell.h"

/* A packet's number plus one. */
typedef u32 nw_pkt;
#define NW_PKT_NONE 0u
#define nw_pkt_none(packet) (!(packet))
#define NW_FLOW_LINKS struct nwt_chain chain;
struct nw_fair;
static u32 nw_pkt_len(struct nw_fair *q, nw_pkt packet);
static u32 nw_pkt_hash(struct nw_fair *q, nw_pkt packet);
static u64 nw_pkt_arrived(struct nw_fair *q, nw_pkt packet);
static bool nw_pkt_mark(struct nw_fair *q, nw_pkt packet);
static void nw_pkt_drop(struct nw_fair *q, nw_pkt packet, enum nw_reason reason);
static void nw_pkt_push(struct nw_fair *q, u32 slot, nw_pkt packet);
static nw_pkt nw_pkt_pop(struct nw_fair *q, u32 slot);
#include "narrows/fq_codel_fair.h"

struct nwt_fair {
	struct nw_fair q;
	struct nwt_pool pool;
	/* Of the call in progress. */
	struct nwt_result *result;
};

static struct nwt_fair *shell(struct nw_fair *q)
{
	return (struct nwt_fair *)((char *)q - offsetof(struct nwt_fair, q));
}

static u32 nw_pkt_len(struct nw_fair *q, nw_pkt packet)
{
	return shell(q)->pool.packets[packet - 1].meta.len;
}

static u32 nw_pkt_hash(struct nw_fair *q, nw_pkt packet)
{
	return shell(q)->pool.packets[packet - 1].meta.hash;
}

static u64 nw_pkt_arrived(struct nw_fair *q, nw_pkt packet)
{
	return shell(q)->pool.packets[packet - 1].arrived;
}

static bool nw_pkt_mark(struct nw_fair *q, nw_pkt packet)
{
	return nwt_mark(&shell(q)->pool.packets[packet - 1]);
}

static void nw_pkt_drop(struct nw_fair *q, nw_pkt packet, enum nw_reason reason)
{
	nwt_report(shell(q)->result, packet - 1, reason);
}

static void nw_pkt_push(struct nw_fair *q, u32 slot, nw_pkt packet)
{
	nwt_push(&shell(q)->pool, &q->flows[slot].chain, packet - 1);
}

static nw_pkt nw_pkt_pop(struct nw_fair *q, u32 slot)
{
	return nwt_pop_front(&shell(q)->pool, &q->flows[slot].chain) + 1;
}

void *nwt_fair_new(const u64 *p)
{
	struct nwt_fair *t = nwt_alloc(1, sizeof(*t));
	struct nw_fair *q = &t->q;

	q->limit = (u32)p[0];
	q->n_flows = (u32)p[1];
	q->quantum = (s32)p[2];
	q->law = (struct nw_codel_law){ .target = p[3], .interval = p[4], .ecn = p[5], .mtu = p[6] };
	q->newcomers_limit = (u32)p[7];
	q->memory = p[8];
	q->probation = p[9];
	q->ahead = p[10];
	q->link_rate = p[11];
	q->flows = nwt_alloc(q->n_flows + 1, sizeof(*q->flows));
	nw_fair_reset(q);
	return t;
}

void nwt_fair_free(void *opaque)
{
	struct nwt_fair *t = opaque;

	free(t->q.flows);
	free(t->pool.packets);
	free(t);
}

void nwt_fair_enqueue(void *opaque, u32 id, const struct nwt_meta *meta, u64 now, struct nwt_result *result)
{
	struct nwt_fair *t = opaque;

	t->result = result;
	nwt_add(&t->pool, id, meta, now);
	nw_fair_enqueue(&t->q, id + 1, now);
}

void nwt_fair_dequeue(void *opaque, u64 now, struct nwt_result *result)
{
	struct nwt_fair *t = opaque;
	nw_pkt packet;

	t->result = result;
	packet = nw_fair_dequeue(&t->q, now);
	result->next = packet ? NW_PACKET : NW_EMPTY;
	if (!packet)
		return;
	result->id = packet - 1;
	result->marked = t->pool.packets[packet - 1].meta.marked;
}

void nwt_fair_on_rate(void *opaque, u64 rate, u64 now)
{
	struct nwt_fair *t = opaque;

	(void)now;
	t->q.link_rate = rate;
}

void nwt_fair_observe(void *opaque, const u32 *hash, u64 now, struct nwt_totals *totals)
{
	struct nwt_fair *t = opaque;
	struct nw_flow *flow = NULL;
	u32 found = hash ? nw_fair_bucket_of(&t->q, *hash) : 0;

	(void)now;
	if (found)
		flow = &t->q.flows[found - 1];
	totals->packets = t->q.packets;
	totals->bytes = t->q.bytes;
	totals->more[0] = t->q.waiting;
	totals->more[1] = t->q.flows[t->q.n_flows].packets;
	totals->more[2] = t->q.debt;
	totals->more[3] = nw_fair_law_now(&t->q).target;
	totals->more[4] = t->q.virtual_time;
	totals->more[5] = t->q.settled_waiting;
	if (!flow)
		return;
	totals->more[6] = flow->packets;
	totals->more[7] = flow->tag;
	totals->more[8] = flow->listed;
}

/* CoDel's spacing, for a test of how it deviates. */
u64 nwt_codel_spacing(u64 interval, u32 rec_inv_sqrt)
{
	struct nw_codel codel = { .rec_inv_sqrt = (u16)rec_inv_sqrt };
	struct nw_codel_law law = { .interval = interval };

	return nw_codel_spacing(&codel, &law);
}
