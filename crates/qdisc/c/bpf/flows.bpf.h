/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Disciplines with a queue per flow as BPF qdiscs, without pacing: all but the decisions about an arrival. The program
 * defines before the include:
 *
 *   NW_NAME, NW_PREFIX  its name, and what its names in params.h begin with
 *   NW_DISCIPLINE       its header, in quotes
 *
 * and after it:
 *
 *   arrive(hash, now, &slot, &reason)  what happens to a packet that arrives
 *   has_begun(flow, now)               has the flow begun with the packet that arrives now?
 *   trim(sch, slot, reason, to_free)   drops what is beyond a flow's limit, after NW_DROP_AND_TRIM
 *   set_options()                      options, but those of the scheduler
 */
#ifndef NARROWS_FLOWS_BPF_H
#define NARROWS_FLOWS_BPF_H

#include "shell.bpf.h"

/* Flows that are told apart, and buckets to search: powers of two. */
#define FLOWS 1024u

#define NW_FLOW_LINKS struct pkt_chain chain;
#define nw_head_depart(s, slot) ((void)(s), (void)(slot), 0ull)
#define NW_FLOW_AT(s, n) (&flows[(n) & (FLOWS - 1)])
#define NW_BUCKET_AT(s, n) (&buckets[(n) & (FLOWS - 1)])
#define NW_DELAYED_AT(s, n) (&delayed[(n) & 0])
#define NW_FLOW_STORE                      \
	struct nw_flow flows[FLOWS];        \
	static u32 buckets[FLOWS];          \
	static struct nw_delayed delayed[1];
#include NW_DISCIPLINE

#define NW_JOIN(name, what) NW_JOIN_OF(name, what)
#define NW_JOIN_OF(name, what) name##_##what
#define NW_TEXT(name) NW_TEXT_OF(name)
#define NW_TEXT_OF(name) #name
#define NW_LAW(what) NW_JOIN(NW_JOIN(nw, NW_NAME), what)
#define NW_STATE NW_JOIN(nw, NW_NAME)
#define NW_PARAMS_OF(prefix) NW_PARAMS_OF_(prefix)
#define NW_PARAMS_OF_(prefix) NW_##prefix##_PARAMS
/* A program of the discipline's, NAME_what. */
#define NW_ENTRY(what) SEC("struct_ops/" NW_TEXT(NW_NAME) "_" #what)
#define NW_PROG(name, ...) BPF_PROG(name, ##__VA_ARGS__)

/* opt_limit and so on. */
NW_PARAMS_OF(NW_PREFIX)(NW_CONSTANT)

/* Remember the addresses of flows, to show them. */
const volatile bool name_flows = true;

/* Where a flow's first packet came from and went to; ports are in network byte order. */
struct flow_name {
	/* 4, 6, or zero for what is no IP. */
	u8 version;
	u8 protocol;
	u16 source_port;
	u16 destination_port;
	u8 source[16];
	u8 destination[16];
};

struct NW_STATE NW_NAME;
struct flow_name names[FLOWS];

/* Numbers of linux/if_ether.h, in network byte order, and of linux/in.h. */
#define ETH_P_IP __builtin_bswap16(0x0800)
#define ETH_P_IPV6 __builtin_bswap16(0x86dd)
#define IPPROTO_TCP 6
#define IPPROTO_UDP 17
/* More fragments, or an offset: such a packet has no ports, and neither has its hash. */
#define IP_FRAGMENT __builtin_bswap16(0x3fff)

static __always_inline void name_flow(const struct sk_buff *skb, struct flow_name *name)
{
	const unsigned char *header = skb->head + skb->network_header;
	u8 ip[40] = { 0 };
	u16 ports[2] = { 0 };
	u32 len = 40;

	__builtin_memset(name, 0, sizeof(*name));
	if (bpf_probe_read_kernel(ip, sizeof(ip), header))
		return;
	if (skb->protocol == ETH_P_IP) {
		name->version = 4;
		name->protocol = ip[9];
		__builtin_memcpy(name->source, ip + 12, 4);
		__builtin_memcpy(name->destination, ip + 16, 4);
		len = (ip[0] & 15) * 4;
		if (*(u16 *)(ip + 6) & IP_FRAGMENT)
			return;
	} else if (skb->protocol == ETH_P_IPV6) {
		name->version = 6;
		name->protocol = ip[6];
		__builtin_memcpy(name->source, ip + 8, 16);
		__builtin_memcpy(name->destination, ip + 24, 16);
	} else {
		return;
	}
	if (name->protocol != IPPROTO_TCP && name->protocol != IPPROTO_UDP)
		return;
	if (bpf_probe_read_kernel(ports, sizeof(ports), header + len))
		return;
	name->source_port = ports[0];
	name->destination_port = ports[1];
}

