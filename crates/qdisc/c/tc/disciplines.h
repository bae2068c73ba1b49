/* SPDX-License-Identifier: GPL-2.0-only */
/* The options and statistics of the discipline that a plug-in is compiled for. */
#ifndef NARROWS_DISCIPLINES_H
#define NARROWS_DISCIPLINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "narrows/dualpi2.h"
#include "narrows/netlink.h"

/* How an option is written, and which attribute it becomes. */
enum kind {
	/* A number of packets: 100p or 100. 32 bits. */
	PACKETS,
	/* A limit: 100p or 100, or 45KB; the latter goes to the attribute `other`, with 64 bits. */
	LIMIT,
	/* That attribute, which has no word of its own. */
	LIMIT_BYTES,
	/* 1500, 1500B, 64KB, 1MiB. 32 or 64 bits. */
	BYTES,
	BYTES64,
	/* A whole number, decimal or 0x. 32 bits. */
	NUMBER,
	/* 5ms, 1.5s, 200us. 64 bits, ns. */
	TIME,
	/* 20mbit, 1gbit. 64 bits, bit/s. */
	RATE,
	/* 1.25, kept in 1024ths. 32 bits. */
	FACTOR,
	/* 1.2, of which what is beyond one is kept in 2^-32ths. 64 bits. */
	CONGESTION,
	/* true, false, on, off, 1, 0. 32 bits. */
	FLAG,
	/* One of its words, as its place among them. 32 bits. */
	CHOICE,
	/* Of Linux's dualpi2. 5ms, kept in us. 32 bits. */
	MICROSECONDS,
	/* The same, or packets (5p), which go to the attribute `other`. */
	STEP,
	/* A rate per second, kept in 256ths. 32 bits. */
	GAIN,
	/* A whole number of at most 255. 8 bits. */
	SMALL,
	/* The same up to 100, with or without "%". */
	PERCENT,
	/* The name is all: it stands for the value `other`. 8 bits. */
	WORD,
};

struct option {
	/* NULL if it has no word of its own. */
	const char *name;
	enum kind kind;
	int attribute;
	/* For LIMIT, STEP and WORD. */
	int other;
	/* Words, with blanks between them, that are written and shown for 0, 1 and so on. `auto` is a rule of the kernel's. */
	const char *words;
};

/* How a number of the statistics is shown. */
enum shown {
	COUNT,
	SIGNED,
	/* 1024ths. */
	PARTS,
	/* ns, as ms. */
	NS,
	/* us, as ms. */
	US,
	/* 2^-32ths. */
	FRACTION,
	/* A decision of cocoa. */
	DECISION,
};

struct statistic {
	const char *name;
	int index;
	enum shown shown;
	/* Begins a line. */
	bool begins;
};

