// SPDX-License-Identifier: GPL-2.0-only
/*
 * FQ-CoDel that protects backlogged flows. The algorithm is ../include/narrows/fq_codel_fair.h; this file gives it
 * packets.
 *
 * Deviates: nobody tells a qdisc the rate of its link. Until it has been measured it is `rate`, and zero unless that
 * is given: the target is the one that was set then, and newcomers may be ahead of nobody.
 *
 * Memory, from the start: 144 B for each bucket, which is 148 KB by default and 4.7 MB at most; `limit` packets
 * beside it.
 */
#define NW_NAME fq_codel_fair
#define NW_PREFIX FAIR
#define NW_ABOUT "FQ-CoDel that protects backlogged flows"
#define NW_CLASSES fq_codel_fair_class_ops
#include <linux/mm.h>

#include "shell.h"

typedef struct sk_buff *nw_pkt;
#define NW_PKT_NONE NULL
#define nw_pkt_none(packet) (!(packet))
#define NW_FLOW_LINKS struct sk_buff_head queue;
struct nw_fair;
static u32 nw_pkt_len(struct nw_fair *q, nw_pkt skb);
static u32 nw_pkt_hash(struct nw_fair *q, nw_pkt skb);
static u64 nw_pkt_arrived(struct nw_fair *q, nw_pkt skb);
static bool nw_pkt_mark(struct nw_fair *q, nw_pkt skb);
static void nw_pkt_drop(struct nw_fair *q, nw_pkt skb, enum nw_reason reason);
static void nw_pkt_push(struct nw_fair *q, u32 slot, nw_pkt skb);
static nw_pkt nw_pkt_pop(struct nw_fair *q, u32 slot);
#include "narrows/fq_codel_fair.h"

#if !defined(CONFIG_DEBUG_SPINLOCK) && !defined(CONFIG_DEBUG_LOCK_ALLOC)
/* The memory above is stated for this. */
static_assert(sizeof(struct nw_flow) <= 144);
#endif

struct fq_codel_fair_sched_data {
	struct nw_shell shell;
	struct nw_fair q;
	struct Qdisc *sch;
	/*
	 * Of the call in progress: where an enqueue leaves dropped packets, and whether the one that came is among
	 * them.
	 */
	struct sk_buff **to_free;
	struct sk_buff *arriving;
	bool arriving_dropped;
};

/* What is kept with a packet that waits. */
struct fair_skb_cb {
	u64 arrived;
	u32 hash;
};

static struct fair_skb_cb *fair_skb_cb(const struct sk_buff *skb)
{
	qdisc_cb_private_validate(skb, sizeof(struct fair_skb_cb));
	return (struct fair_skb_cb *)qdisc_skb_cb(skb)->data;
}

static u32 nw_pkt_len(struct nw_fair *q, nw_pkt skb)
{
	return qdisc_pkt_len(skb);
}

static u32 nw_pkt_hash(struct nw_fair *q, nw_pkt skb)
{
	return fair_skb_cb(skb)->hash;
}

static u64 nw_pkt_arrived(struct nw_fair *q, nw_pkt skb)
{
	return fair_skb_cb(skb)->arrived;
}

static bool nw_pkt_mark(struct nw_fair *q, nw_pkt skb)
{
	return nw_mark(&container_of(q, struct fq_codel_fair_sched_data, q)->shell, skb);
}

static void nw_pkt_drop(struct nw_fair *q, nw_pkt skb, enum nw_reason reason)
{
	struct fq_codel_fair_sched_data *p = container_of(q, struct fq_codel_fair_sched_data, q);

	if (skb == p->arriving) {
		p->arriving_dropped = true;
		nw_account_removed(p->sch, skb);
		nw_drop(p->sch, &p->shell, skb, reason, p->to_free);
	} else if (p->to_free) {
		nw_drop_waiting(p->sch, &p->shell, skb, reason, p->to_free);
	} else {
		nw_drop_at_dequeue(p->sch, &p->shell, skb, reason);
	}
}

static void nw_pkt_push(struct nw_fair *q, u32 slot, nw_pkt skb)
{
	__skb_queue_tail(&q->flows[slot].queue, skb);
}

static nw_pkt nw_pkt_pop(struct nw_fair *q, u32 slot)
{
	return __skb_dequeue(&q->flows[slot].queue);
}

static __always_inline int fq_codel_fair_enqueue_one(struct sk_buff *skb, struct Qdisc *sch, u32 hash, u64 now, struct sk_buff **to_free)
{
	struct fq_codel_fair_sched_data *p = qdisc_priv(sch);

	fair_skb_cb(skb)->arrived = now;
	fair_skb_cb(skb)->hash = hash;
	p->to_free = to_free;
	p->arriving = skb;
	p->arriving_dropped = false;
	/* Whoever is dropped is taken off the accounts, this one too. */
	nw_account_queued(sch, skb);
	nw_fair_enqueue(&p->q, skb, now);
	p->to_free = NULL;
	p->arriving = NULL;
	return p->arriving_dropped ? NET_XMIT_DROP : NET_XMIT_SUCCESS;
}

static int fq_codel_fair_enqueue(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free)
{
	struct fq_codel_fair_sched_data *p = qdisc_priv(sch);

	return nw_enqueue(skb, sch, &p->shell, to_free, true, fq_codel_fair_enqueue_one);
}

static struct sk_buff *fq_codel_fair_dequeue(struct Qdisc *sch)
{
	struct fq_codel_fair_sched_data *p = qdisc_priv(sch);
	struct sk_buff *skb = nw_fair_dequeue(&p->q, ktime_get_ns());

