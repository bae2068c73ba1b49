/* SPDX-License-Identifier: GPL-2.0-only */
/* What differs between the kernels 6.1 and 7.2. */
#ifndef NARROWS_COMPAT_H
#define NARROWS_COMPAT_H

#include <linux/version.h>
#if __has_include(<net/gso.h>)
/* 6.5 moved skb_gso_segment here. */
#include <net/gso.h>
#endif
#include <net/pkt_sched.h>

/* May parents be told of an empty queue in their own dequeue? Since 6.15 the kernel's own disciplines do. */
#define NW_PARENTS_BEAR_EMPTY (LINUX_VERSION_CODE >= KERNEL_VERSION(6, 16, 0))

/* What a packet is accounted as: one segment of this length. */
static inline void nw_set_pkt_len(struct sk_buff *skb, unsigned int len)
{
	qdisc_skb_cb(skb)->pkt_len = len;
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 19, 0)
	qdisc_skb_cb(skb)->pkt_segs = 1;
#endif
}

#endif
