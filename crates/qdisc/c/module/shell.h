/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What all disciplines do alike in the kernel: options, accounts, packets too large for one, statistics.
 *
 * Locking: enqueue, dequeue and reset run under the qdisc's lock, change and dump take it. Options change under RTNL.
 *
 * A packet that the device would segment (GSO) is segmented before it is queued: limits count packets, and a burst of
 * 64 KB is no packet. Each segment then counts with its own headers.
 *
 * Parents keep counts of what waits below them. What happens in an enqueue beyond one packet that is queued or dropped
 * (segments, packets that leave for others) is told to them at its end, in one call: nw_enqueue.
 */
#ifndef NARROWS_SHELL_H
#define NARROWS_SHELL_H

#include <linux/if_vlan.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/random.h>
#include <linux/siphash.h>
#include <linux/skbuff.h>
#include <net/inet_ecn.h>
#include <net/ip.h>
#include <net/netlink.h>
#include <net/pkt_sched.h>

#include "compat.h"
#include "narrows/base.h"
#include "narrows/netlink.h"

/* NAME_what, and NW_PREFIX_WHAT, with the names of a module's macros. */
#define NW_JOIN(name, what) NW_JOIN_OF(name, what)
#define NW_JOIN_OF(name, what) name##_##what
#define NW_OWN(what) NW_JOIN(NW_NAME, what)
#define NW_ENUM(prefix, what) NW_ENUM_OF(prefix, what)
#define NW_ENUM_OF(prefix, what) NW_##prefix##_##what

/* No discipline has more options than these. */
#define NW_OPTIONS 24

/* One option. The table of a discipline is indexed by attribute; there is no option where there is no message. */
struct nw_option {
	/* What is allowed, for a message. */
	const char *allowed;
	u64 least;
	u64 most;
	/* Unless it is set. */
	u64 standard;
	/* 64 bits, not 32. */
	bool wide;
	/* Set when the qdisc is added, and never after: a message that says so. */
	const char *fixed;
};

/* A parameter of params.h as an option. */
#define NW_OPTION(discipline, attribute, name, kind, bits, low, high, preset, once, automatic, bpf, text)	\
	[NW_##discipline##_A_##attribute] = {								\
		text, low, high, preset, (bits) == 64,							\
		(once) ? #name " can only be set when the qdisc is added: delete it first" : NULL	\
	},

/* What every discipline's private data begin with. */
struct nw_shell {
	/* Values, by attribute. */
	u64 options[NW_OPTIONS];
	/* Packets that were dropped, by enum nw_reason, and that were marked. */
	u64 dropped[NW_REASONS];
	u64 marked;
	/* Tell flows apart, by the dissector's hash and by our own for TCP and UDP. Nobody outside can make two flows collide. */
	siphash_key_t key;
	hsiphash_key_t own_keys[2];
	/* By how much the parents count more than waits: packets and bytes. */
	int untold;
	int untold_bytes;
};

/* The table of options as a policy. */
static inline void nw_policy_init(struct nla_policy *policy, const struct nw_option *options, int end)
{
	int n;

	BUG_ON(end > NW_OPTIONS);
	for (n = NW_A_LIMIT; n < end; n++)
		policy[n].type = options[n].wide ? NLA_U64 : NLA_U32;
}

static inline void nw_shell_init(struct nw_shell *shell, const struct nw_option *options, int end)
{
	int n;

	for (n = 0; n < end; n++)
		shell->options[n] = options[n].standard;
	get_random_bytes(&shell->key, sizeof(shell->key));
	get_random_bytes(&shell->own_keys, sizeof(shell->own_keys));
}

/* All packets are gone, and the parents' counts with them. */
static inline void nw_shell_reset(struct nw_shell *shell)
{
	shell->untold = 0;
	shell->untold_bytes = 0;
}

