/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A shell in user space, for `crates/qdisc/tests/decisions`: it links packets, which the caller numbers, and reports
 * what is dropped. Each discipline has a file beside this one, with the same six functions.
 */
#ifndef NARROWS_TEST_SHELL_H
#define NARROWS_TEST_SHELL_H

#include <stdlib.h>
#include <string.h>

#include "narrows/base.h"

/* A packet, as the caller describes it. `repr(C)` in ffi.rs. */
struct nwt_meta {
	u64 depart;
	u32 hash;
	u32 len;
	/* It can be marked; it is marked. */
	u8 capable;
	u8 marked;
	u8 spin;
};

struct nwt_drop {
	u32 id;
	u32 reason;
};

/* What a call came to. */
struct nwt_result {
	/* Of a dequeue: one of enum nw_next, the packet, the time. */
	u32 next;
	u32 id;
	u64 at;
	/* Dropped packets, in order. */
	struct nwt_drop *drops;
	u32 n_drops;
	u32 room;
	/* The packet that was queued or sent is marked. */
	u32 marked;
};

/* What waits, and more numbers that a discipline tells. */
struct nwt_totals {
	u64 packets;
	u64 bytes;
	u64 more[10];
};

struct nwt_packet {
	struct nwt_meta meta;
	u64 arrived;
	/* Neighbours in the list: numbers plus one. */
	u32 next;
	u32 prev;
};

/* Packets by their number. */
struct nwt_pool {
	struct nwt_packet *packets;
	u32 room;
};

struct nwt_chain {
	u32 head;
	u32 tail;
};

static inline struct nwt_packet *nwt_add(struct nwt_pool *pool, u32 id, const struct nwt_meta *meta, u64 now)
{
	if (id >= pool->room) {
		u32 room = 2 * id + 64;

		pool->packets = realloc(pool->packets, room * sizeof(*pool->packets));
		if (!pool->packets)
			abort();
		pool->room = room;
	}
	pool->packets[id] = (struct nwt_packet){ .meta = *meta, .arrived = now };
	return &pool->packets[id];
}

static inline void nwt_push(struct nwt_pool *pool, struct nwt_chain *chain, u32 id)
{
	pool->packets[id].next = 0;
	pool->packets[id].prev = chain->tail;
	if (chain->tail)
		pool->packets[chain->tail - 1].next = id + 1;
	else
		chain->head = id + 1;
	chain->tail = id + 1;
}

static inline u32 nwt_pop_front(struct nwt_pool *pool, struct nwt_chain *chain)
{
	u32 id = chain->head - 1;

	if (!chain->head)
		abort();
	chain->head = pool->packets[id].next;
	if (chain->head)
		pool->packets[chain->head - 1].prev = 0;
	else
		chain->tail = 0;
	return id;
}

static inline u32 nwt_pop_back(struct nwt_pool *pool, struct nwt_chain *chain)
{
	u32 id = chain->tail - 1;

	if (!chain->tail)
		abort();
	chain->tail = pool->packets[id].prev;
	if (chain->tail)
		pool->packets[chain->tail - 1].next = 0;
	else
		chain->head = 0;
	return id;
}

/* Marks a packet CE; says whether it can be marked. */
static inline bool nwt_mark(struct nwt_packet *packet)
{
	packet->meta.marked |= packet->meta.capable;
	return packet->meta.capable;
}

static inline void nwt_report(struct nwt_result *result, u32 id, enum nw_reason reason)
{
	if (result->n_drops == result->room) {
		result->room = 2 * result->room + 16;
		result->drops = realloc(result->drops, result->room * sizeof(*result->drops));
		if (!result->drops)
			abort();
	}
	result->drops[result->n_drops++] = (struct nwt_drop){ .id = id, .reason = reason };
}

static inline void *nwt_alloc(size_t n, size_t size)
{
	void *memory = calloc(n, size);

	if (!memory)
		abort();
	return memory;
}

#endif
