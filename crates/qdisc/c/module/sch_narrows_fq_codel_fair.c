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

struct fair_sched_data {
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
	return nw_mark(&container_of(q, struct fair_sched_data, q)->shell, skb);
}

static void nw_pkt_drop(struct nw_fair *q, nw_pkt skb, enum nw_reason reason)
{
	struct fair_sched_data *p = container_of(q, struct fair_sched_data, q);

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

static const struct nw_option fair_options[NW_FAIR_A_END] = { NW_FAIR_PARAMS(NW_OPTION) };
static struct nla_policy fair_policy[NW_FAIR_A_END];

static __always_inline int fair_enqueue_one(struct sk_buff *skb, struct Qdisc *sch, u32 hash, u64 now, struct sk_buff **to_free)
{
	struct fair_sched_data *p = qdisc_priv(sch);

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

static int fair_enqueue(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free)
{
	struct fair_sched_data *p = qdisc_priv(sch);

	return nw_enqueue(skb, sch, &p->shell, to_free, true, fair_enqueue_one);
}

static struct sk_buff *fair_dequeue(struct Qdisc *sch)
{
	struct fair_sched_data *p = qdisc_priv(sch);
	struct sk_buff *skb = nw_fair_dequeue(&p->q, ktime_get_ns());

	if (skb)
		nw_account_sent(sch, skb);
	nw_tell_if_safe(sch, &p->shell);
	return skb;
}

static void fair_reset(struct Qdisc *sch)
{
	struct fair_sched_data *p = qdisc_priv(sch);
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

static int fair_set(struct Qdisc *sch, struct nlattr *opt, bool adding, struct netlink_ext_ack *extack)
{
	struct fair_sched_data *p = qdisc_priv(sch);
	struct nw_fair *q = &p->q;
	u64 values[NW_OPTIONS];
	u32 slot;
	int err;

	memcpy(values, p->shell.options, sizeof(values));
	err = nw_parse(opt, fair_options, fair_policy, NW_FAIR_A_END, values, adding, extack);
	if (err)
		return err;
	if (adding) {
		q->n_flows = values[NW_FAIR_A_FLOWS];
		q->flows = kvcalloc(q->n_flows + 1, sizeof(*q->flows), GFP_KERNEL);
		if (!q->flows)
			return -ENOMEM;
		for (slot = 0; slot <= q->n_flows; slot++)
			__skb_queue_head_init(&q->flows[slot].queue);
		nw_fair_reset(q);
	}
	sch_tree_lock(sch);
	memcpy(p->shell.options, values, sizeof(values));
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
	sch->limit = q->limit;
	/* Whoever would pay for a full buffer pays for the lower limit. */
	nw_fair_overflow(q);
	nw_tell(sch, &p->shell);
	sch_tree_unlock(sch);
	return 0;
}

static int fair_change(struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *extack)
{
	return fair_set(sch, opt, false, extack);
}

static int fair_init(struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *extack)
{
	struct fair_sched_data *p = qdisc_priv(sch);

	p->sch = sch;
	nw_shell_init(&p->shell, fair_options, NW_FAIR_A_END);
	return fair_set(sch, opt, true, extack);
}

static void fair_destroy(struct Qdisc *sch)
{
	struct fair_sched_data *p = qdisc_priv(sch);

	kvfree(p->q.flows);
}

static int fair_dump(struct Qdisc *sch, struct sk_buff *skb)
{
	struct fair_sched_data *p = qdisc_priv(sch);

	return nw_dump(skb, fair_options, NW_FAIR_A_END, p->shell.options);
}

static int fair_dump_stats(struct Qdisc *sch, struct gnet_dump *d)
{
	struct fair_sched_data *p = qdisc_priv(sch);
	u64 s[NW_FAIR_S_END];

	sch_tree_lock(sch);
	nw_shell_statistics(&p->shell, s);
	s[NW_FAIR_S_FLOWS] = p->q.waiting;
	s[NW_FAIR_S_SETTLED] = p->q.settled_waiting;
	s[NW_FAIR_S_NEWCOMERS] = p->q.flows[p->q.n_flows].packets;
	s[NW_FAIR_S_DEBT] = p->q.debt;
	s[NW_FAIR_S_TARGET] = nw_fair_law_now(&p->q).target;
	s[NW_FAIR_S_RATE] = nw_fair_rate(&p->q);
	sch_tree_unlock(sch);
	return gnet_stats_copy_app(d, s, sizeof(s));
}

static void fair_walk(struct Qdisc *sch, struct qdisc_walker *arg)
{
	struct fair_sched_data *p = qdisc_priv(sch);
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

static int fair_dump_class_stats(struct Qdisc *sch, unsigned long cl, struct gnet_dump *d)
{
	struct fair_sched_data *p = qdisc_priv(sch);
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

static const struct Qdisc_class_ops fair_class_ops = {
	.leaf = nw_class_leaf,
	.find = nw_class_find,
	.walk = fair_walk,
	.dump = nw_class_dump,
	.dump_stats = fair_dump_class_stats,
};

static struct Qdisc_ops fair_qdisc_ops __read_mostly = {
	.cl_ops = &fair_class_ops,
	.id = "fq_codel_fair",
	.priv_size = sizeof(struct fair_sched_data),
	.enqueue = fair_enqueue,
	.dequeue = fair_dequeue,
	.peek = qdisc_peek_dequeued,
	.init = fair_init,
	.reset = fair_reset,
	.destroy = fair_destroy,
	.change = fair_change,
	.dump = fair_dump,
	.dump_stats = fair_dump_stats,
	.owner = THIS_MODULE,
};

static int __init fair_module_init(void)
{
	nw_policy_init(fair_policy, fair_options, NW_FAIR_A_END);
	return register_qdisc(&fair_qdisc_ops);
}

static void __exit fair_module_exit(void)
{
	unregister_qdisc(&fair_qdisc_ops);
}

module_init(fair_module_init);
module_exit(fair_module_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("FQ-CoDel that protects backlogged flows (fq_codel_fair)");
MODULE_ALIAS("net-sch-fq_codel_fair");
MODULE_ALIAS("sch_fq_codel_fair");