/* Reads options into `values`, which hold the present ones. Says which are not allowed, and why. */
static inline int nw_parse(struct nlattr *opt, const struct nw_option *options, const struct nla_policy *policy, int end,
			   u64 *values, bool adding, struct netlink_ext_ack *extack)
{
	struct nlattr *tb[NW_OPTIONS];
	int n, err;

	if (!opt)
		return 0;
	err = nla_parse_nested(tb, end - 1, opt, policy, extack);
	if (err < 0)
		return err;
	for (n = NW_A_LIMIT; n < end; n++) {
		u64 value;

		if (!tb[n])
			continue;
		value = options[n].wide ? nla_get_u64(tb[n]) : nla_get_u32(tb[n]);
		if (value < options[n].least || value > options[n].most) {
			NL_SET_BAD_ATTR(extack, tb[n]);
			if (extack)
				extack->_msg = options[n].allowed;
			return -EINVAL;
		}
		if (options[n].fixed && !adding && value != values[n]) {
			NL_SET_BAD_ATTR(extack, tb[n]);
			if (extack)
				extack->_msg = options[n].fixed;
			return -EBUSY;
		}
		values[n] = value;
	}
	return 0;
}

static inline int nw_dump(struct sk_buff *skb, const struct nw_option *options, int end, const u64 *values)
{
	struct nlattr *nest = nla_nest_start(skb, TCA_OPTIONS);
	int n;

	if (!nest)
		return -EMSGSIZE;
	for (n = NW_A_LIMIT; n < end; n++) {
		/* Written by a change, under RTNL; a dump may run without. */
		u64 value = READ_ONCE(values[n]);

		if (options[n].wide ? nla_put_u64_64bit(skb, n, value, NW_A_PAD) : nla_put_u32(skb, n, value)) {
			nla_nest_cancel(skb, nest);
			return -EMSGSIZE;
		}
	}
	return nla_nest_end(skb, nest);
}

/* The longest packet in bytes, with its link header, if none is given. */
static inline u32 nw_mtu(const struct Qdisc *sch, u64 given)
{
	return given ? given : psched_mtu(qdisc_dev(sch));
}

/* An IPv4 header without options, an IPv6 header without extensions, and the ports behind them. */
struct nw_ipv4_ports {
	struct iphdr ip;
	__be32 ports;
} __packed __aligned(2);

struct nw_ipv6_ports {
	struct ipv6hdr ip;
	__be32 ports;
} __packed __aligned(2);

/* The hash of TCP's or UDP's addresses and ports. */
static inline u32 nw_hash_ports(const struct nw_shell *shell, const struct nw_ipv4_ports *h)
{
	return hsiphash_3u32((__force u32)h->ip.saddr, (__force u32)h->ip.daddr, (__force u32)h->ports,
			     &shell->own_keys[h->ip.protocol == IPPROTO_UDP]);
}

/* Is this an IPv4 header without options, before the ports of TCP or UDP? */
static inline bool nw_has_ports(const struct nw_ipv4_ports *h)
{
	return *(const u8 *)h == 0x45 && !(h->ip.frag_off & htons(IP_MF | IP_OFFSET)) &&
	       (h->ip.protocol == IPPROTO_TCP || h->ip.protocol == IPPROTO_UDP);
}

/* The hash where the headers are not those of IPv4, or lie in several places. */
static noinline u32 nw_hash_other(const struct nw_shell *shell, const struct sk_buff *skb)
{
	if (skb_vlan_tag_present(skb))
		return skb_get_hash_perturb(skb, &shell->key);
	if (skb->protocol == htons(ETH_P_IP)) {
		struct nw_ipv4_ports copy;
		const struct nw_ipv4_ports *h = skb_header_pointer(skb, skb_network_offset(skb), sizeof(copy), &copy);

		if (h && nw_has_ports(h))
			return nw_hash_ports(shell, h);
	} else if (skb->protocol == htons(ETH_P_IPV6)) {
		struct nw_ipv6_ports copy;
		const struct nw_ipv6_ports *h = skb_header_pointer(skb, skb_network_offset(skb), sizeof(copy), &copy);

		if (h && h->ip.version == 6 && (h->ip.nexthdr == IPPROTO_TCP || h->ip.nexthdr == IPPROTO_UDP)) {
			/* Both addresses and the ports, which follow each other. */
			return hsiphash(&h->ip.saddr, 2 * sizeof(h->ip.saddr) + sizeof(h->ports),
					&shell->own_keys[h->ip.nexthdr == IPPROTO_UDP]);
		}
	}
	return skb_get_hash_perturb(skb, &shell->key);
}

