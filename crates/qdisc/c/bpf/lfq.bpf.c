// SPDX-License-Identifier: GPL-2.0-only
/*
 * lfq.h as a BPF qdisc, without pacing. Memory: 16 384 nodes of 24 B, 1024 flows of 160 B and 40 B for the addresses
 * that they are shown with.
 */
#define NW_NAME lfq
#define NW_PREFIX LFQ
#define NW_DISCIPLINE "narrows/lfq.h"
#include "flows.bpf.h"

static __always_inline enum nw_verdict arrive(u32 hash, u64 now, u32 *slot, enum nw_reason *reason)
{
	return nw_lfq_enqueue(&lfq, hash, 0, now, slot, reason);
}

static __always_inline bool has_begun(const struct nw_flow *flow, u64 now)
{
	return flow->state.start == now && !flow->state.cycles && !flow->packets;
}

/* No limit falls below what waits. */
static __always_inline void trim(struct Qdisc *sch, u32 slot, enum nw_reason reason, struct bpf_sk_buff_ptr *to_free)
{
}

static __always_inline void set_options(void)
{
	lfq.rule = opt_policy;
	lfq.every = opt_every;
	lfq.initial_limit = opt_initial_limit;
	lfq.min_limit = opt_min_limit;
}
