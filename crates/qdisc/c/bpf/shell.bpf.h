/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the disciplines do alike as BPF programs (struct_ops Qdisc_ops, Linux 6.16 and later): packets in nodes that
 * exist from the start, a shaper, accounts.
 *
 * A BPF qdisc is the root, or a child of mq; it cannot be below htb, so it shapes by itself. It can mark nothing and
 * segment nothing: switch GSO off. One object is one qdisc. Options are written to its .rodata before it is loaded.
 * `narrows qdisc show` reads the variables that are not static, by name.
 */
#ifndef NARROWS_SHELL_BPF_H
#define NARROWS_SHELL_BPF_H

#include "kernel.bpf.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "narrows/params.h"

/* An open-coded iterator bounds each loop; this many rounds are the most that the kernel grants it. */
#define NW_BPF_LOOPS 0x7fffffu
#define nw_for(i, n)                                                                                    \
	int i;                                                                                          \
	bpf_for(i, 0, (u32)(n) < NW_BPF_LOOPS ? (int)(n) : (int)NW_BPF_LOOPS)

/* Maximum number of queued packets, a power of two. */
#define NW_NODES 16384

char _license[] SEC("license") = "GPL";

/*
 * The shaper's rate in bit/s; zero for none. It is in a map of its own, whose one value a program may write while packets
 * pass. Overhead is added to each packet's length, bytes.
 */
#ifndef NW_SHAPE_RATE
#define NW_SHAPE_RATE 0
#endif
volatile u64 shape_rate SEC(".data.rate") = NW_SHAPE_RATE;
const volatile s32 shape_overhead = 0;
/* Packets longer than this are several that were joined (GSO, GRO), bytes with the link header; zero to count none. */
const volatile u32 largest_packet = 0;

/* A parameter of params.h as a constant, if the program has it: opt_limit and so on. */
#define NW_CONSTANT(discipline, attribute, name, kind, bits, low, high, preset, once, automatic, bpf, text)	\
	NW_CONSTANT_##bpf(u##bits, opt_##name, preset)
#define NW_CONSTANT_1(type, name, preset) const volatile type name = preset;
#define NW_CONSTANT_0(type, name, preset)

/* A packet that waits. Links are numbers of nodes plus one, zero for none. */
struct pkt_node {
	struct sk_buff __kptr *skb;
	u32 len;
	u32 next;
	u32 prev;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, NW_NODES);
	__type(key, u32);
	__type(value, struct pkt_node);
} nodes SEC(".maps");

/* A list of nodes. */
struct pkt_chain {
	u32 head;
	u32 tail;
};

/* Nodes that have ever been used, and those of them that are free again. */
static u32 nodes_used;
static u32 nodes_free;
/* When the shaper lets the next packet go. */
static u64 next_tx;
/* A qdisc uses the maps. */
static bool in_use;

/* Statistics: packets that have left, packets dropped by reason, packets that were several joined to one. */
u64 sent_packets;
u64 sent_bytes;
u64 dropped[8];
u64 joined_packets;

static __always_inline struct pkt_node *node_at(u32 number)
{
	u32 key = number - 1;

	return bpf_map_lookup_elem(&nodes, &key);
}

static __always_inline u32 packet_len(const struct sk_buff *skb)
{
	u32 len = ((struct qdisc_skb_cb *)skb->cb)->pkt_len;

	if (largest_packet && len > largest_packet)
		joined_packets++;
	return len;
}

/* A free node, or none; *number is its number plus one. */
static __always_inline struct pkt_node *take_node(u32 *number)
{
	struct pkt_node *node;

	*number = nodes_free;
	if (!*number) {
		if (nodes_used >= NW_NODES)
			return NULL;
		*number = ++nodes_used;
		return node_at(*number);
	}
	node = node_at(*number);
	if (node)
		nodes_free = node->next;
	return node;
}

static __always_inline void free_node(u32 number, struct pkt_node *node)
{
	node->next = nodes_free;
	nodes_free = number;
}

/* Puts a node that holds its packet at a chain's end. */
static __always_inline void push(struct pkt_chain *chain, u32 number, struct pkt_node *node)
{
	struct pkt_node *last;

	node->next = 0;
	node->prev = chain->tail;
	if (chain->tail) {
		last = node_at(chain->tail);
		if (last)
			last->next = number;
	} else {
		chain->head = number;
	}
	chain->tail = number;
}

/* Takes the first node of a chain off it, if there is one; *number is its number plus one. */
static __always_inline struct pkt_node *pop_front(struct pkt_chain *chain, u32 *number)
{
	struct pkt_node *node, *next;

	*number = chain->head;
	if (!*number)
		return NULL;
	node = node_at(*number);
	if (!node)
		return NULL;
	chain->head = node->next;
	if (!chain->head) {
		chain->tail = 0;
	} else {
		next = node_at(chain->head);
		if (next)
			next->prev = 0;
	}
	return node;
}

/* The same with the last node. */
static __always_inline struct pkt_node *pop_back(struct pkt_chain *chain, u32 *number)
{
	struct pkt_node *node, *prev;

	*number = chain->tail;
	if (!*number)
		return NULL;
	node = node_at(*number);
	if (!node)
		return NULL;
	chain->tail = node->prev;
	if (!chain->tail) {
		chain->head = 0;
	} else {
		prev = node_at(chain->tail);
		if (prev)
			prev->next = 0;
	}
	return node;
}

/* May nothing leave now? The watchdog is set then. */
static __always_inline bool is_shaped(struct Qdisc *sch, u64 now)
{
	if (!shape_rate || now >= next_tx)
		return false;
	bpf_qdisc_watchdog_schedule(sch, next_tx, 0);
	return true;
}

/* A packet leaves. A watchdog that comes up to a millisecond late costs no rate. */
static __always_inline void account_sent(u32 len, u64 now)
{
	u64 rate = shape_rate;
	s64 size;

	sent_packets++;
	sent_bytes += len;
	if (!rate)
		return;
	size = (s64)len + shape_overhead;
	if (next_tx + 1000000 < now)
		next_tx = now;
	next_tx += (u64)(size > 1 ? size : 1) * 8000000000ull / rate;
}

static __always_inline void account_queued(struct Qdisc *sch, u32 len)
{
	sch->q.qlen++;
	sch->qstats.backlog += len;
}

static __always_inline void account_removed(struct Qdisc *sch, u32 len)
{
	sch->q.qlen--;
	sch->qstats.backlog -= len;
}

#endif
