/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Integers, time and verdicts that all disciplines share.
 *
 * The headers of this directory hold the algorithms and nothing of the place where they run. They compile in the
 * kernel, as BPF, and in user space for the tests. Times are in nanoseconds, lengths in bytes, both in 64 bits. There
 * is no floating point, no allocation, no call through a pointer.
 *
 * The model of each header is the file of the same name in `crates/core/src/queue`. Both make the same decisions, which
 * `crates/qdisc/tests/decisions` checks. A header that deviates says so at its top.
 */
#ifndef NARROWS_BASE_H
#define NARROWS_BASE_H

#if defined(__KERNEL__)
#include <linux/limits.h>
#include <linux/math64.h>
#include <linux/types.h>
#elif defined(__bpf__)
/* kernel.bpf.h, which the program includes first, declares the types. */
#else
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef int32_t s32;
typedef uint64_t u64;
typedef int64_t s64;
#endif

#define NW_U32_MAX 0xffffffffu
#define NW_U64_MAX 0xffffffffffffffffull

/* One, in the fixed point of factors: they are in 1024ths. */
#define NW_ONE_SHIFT 10
#define NW_ONE (1u << NW_ONE_SHIFT)

#define NW_MSEC 1000000ull
#define NW_SEC 1000000000ull
/* What a byte is in bit·ns/s: 8 bits, 10⁹ ns. A rate in bit/s times ns needs no rounding in this unit. */
#define NW_BYTE (8 * NW_SEC)

/* A loop of at most n rounds. BPF replaces it by its iterator of numbers. */
#ifndef nw_for
#define nw_for(i, n) for (u32 i = 0; i < (n); i++)
#endif

/* Why a packet is dropped. */
enum nw_reason {
	/* The whole discipline is full. */
	NW_QUEUE_FULL = 0,
	/* Its flow's queue is full. */
	NW_FLOW_LIMIT = 1,
	/* Its flow has too few tokens for the congestion that it adds to. */
	NW_POLICED = 2,
	/* Its departure is too far ahead. */
	NW_HORIZON = 3,
	/* CoDel dropped it. */
	NW_AQM = 4,
	/* It makes room for others: the whole discipline is full, and its flow has most of it. */
	NW_EVICTED = 5,
	NW_REASONS
};

/* What happens to a packet that arrives. */
enum nw_verdict {
	/* It goes to its queue's end. */
	NW_ACCEPT,
	/* The same, and it is to be marked CE: who cannot mark it drops it instead, as policed. */
	NW_ACCEPT_MARKED,
	/* It is dropped. */
	NW_DROP,
	/* It is dropped, and after it the surplus at the end of its flow's queue. */
	NW_DROP_AND_TRIM,
};

/* Which packet leaves. */
enum nw_next {
	/* The first of the flow that is named. */
	NW_PACKET,
	/* None before the time that is named. */
	NW_AT,
	/* None waits. */
	NW_EMPTY,
};

/* The lists that a flow may be on. */
enum nw_listed {
	NW_UNLISTED = 0,
	NW_LISTED = 1,
	/* Set aside until its first packet may leave. */
	NW_THROTTLED = 2,
};

/* A list of flows: numbers of slots plus one. Zero is none, so that zeroed memory is an empty list. */
struct nw_list {
	u32 head;
	u32 tail;
};

struct nw_u128 {
	u64 hi;
	u64 lo;
};

static inline u64 nw_min(u64 a, u64 b)
{
	return a < b ? a : b;
}

static inline u64 nw_max(u64 a, u64 b)
{
	return a > b ? a : b;
}

/* The sum, or the largest number. */
static inline u64 nw_add(u64 a, u64 b)
{
	u64 sum = a + b;

	return sum < a ? NW_U64_MAX : sum;
}

/* The difference, or zero. */
static inline u64 nw_sub(u64 a, u64 b)
{
	return a > b ? a - b : 0;
}

/* The instant a span after another. The last instant stands for all later ones. */
static inline u64 nw_later(u64 time, u64 span)
{
	return nw_min(nw_add(time, span), NW_U64_MAX - 1);
}