static __always_inline enum nw_verdict arrive(u32 hash, u64 now, u32 *slot, enum nw_reason *reason);
static __always_inline bool has_begun(const struct nw_flow *flow, u64 now);
static __always_inline void trim(struct Qdisc *sch, u32 slot, enum nw_reason reason, struct bpf_sk_buff_ptr *to_free);
static __always_inline void set_options(void);

NW_ENTRY(enqueue)
int NW_PROG(NW_JOIN(NW_NAME, enqueue), struct sk_buff *skb, struct Qdisc *sch, struct bpf_sk_buff_ptr *to_free)
{
	u32 len = packet_len(skb), slot = 0, number;
	u64 now = bpf_ktime_get_ns();
	enum nw_reason reason = NW_QUEUE_FULL;
	enum nw_verdict verdict;
	struct sk_buff *old;
	struct pkt_node *node;

	verdict = arrive(bpf_skb_get_hash(skb), now, &slot, &reason);
	if (verdict != NW_ACCEPT)
		goto drop;
	if (name_flows && has_begun(NW_FLOW_AT(NULL, slot), now))
		name_flow(skb, &names[slot & (FLOWS - 1)]);
	node = take_node(&number);
	if (!node)
		goto drop;
	node->len = len;
	old = bpf_kptr_xchg(&node->skb, skb);
	if (old)
		bpf_qdisc_skb_drop(old, to_free);
	push(&NW_FLOW_AT(NULL, slot)->chain, number, node);
	nw_sched_queued(&NW_NAME.sched, slot, len, now);
	account_queued(sch, len);
	return NET_XMIT_SUCCESS;
drop:
	dropped[reason & 7]++;
	sch->qstats.drops++;
	bpf_qdisc_skb_drop(skb, to_free);
	if (verdict == NW_DROP_AND_TRIM)
		trim(sch, slot, reason, to_free);
	return NET_XMIT_DROP;
}

NW_ENTRY(dequeue)
struct sk_buff *NW_PROG(NW_JOIN(NW_NAME, dequeue), struct Qdisc *sch)
{
	u32 slot = 0, number, len;
	u64 now, time = 0;
	struct sk_buff *skb;
	struct pkt_node *node;

	if (!NW_NAME.sched.packets)
		return NULL;
	now = bpf_ktime_get_ns();
	if (is_shaped(sch, now))
		return NULL;
	if (nw_sched_next(&NW_NAME.sched, now, &slot, &time) != NW_PACKET)
		return NULL;
	node = pop_front(&NW_FLOW_AT(NULL, slot)->chain, &number);
	if (!node)
		return NULL;
	skb = bpf_kptr_xchg(&node->skb, NULL);
	len = node->len;
	free_node(number, node);
	NW_LAW(departed)(&NW_NAME, slot, len, now);
	account_removed(sch, len);
	if (!skb)
		return NULL;
	bpf_qdisc_bstats_update(sch, skb);
	account_sent(len, now);
	return skb;
}

NW_ENTRY(init)
int NW_PROG(NW_JOIN(NW_NAME, init), struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *extack)
{
	struct nw_sched *s = &NW_NAME.sched;

	if (in_use)
		return -EBUSY;
	in_use = true;
	set_options();
	s->limit = opt_limit < NW_NODES ? opt_limit : NW_NODES;
	s->quantum = opt_quantum ? opt_quantum : 1;
	s->initial_quantum = opt_initial_quantum;
	s->n_buckets = FLOWS;
	s->mask = FLOWS - 1;
	NW_LAW(reset)(&NW_NAME);
	sch->limit = s->limit;
	return 0;
}

NW_ENTRY(reset)
void NW_PROG(NW_JOIN(NW_NAME, reset), struct Qdisc *sch)
{
	nw_for(slot, FLOWS) {
		nw_for(freed, NW_NODES) {
			u32 number;
			struct pkt_node *node = pop_front(&NW_FLOW_AT(NULL, slot)->chain, &number);
			struct sk_buff *skb;

			if (!node)
				break;
			skb = bpf_kptr_xchg(&node->skb, NULL);
			free_node(number, node);
			if (skb)
				bpf_kfree_skb(skb);
		}
	}
	NW_LAW(reset)(&NW_NAME);
	next_tx = 0;
	sch->q.qlen = 0;
	sch->qstats.backlog = 0;
}

NW_ENTRY(destroy)
void NW_PROG(NW_JOIN(NW_NAME, destroy), struct Qdisc *sch)
{
	in_use = false;
}

SEC(".struct_ops.link")
struct Qdisc_ops NW_JOIN(NW_NAME, ops) = {
	.enqueue = (void *)NW_JOIN(NW_NAME, enqueue),
	.dequeue = (void *)NW_JOIN(NW_NAME, dequeue),
	.init = (void *)NW_JOIN(NW_NAME, init),
	.reset = (void *)NW_JOIN(NW_NAME, reset),
	.destroy = (void *)NW_JOIN(NW_NAME, destroy),
	.id = "bpf_" NW_TEXT(NW_NAME),
};

#endif