/* A parameter of params.h as an option. A limit's bytes are the attribute that follows it. */
#define OPTION(discipline, attribute, name, kind, bits, low, high, preset, once, words, ...)	\
	{ kind == LIMIT_BYTES ? NULL : #name, kind, NW_##discipline##_A_##attribute,			\
	  kind == LIMIT ? NW_##discipline##_A_##attribute + 1 : 0, words },

#if defined(NW_PLUGIN_cocoa)
#define NAME "cocoa"
#define UTIL cocoa_qdisc_util
#define END NW_COCOA_A_END
static const struct option options[] = { NW_COCOA_PARAMS(OPTION) };
static const struct statistic statistics[] = {
	{ "flows", NW_COCOA_S_FLOWS, COUNT, true },
	{ "flows_forgotten", NW_COCOA_S_COLLECTED },
	{ "flows_throttled", NW_COCOA_S_THROTTLED },
	{ "limits_grown", NW_COCOA_S_GREW, COUNT, true },
	{ "limits_shrunk", NW_COCOA_S_SHRUNK },
	{ "begun_anew", NW_COCOA_S_ANEW },
	{ "guard_intervals", NW_COCOA_S_JUDGED },
	{ "other_intervals", NW_COCOA_S_INTERVALS },
	{ "queue_full", NW_S_QUEUE_FULL, COUNT, true },
	{ "flow_limit", NW_S_FLOW_LIMIT },
	{ "horizon", NW_S_HORIZON },
};
static const struct statistic of_flow[] = {
	{ "deficit", NW_FLOW_S_DEFICIT, SIGNED, true },
	{ "limit", NW_COCOA_F_LIMIT, PARTS },
	{ "longest_interval", NW_COCOA_F_LONGEST, NS },
	{ "decision", NW_COCOA_F_DECISION, DECISION },
	{ "idle", NW_COCOA_F_IDLE, NS },
};
#elif defined(NW_PLUGIN_lfq)
#define NAME "lfq"
#define UTIL lfq_qdisc_util
#define END NW_LFQ_A_END
static const struct option options[] = { NW_LFQ_PARAMS(OPTION) };
static const struct statistic statistics[] = {
	{ "flows", NW_LFQ_S_FLOWS, COUNT, true },
	{ "flows_forgotten", NW_LFQ_S_COLLECTED },
	{ "flows_throttled", NW_LFQ_S_THROTTLED },
	{ "decisions", NW_LFQ_S_DECISIONS, COUNT, true },
	{ "cycles", NW_LFQ_S_CYCLES },
	{ "queue_full", NW_S_QUEUE_FULL, COUNT, true },
	{ "flow_limit", NW_S_FLOW_LIMIT },
	{ "horizon", NW_S_HORIZON },
};
static const struct statistic of_flow[] = {
	{ "deficit", NW_FLOW_S_DEFICIT, SIGNED, true },
	{ "limit", NW_LFQ_F_LIMIT, PARTS },
	{ "cycle_limit", NW_LFQ_F_CYCLE_LIMIT, PARTS },
	{ "factor", NW_LFQ_F_FACTOR, PARTS },
	{ "cycles", NW_LFQ_F_CYCLES },
	{ "idle_share", NW_LFQ_F_IDLE, PARTS },
};
#elif defined(NW_PLUGIN_cp)
#define NAME "cp"
#define UTIL cp_qdisc_util
#define END NW_CP_A_END
static const struct option options[] = { NW_CP_PARAMS(OPTION) };
static const struct statistic statistics[] = {
	{ "tokens_bytes", NW_CP_S_TOKENS, COUNT, true },
	{ "bucket_bytes", NW_CP_S_BUCKET },
	{ "token_rate", NW_CP_S_TOKEN_RATE },
	{ "threshold_bytes", NW_CP_S_THRESHOLD },
	{ "queue_full", NW_S_QUEUE_FULL, COUNT, true },
	{ "policed", NW_S_POLICED },
	{ "marked", NW_S_MARKED },
};
/* It has no flows. */
static const struct statistic of_flow[] = { { NULL } };
#elif defined(NW_PLUGIN_fq_cp)
#define NAME "fq_cp"
#define UTIL fq_cp_qdisc_util
#define END NW_FQ_CP_A_END
static const struct option options[] = { NW_FQ_CP_PARAMS(OPTION) };
static const struct statistic statistics[] = {
	{ "flows", NW_FQ_CP_S_FLOWS, COUNT, true },
	{ "flows_forgotten", NW_FQ_CP_S_COLLECTED },
	{ "bucket_bytes", NW_FQ_CP_S_BUCKET },
	{ "threshold_bytes", NW_FQ_CP_S_THRESHOLD },
	{ "queue_full", NW_S_QUEUE_FULL, COUNT, true },
	{ "flow_limit", NW_S_FLOW_LIMIT },
	{ "policed", NW_S_POLICED },
	{ "marked", NW_S_MARKED },
};
static const struct statistic of_flow[] = {
	{ "deficit", NW_FLOW_S_DEFICIT, SIGNED, true },
	{ "tokens_bytes", NW_FQ_CP_F_TOKENS },
	{ "token_rate", NW_FQ_CP_F_TOKEN_RATE },
};
#elif defined(NW_PLUGIN_fq_codel_fair)
#define NAME "fq_codel_fair"
#define UTIL fq_codel_fair_qdisc_util
#define END NW_FAIR_A_END
static const struct option options[] = { NW_FAIR_PARAMS(OPTION) };
static const struct statistic statistics[] = {
	{ "flows", NW_FAIR_S_FLOWS, COUNT, true },
	{ "settled_flows", NW_FAIR_S_SETTLED },
	{ "newcomers_packets", NW_FAIR_S_NEWCOMERS },
	{ "newcomers_debt_bytes", NW_FAIR_S_DEBT },
	{ "target_now", NW_FAIR_S_TARGET, NS },
	{ "link_rate", NW_FAIR_S_RATE },
	{ "flow_limit", NW_S_FLOW_LIMIT, COUNT, true },
	{ "codel", NW_S_AQM },
	{ "evicted", NW_S_EVICTED },
	{ "marked", NW_S_MARKED },
};
static const struct statistic of_flow[] = {
	{ "deficit", NW_FLOW_S_DEFICIT, SIGNED, true },
	{ "ahead_bytes", NW_FAIR_F_AHEAD, SIGNED },
	{ "settled", NW_FAIR_F_SETTLED },
	{ "dropping", NW_FAIR_F_DROPPING },
};
#elif defined(NW_PLUGIN_dualpi2)
/* Linux's own. Its options as tc from iproute2 6.18 on has them, for an older one. */
#define NAME "dualpi2"
#define UTIL dualpi2_qdisc_util
#define END DUALPI2_A_END
#define LINUXS_OWN
static const struct option options[] = {
	{ "limit", PACKETS, DUALPI2_A_LIMIT },
	{ "memlimit", BYTES, DUALPI2_A_MEMORY_LIMIT },
	{ "coupling_factor", SMALL, DUALPI2_A_COUPLING },
	{ "step_thresh", STEP, DUALPI2_A_STEP_THRESH, DUALPI2_A_STEP_PACKETS },
	{ "min_qlen_step", PACKETS, DUALPI2_A_MIN_QLEN_STEP },
	{ "drop_on_overload", WORD, DUALPI2_A_DROP_OVERLOAD, 1 },
	{ "overflow", WORD, DUALPI2_A_DROP_OVERLOAD, 0 },
	{ "drop_enqueue", WORD, DUALPI2_A_DROP_EARLY, 1 },
	{ "drop_dequeue", WORD, DUALPI2_A_DROP_EARLY, 0 },
	{ "l4s_ect", WORD, DUALPI2_A_ECN_MASK, 1 },
	{ "any_ect", WORD, DUALPI2_A_ECN_MASK, 3 },
	{ "classic_protection", PERCENT, DUALPI2_A_CLASSIC_PROTECTION },
	{ "target", MICROSECONDS, DUALPI2_A_TARGET },
	{ "tupdate", MICROSECONDS, DUALPI2_A_TUPDATE },
	{ "alpha", GAIN, DUALPI2_A_ALPHA },
	{ "beta", GAIN, DUALPI2_A_BETA },
	{ "split_gso", WORD, DUALPI2_A_SPLIT_GSO, 1 },
	{ "no_split_gso", WORD, DUALPI2_A_SPLIT_GSO, 0 },
};
static const struct statistic statistics[] = {
	{ "prob", DUALPI2_S_PROBABILITY, FRACTION, true },
	{ "delay_c", DUALPI2_S_DELAY_C, US },
	{ "delay_l", DUALPI2_S_DELAY_L, US },
	{ "pkts_in_c", DUALPI2_S_PACKETS_C, COUNT, true },
	{ "pkts_in_l", DUALPI2_S_PACKETS_L },
	{ "maxq", DUALPI2_S_MAXQ },
	{ "ecn_mark", DUALPI2_S_MARKED, COUNT, true },
	{ "step_mark", DUALPI2_S_STEP_MARKED },
	{ "credit", DUALPI2_S_CREDIT, SIGNED },
	{ "memory_used", DUALPI2_S_MEMORY_USED, COUNT, true },
	{ "max_memory_used", DUALPI2_S_MAX_MEMORY_USED },
	{ "memory_limit", DUALPI2_S_MEMORY_LIMIT },
};
static const struct statistic of_flow[] = { { NULL } };
#else
#error "NW_PLUGIN_cocoa, NW_PLUGIN_dualpi2 or the like must be defined"
#endif

/* The numbers of the statistics. The first of ours is 1 if they are a flow's. */
#ifdef LINUXS_OWN
typedef uint32_t number_t;
#define KNOWS_FLOWS false
#else
typedef uint64_t number_t;
#define KNOWS_FLOWS true
#endif

#endif