/*
 * The hash of a packet's flow. That of a local socket would change with a retransmission timeout.
 *
 * The kernel's dissector takes 600 instructions. For plain TCP and UDP addresses and ports are read here; both kinds of
 * hash are keyed. The IPv6 flow label is ignored then: Linux changes it with a retransmission timeout, too.
 */
static __always_inline u32 nw_hash(const struct nw_shell *shell, const struct sk_buff *skb)
{
	const struct nw_ipv4_ports *h = (const struct nw_ipv4_ports *)skb_network_header(skb);
	int linear = skb_tail_pointer(skb) - (const unsigned char *)h;

	if (likely(skb->protocol == htons(ETH_P_IP) && !skb_vlan_tag_present(skb) && linear >= (int)sizeof(*h) &&
		   nw_has_ports(h)))
		return nw_hash_ports(shell, h);
	return nw_hash_other(shell, skb);
}

/* A packet joins a queue. */
static inline void nw_account_queued(struct Qdisc *sch, const struct sk_buff *skb)
{
	qdisc_qstats_backlog_inc(sch, skb);
	WRITE_ONCE(sch->q.qlen, sch->q.qlen + 1);
}

/* A packet leaves its queue. */
static inline void nw_account_removed(struct Qdisc *sch, const struct sk_buff *skb)
{
	qdisc_qstats_backlog_dec(sch, skb);
	WRITE_ONCE(sch->q.qlen, sch->q.qlen - 1);
}

/* A packet that arrives is dropped. */
static inline int nw_drop(struct Qdisc *sch, struct nw_shell *shell, struct sk_buff *skb, enum nw_reason reason,
			  struct sk_buff **to_free)
{
	shell->dropped[reason]++;
	return qdisc_drop(skb, sch, to_free);
}

/* A packet that waited, and is in no queue any more, is dropped within an enqueue. nw_enqueue tells the parents. */
static inline void nw_drop_waiting(struct Qdisc *sch, struct nw_shell *shell, struct sk_buff *skb, enum nw_reason reason,
				   struct sk_buff **to_free)
{
	nw_account_removed(sch, skb);
	shell->untold++;
	shell->untold_bytes += qdisc_pkt_len(skb);
	nw_drop(sch, shell, skb, reason, to_free);
}

/* The same outside of an enqueue: the parents are told by nw_tell. */
static inline void nw_drop_at_dequeue(struct Qdisc *sch, struct nw_shell *shell, struct sk_buff *skb, enum nw_reason reason)
{
	nw_account_removed(sch, skb);
	shell->dropped[reason]++;
	shell->untold++;
	shell->untold_bytes += qdisc_pkt_len(skb);
	qdisc_qstats_drop(sch);
	kfree_skb(skb);
}

/* Tells the parents what they must take off their counts, where no packet is on its way to or from them. */
static inline void nw_tell(struct Qdisc *sch, struct nw_shell *shell)
{
	if (!shell->untold && !shell->untold_bytes)
		return;
	qdisc_tree_reduce_backlog(sch, shell->untold, shell->untold_bytes);
	shell->untold = 0;
	shell->untold_bytes = 0;
}

/*
 * The same in an enqueue or a dequeue. Older kernels' htb does not survive to be told of an empty queue in the middle of
 * its own dequeue, nor of one that it has found empty. The parents are told the next time then, as fq_codel did it there.
 */
static inline void nw_tell_if_safe(struct Qdisc *sch, struct nw_shell *shell)
{
	if (sch->q.qlen || NW_PARENTS_BEAR_EMPTY)
		nw_tell(sch, shell);
}