/* The product by its four parts, where the compiler has no numbers of 128 bits. */
static inline struct nw_u128 nw_mul_parts(u64 a, u64 b)
{
	u64 low = (a & NW_U32_MAX) * (b & NW_U32_MAX);
	u64 mid1 = (a >> 32) * (b & NW_U32_MAX);
	u64 mid2 = (a & NW_U32_MAX) * (b >> 32);
	u64 mid = (low >> 32) + (mid1 & NW_U32_MAX) + (mid2 & NW_U32_MAX);

	return (struct nw_u128){
		.hi = (a >> 32) * (b >> 32) + (mid1 >> 32) + (mid2 >> 32) + (mid >> 32),
		.lo = (mid << 32) | (low & NW_U32_MAX),
	};
}

static inline struct nw_u128 nw_mul(u64 a, u64 b)
{
#if defined(__SIZEOF_INT128__) && !defined(__bpf__)
	unsigned __int128 product = (unsigned __int128)a * b;

	return (struct nw_u128){ .hi = (u64)(product >> 64), .lo = (u64)product };
#else
	return nw_mul_parts(a, b);
#endif
}

/* The product, or the largest number. */
static inline u64 nw_mul_sat(u64 a, u64 b)
{
	struct nw_u128 product = nw_mul(a, b);

	return product.hi ? NW_U64_MAX : product.lo;
}

/* The number shifted right by 1–63 bits, or the largest one of 64 bits. */
static inline u64 nw_shr_sat(struct nw_u128 n, u32 bits)
{
	if (n.hi >> bits)
		return NW_U64_MAX;
	return (n.hi << (64 - bits)) | (n.lo >> bits);
}

/* Rounded down. The divisor is not zero. */
static inline u64 nw_div(u64 n, u64 d)
{
#if defined(__KERNEL__)
	return div64_u64(n, d);
#else
	return n / d;
#endif
}

/* A loop of a function of its own: BPF's verifier then looks at it once, and not along each path that leads to it. */
#if defined(__bpf__)
#define NW_SEPARATE __attribute__((noinline))
#else
#define NW_SEPARATE static inline
#endif

/* What happens to each packet, wherever a shell calls it from. */
#define NW_FREQUENT static inline __attribute__((__always_inline__))

/*
 * What happens to few packets: a function of its own, so that the others do not save registers for it. BPF's verifier
 * knows more of an argument where a function is inlined.
 */
#if defined(__bpf__)
#define NW_RARE static inline
#else
#define NW_RARE static __attribute__((__noinline__))
#endif

/* Long division, bit by bit. The upper half is less than the divisor. */
NW_SEPARATE u64 nw_div_long(u64 hi, u64 lo, u64 d)
{
	u64 quotient = 0;

	nw_for(bit, 64) {
		u64 carry = hi >> 63;

		hi = (hi << 1) | (lo >> 63);
		lo <<= 1;
		quotient <<= 1;
		if (carry || hi >= d) {
			hi -= d;
			quotient |= 1;
		}
	}
	return quotient;
}

/* The quotient rounded down, or the largest number when it is larger or the divisor is zero. */
static inline u64 nw_div_sat(struct nw_u128 n, u64 d)
{
	if (n.hi >= d)
		return NW_U64_MAX;
	if (!n.hi)
		return nw_div(n.lo, d);
	/* Numbers of more than 64 bits are rare. */
	return nw_div_long(n.hi, n.lo, d);
}

/* a · b / d rounded down, or the largest number. */
static inline u64 nw_mul_div(u64 a, u64 b, u64 d)
{
	return nw_div_sat(nw_mul(a, b), d);
}

/* Bytes that a rate (bit/s) carries in a span (ns), rounded down. */
static inline u64 nw_bytes_in(u64 rate, u64 span)
{
	return nw_mul_div(rate, span, NW_BYTE);
}

/* Maps a hash evenly to 0 … n − 1; the high bits decide. */
static inline u32 nw_scale(u32 hash, u32 n)
{
	return (u32)(((u64)hash * n) >> 32);
}

/* Spreads a hash over all 32 bits, differently for each seed (the finaliser of MurmurHash3). */
static inline u32 nw_mix(u32 hash, u32 seed)
{
	u32 h = hash ^ seed;

	h = (h ^ (h >> 16)) * 0x85ebca6bu;
	h = (h ^ (h >> 13)) * 0xc2b2ae35u;
	return h ^ (h >> 16);
}

#endif
