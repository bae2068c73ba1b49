/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Deficit round robin over two lists (RFC 8290 §4.2), after `parts/drr.rs`. New flows are served before old ones. The
 * flow at the head is served while its deficit is positive; a flow without gets a quantum and goes to the end of the
 * old list.
 *
 * The header that includes this one defines NW_DRR_OWNER, a structure with the members `new_flows`, `old_flows` and
 * `quantum`, and NW_FLOW_AT(owner, slot), a pointer to a flow with the members `next`, `deficit` and `listed`.
 */
#ifndef NARROWS_DRR_H
#define NARROWS_DRR_H

#include "base.h"

static inline void nw_list_push(NW_DRR_OWNER *owner, struct nw_list *list, u32 slot)
{
	NW_FLOW_AT(owner, slot)->next = 0;
	if (list->tail)
		NW_FLOW_AT(owner, list->tail - 1)->next = slot + 1;
	else
		list->head = slot + 1;
	list->tail = slot + 1;
}

/* The list is not empty. */
static inline u32 nw_list_pop(NW_DRR_OWNER *owner, struct nw_list *list)
{
	u32 slot = list->head - 1;

	list->head = NW_FLOW_AT(owner, slot)->next;
	if (!list->head)
		list->tail = 0;
	return slot;
}

/* Takes the flow whose turn it is off its list. There is one. */
static inline u32 nw_drr_unlist(NW_DRR_OWNER *owner)
{
	u32 slot = nw_list_pop(owner, owner->new_flows.head ? &owner->new_flows : &owner->old_flows);

	NW_FLOW_AT(owner, slot)->listed = NW_UNLISTED;
	return slot;
}

/* The flow at the head, plus one, or zero. */
static inline u32 nw_drr_head(const NW_DRR_OWNER *owner)
{
	return owner->new_flows.head ? owner->new_flows.head : owner->old_flows.head;
}

/* The flow at the head gets a quantum and goes to the end. There is one. */
static inline void nw_drr_round(NW_DRR_OWNER *owner)
{
	u32 slot = nw_list_pop(owner, owner->new_flows.head ? &owner->new_flows : &owner->old_flows);

	NW_FLOW_AT(owner, slot)->deficit += owner->quantum;
	nw_list_push(owner, &owner->old_flows, slot);
}

/*
 * Whose turn it is, plus one, if it takes one round at most to find out; otherwise zero. That is nearly always enough,
 * and no loop is begun, which costs BPF more than the round.
 */
static inline u32 nw_drr_ready(NW_DRR_OWNER *owner)
{
	u32 head = nw_drr_head(owner);

	if (!head || NW_FLOW_AT(owner, head - 1)->deficit > 0)
		return head;
	nw_drr_round(owner);
	head = nw_drr_head(owner);
	return NW_FLOW_AT(owner, head - 1)->deficit > 0 ? head : 0;
}

/*
 * Whose turn it is, plus one, after flows without a deficit have had their quantum and have gone to the end; zero for
 * nobody.
 */
static inline u32 nw_drr_turn(NW_DRR_OWNER *owner)
{
	u32 ready = nw_drr_ready(owner);

	if (ready)
		return ready;
	nw_for(round, NW_U32_MAX) {
		u32 head = nw_drr_head(owner);

		if (!head || NW_FLOW_AT(owner, head - 1)->deficit > 0)
			return head;
		nw_drr_round(owner);
	}
	return 0;
}

/* A flow has sent a packet. */
static inline void nw_drr_charge(s32 *deficit, u32 len)
{
	s64 left = (s64)*deficit - len;

	*deficit = left < -0x80000000ll ? (s32)-0x80000000ll : (s32)left;
}

#endif
