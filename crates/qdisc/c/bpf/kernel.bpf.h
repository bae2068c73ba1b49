/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The kernel's types and functions that these programs use, in place of a vmlinux.h made from one kernel.
 *
 * A structure has only the fields that are used here. The loader finds each field by its name in the running kernel's
 * BTF (CO-RE), so order and offsets do not matter. Constants are those of the kernel's user interface, which never
 * change.
 */
#ifndef NARROWS_KERNEL_BPF_H
#define NARROWS_KERNEL_BPF_H

typedef unsigned char __u8;
typedef short __s16;
typedef unsigned short __u16;
typedef int __s32;
typedef unsigned int __u32;
typedef long long __s64;
typedef unsigned long long __u64;
typedef __u8 u8;
typedef __u16 u16;
typedef __s32 s32;
typedef __u32 u32;
typedef __s64 s64;
typedef __u64 u64;
typedef _Bool bool;

/* bpf_helper_defs.h declares functions with these. */
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;

#define true 1
#define false 0
#define NULL ((void *)0)

#define NET_XMIT_SUCCESS 0
#define NET_XMIT_DROP 1
#define EBUSY 16

enum bpf_map_type {
	BPF_MAP_TYPE_ARRAY = 2,
};

struct bpf_iter_num {
	__u64 __opaque[1];
} __attribute__((aligned(8)));

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct sk_buff {
	char cb[48];
	unsigned char *head;
	__u16 network_header;
	__be16 protocol;
};

struct qdisc_skb_cb {
	unsigned int pkt_len;
};

struct qdisc_skb_head {
	__u32 qlen;
};

struct gnet_stats_queue {
	__u32 backlog;
	__u32 drops;
};

struct Qdisc {
	u32 limit;
	struct qdisc_skb_head q;
	struct gnet_stats_queue qstats;
};

#pragma clang attribute pop

struct nlattr;
struct netlink_ext_ack;

/* The kernel's functions are compared with those below: a structure must be one here, too. */
struct bpf_sk_buff_ptr {
	struct sk_buff *skb;
};

/* The loader copies this by the fields' names, and puts a name of its own into `id`, the first one. */
struct Qdisc_ops {
	char id[16];
	int (*enqueue)(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free);
	struct sk_buff *(*dequeue)(struct Qdisc *sch);
	int (*init)(struct Qdisc *sch, struct nlattr *arg, struct netlink_ext_ack *extack);
	void (*reset)(struct Qdisc *sch);
	void (*destroy)(struct Qdisc *sch);
};

#define NW_KFUNC extern __attribute__((section(".ksyms")))

NW_KFUNC u32 bpf_skb_get_hash(struct sk_buff *skb);
NW_KFUNC void bpf_kfree_skb(struct sk_buff *skb);
NW_KFUNC void bpf_qdisc_skb_drop(struct sk_buff *skb, struct bpf_sk_buff_ptr *to_free);
NW_KFUNC void bpf_qdisc_watchdog_schedule(struct Qdisc *sch, u64 expire, u64 delta_ns);
NW_KFUNC void bpf_qdisc_bstats_update(struct Qdisc *sch, const struct sk_buff *skb);

#endif
