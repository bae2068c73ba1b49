// SPDX-License-Identifier: GPL-2.0-only
/*
 * cocoa.h as a BPF qdisc, without pacing. Memory: 16 384 nodes of 24 B, 1024 flows of 136 B and 40 B for the addresses
 * that they are shown with.
 */
#define NW_NAME cocoa
#define NW_PREFIX COCOA
#define NW_DISCIPLINE "narrows/cocoa.h"
#include "flows.bpf.h"

static __always_inline enum nw_verdict arrive(u32 hash, u64 now, u32 *slot, enum nw_reason *reason)
{
	return nw_cocoa_enqueue(&cocoa, hash, 0, false, now, slot, reason);
}

static __always_inline bool has_begun(const struct nw_flow *flow, u64 now)
{
	return flow->state.first && flow->state.interval_start == now && !flow->packets;
}

static __always_inline void trim(struct Qdisc *sch, u32 slot, enum nw_reason reason, struct bpf_sk_buff_ptr *to_free)
{
	nw_for(trimmed, NW_NODES) {
		struct pkt_node *node;
		struct sk_buff *old;
		u32 number, len;

		if (!nw_cocoa_has_surplus(&cocoa, slot))
			break;
		node = pop_back(&NW_FLOW_AT(NULL, slot)->chain, &number);
		if (!node)
			break;
		old = bpf_kptr_xchg(&node->skb, NULL);
		len = node->len;
		free_node(number, node);
		nw_cocoa_trimmed(&cocoa, slot, len);
		account_removed(sch, len);
		dropped[reason & 7]++;
		sch->qstats.drops++;
		if (old)
			bpf_qdisc_skb_drop(old, to_free);
	}
}

static __always_inline void set_options(void)
{
	cocoa.law.max_guard = opt_max_guard;
	cocoa.law.multiplier = opt_multiplier;
	cocoa.law.max_increase = opt_max_increase;
	cocoa.law.initial_limit = opt_initial_limit;
	cocoa.law.min_limit = opt_min_limit;
	cocoa.law.whole = opt_growth;
	cocoa.law.learn = opt_learn;
}