/* Takes a packet CE, if its transport takes part in ECN. */
static inline bool nw_mark(struct nw_shell *shell, struct sk_buff *skb)
{
	if (!INET_ECN_set_ce(skb))
		return false;
	shell->marked++;
	return true;
}

/* A packet leaves to be sent. */
static inline void nw_account_sent(struct Qdisc *sch, const struct sk_buff *skb)
{
	nw_account_removed(sch, skb);
	qdisc_bstats_update(sch, skb);
}

/* Queues or drops one packet of a flow with this hash; says whether it waits (NET_XMIT_SUCCESS). */
typedef int (*nw_enqueue_one)(struct sk_buff *skb, struct Qdisc *sch, u32 hash, u64 now, struct sk_buff **to_free);

static noinline int nw_enqueue_segments(struct sk_buff *skb, struct Qdisc *sch, struct nw_shell *shell, u32 hash, u64 now,
					struct sk_buff **to_free, nw_enqueue_one one)
{
	struct sk_buff *segs, *next;
	/* The parents are about to count the packet that came, if any of it is queued. */
	int packets = -1, bytes = -(int)qdisc_pkt_len(skb);

	segs = skb_gso_segment(skb, netif_skb_features(skb) & ~NETIF_F_GSO_MASK);
	if (IS_ERR_OR_NULL(segs))
		return qdisc_drop(skb, sch, to_free);
	skb_list_walk_safe(segs, segs, next) {
		u32 len = segs->len;

		skb_mark_not_on_list(segs);
		nw_set_pkt_len(segs, len);
		if (one(segs, sch, hash, now, to_free) == NET_XMIT_SUCCESS) {
			packets++;
			bytes += len;
		}
	}
	consume_skb(skb);
	if (packets < 0)
		return NET_XMIT_DROP;
	shell->untold -= packets;
	shell->untold_bytes -= bytes;
	return NET_XMIT_SUCCESS;
}

/* An enqueue. `hashed` for disciplines that tell flows apart. */
static __always_inline int nw_enqueue(struct sk_buff *skb, struct Qdisc *sch, struct nw_shell *shell,
				      struct sk_buff **to_free, bool hashed, nw_enqueue_one one)
{
	u32 hash = hashed ? nw_hash(shell, skb) : 0;
	u64 now = ktime_get_ns();
	int ret;

	if (unlikely(skb_is_gso(skb)))
		ret = nw_enqueue_segments(skb, sch, shell, hash, now, to_free, one);
	else
		ret = one(skb, sch, hash, now, to_free);
	if (unlikely(shell->untold | shell->untold_bytes))
		nw_tell_if_safe(sch, shell);
	return ret;
}

/* The statistics that each discipline's begin with. */
static inline void nw_shell_statistics(const struct nw_shell *shell, u64 *statistics)
{
	BUILD_BUG_ON(NW_S_MARKED - NW_S_QUEUE_FULL != NW_REASONS);
	statistics[NW_S_KIND] = 0;
	memcpy(statistics + NW_S_QUEUE_FULL, shell->dropped, sizeof(shell->dropped));
	statistics[NW_S_MARKED] = shell->marked;
}

/* Frees what waits in a list. */
static inline void nw_purge(struct sk_buff_head *queue)
{
	struct sk_buff *skb;

	while ((skb = __skb_dequeue(queue)))
		rtnl_kfree_skbs(skb, skb);
}

/* Each flow is shown as a class, whose minor number is its slot plus one. Nothing can be done with it. */
static inline struct Qdisc *nw_class_leaf(struct Qdisc *sch, unsigned long arg)
{
	return NULL;
}

static inline unsigned long nw_class_find(struct Qdisc *sch, u32 classid)
{
	return 0;
}

static inline int nw_class_dump(struct Qdisc *sch, unsigned long cl, struct sk_buff *skb, struct tcmsg *tcm)
{
	tcm->tcm_handle |= TC_H_MIN(cl);
	return 0;
}

#endif