	if (skb)
		nw_account_sent(sch, skb);
	nw_tell_if_safe(sch, &p->shell);
	return skb;
}

static void fq_codel_fair_reset(struct Qdisc *sch)
{
	struct fq_codel_fair_sched_data *p = qdisc_priv(sch);
	u32 slot;

	/* A qdisc whose memory was refused is reset, too. */
	if (!p->q.flows)
		return;
	for (slot = 0; slot <= p->q.n_flows; slot++) {
		nw_purge(&p->q.flows[slot].queue);
		memset(&p->q.flows[slot], 0, sizeof(p->q.flows[slot]));
		__skb_queue_head_init(&p->q.flows[slot].queue);
	}
	nw_fair_reset(&p->q);
	nw_shell_reset(&p->shell);
}

static void fq_codel_fair_begin(struct Qdisc *sch)
{
	struct fq_codel_fair_sched_data *p = qdisc_priv(sch);

	p->sch = sch;
}

static int fq_codel_fair_alloc(struct Qdisc *sch, const u64 *values)
{
	struct fq_codel_fair_sched_data *p = qdisc_priv(sch);
	struct nw_fair *q = &p->q;
	u32 slot;

	q->n_flows = values[NW_FAIR_A_FLOWS];
	q->flows = kvcalloc(q->n_flows + 1, sizeof(*q->flows), GFP_KERNEL);
	if (!q->flows)
		return -ENOMEM;
	for (slot = 0; slot <= q->n_flows; slot++)
		__skb_queue_head_init(&q->flows[slot].queue);
	nw_fair_reset(q);
	return 0;
}

static void fq_codel_fair_set(struct Qdisc *sch, const u64 *values, bool adding)
{
	struct fq_codel_fair_sched_data *p = qdisc_priv(sch);
	struct nw_fair *q = &p->q;

	q->limit = values[NW_A_LIMIT];
	q->newcomers_limit = values[NW_FAIR_A_NEWCOMERS];
	q->quantum = values[NW_FAIR_A_QUANTUM];
	q->memory = values[NW_FAIR_A_MEMORY];
	q->probation = values[NW_FAIR_A_PROBATION];
	q->ahead = values[NW_FAIR_A_AHEAD];
	q->link_rate = values[NW_FAIR_A_RATE];
	q->law = (struct nw_codel_law){
		.target = values[NW_FAIR_A_TARGET],
		.interval = values[NW_FAIR_A_INTERVAL],
		.mtu = nw_mtu(sch, values[NW_FAIR_A_MTU]),
		.ecn = values[NW_FAIR_A_ECN],
	};
	/* Whoever would pay for a full buffer pays for the lower limit. */
	nw_fair_overflow(q);
}

static void fq_codel_fair_destroy(struct Qdisc *sch)
{
	struct fq_codel_fair_sched_data *p = qdisc_priv(sch);

	kvfree(p->q.flows);
}

static void fq_codel_fair_statistics(struct Qdisc *sch, u64 *s)
{
	struct fq_codel_fair_sched_data *p = qdisc_priv(sch);

	s[NW_FAIR_S_FLOWS] = p->q.waiting;
	s[NW_FAIR_S_SETTLED] = p->q.settled_waiting;
	s[NW_FAIR_S_NEWCOMERS] = p->q.flows[p->q.n_flows].packets;
	s[NW_FAIR_S_DEBT] = p->q.debt;
	s[NW_FAIR_S_TARGET] = nw_fair_law_now(&p->q).target;
	s[NW_FAIR_S_RATE] = nw_fair_rate(&p->q);
}

static void fq_codel_fair_walk(struct Qdisc *sch, struct qdisc_walker *arg)
{
	struct fq_codel_fair_sched_data *p = qdisc_priv(sch);
	u32 slot;

	if (arg->stop)
		return;
	for (slot = 0; slot <= p->q.n_flows; slot++) {
		if (READ_ONCE(p->q.flows[slot].listed) == NW_UNLISTED) {
			arg->count++;
			continue;
		}
		if (!tc_qdisc_stats_dump(sch, slot + 1, arg))
			break;
	}
}

static int fq_codel_fair_dump_class_stats(struct Qdisc *sch, unsigned long cl, struct gnet_dump *d)
{
	struct fq_codel_fair_sched_data *p = qdisc_priv(sch);
	const struct nw_flow *flow = &p->q.flows[cl - 1];
	struct gnet_stats_queue queue = {};
	u64 s[NW_FAIR_F_END];

	sch_tree_lock(sch);
	queue.qlen = flow->packets;
	queue.backlog = flow->bytes;
	s[NW_S_KIND] = 1;
	s[NW_FLOW_S_DEFICIT] = (s64)flow->deficit;
	s[NW_FAIR_F_AHEAD] = flow->tag - p->q.virtual_time;
	s[NW_FAIR_F_SETTLED] = flow->settled;
	s[NW_FAIR_F_DROPPING] = flow->codel.dropping;
	sch_tree_unlock(sch);
	if (gnet_stats_copy_queue(d, NULL, &queue, queue.qlen) < 0)
		return -1;
	return gnet_stats_copy_app(d, s, sizeof(s));
}

static const struct Qdisc_class_ops fq_codel_fair_class_ops = {
	.leaf = nw_class_leaf,
	.find = nw_class_find,
	.walk = fq_codel_fair_walk,
	.dump = nw_class_dump,
	.dump_stats = fq_codel_fair_dump_class_stats,
};

#include "qdisc.h"
