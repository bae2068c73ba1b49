/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the modules and the plug-ins of tc say to each other: options of each discipline, and its statistics.
 *
 * Every option is one attribute, of 32 or 64 bits as noted. Times are in ns, rates in bit/s, lengths in bytes.
 * Statistics are arrays of numbers of 64 bits in the order of the enumerations below; a later version may append
 * some.
 */
#ifndef NARROWS_NETLINK_H
#define NARROWS_NETLINK_H

#include "params.h"

/* Attributes that each discipline's options begin with; and those of the scheduler, which disciplines with a queue per flow have first. */
enum {
	NW_A_UNSPEC,
	/* Aligns attributes of 64 bits. */
	NW_A_PAD,
	NW_A_LIMIT,
	NW_A_QUANTUM,
	NW_A_INITIAL_QUANTUM,
	NW_A_BUCKETS,
	NW_A_ORPHAN_MASK
};

/* An attribute for each parameter: NW_COCOA_A_MULTIPLIER and so on. */
#define NW_ATTRIBUTE(discipline, attribute, ...) NW_##discipline##_A_##attribute,
#define NW_ATTRIBUTES(discipline) \
	enum { NW_##discipline##_A_NONE = NW_A_PAD, NW_##discipline##_PARAMS(NW_ATTRIBUTE) NW_##discipline##_A_END };
NW_DISCIPLINES(NW_ATTRIBUTES)

/*
 * Statistics that each discipline's begin with: what they are of (0 the qdisc, 1 a flow, which is shown as a class);
 * packets dropped, for each reason (enum nw_reason); packets marked.
 */
enum {
	NW_S_KIND,
	NW_S_QUEUE_FULL,
	NW_S_FLOW_LIMIT,
	NW_S_POLICED,
	NW_S_HORIZON,
	NW_S_AQM,
	NW_S_EVICTED,
	NW_S_MARKED,
	NW_S_FIRST
};

enum {
	/* Flows that are known, and flows that were forgotten after a pause. */
	NW_COCOA_S_FLOWS = NW_S_FIRST,
	NW_COCOA_S_COLLECTED,
	/* Flows that wait for the departure time of a packet. */
	NW_COCOA_S_THROTTLED,
	/*
	 * Decisions: limits that grew; all measured anew; guard intervals that were over, and limits that shrank
	 * then; other intervals.
	 */
	NW_COCOA_S_GREW,
	NW_COCOA_S_ANEW,
	NW_COCOA_S_JUDGED,
	NW_COCOA_S_SHRUNK,
	NW_COCOA_S_INTERVALS,
	NW_COCOA_S_END
};

enum {
	NW_LFQ_S_FLOWS = NW_S_FIRST,
	NW_LFQ_S_COLLECTED,
	NW_LFQ_S_THROTTLED,
	/* Limits that were set anew, and cycles that ended. */
	NW_LFQ_S_DECISIONS,
	NW_LFQ_S_CYCLES,
	NW_LFQ_S_END
};

enum {
	/* Bytes, bit/s. */
	NW_CP_S_TOKENS = NW_S_FIRST,
	NW_CP_S_TOKEN_RATE,
	/* Bytes: Tc, and the depth of the bucket. */
	NW_CP_S_THRESHOLD,
	NW_CP_S_BUCKET,
	NW_CP_S_END
};

enum {
	NW_FQ_CP_S_FLOWS = NW_S_FIRST,
	NW_FQ_CP_S_COLLECTED,
	/* Bytes: Tc, and the depth of a flow's bucket. */
	NW_FQ_CP_S_THRESHOLD,
	NW_FQ_CP_S_BUCKET,
	NW_FQ_CP_S_END
};

enum {
	/* Flows that wait, and those of them that have settled. */
	NW_FAIR_S_FLOWS = NW_S_FIRST,
	NW_FAIR_S_SETTLED,
	/* Packets of newcomers that wait. */
	NW_FAIR_S_NEWCOMERS,
	/* Bytes. */
	NW_FAIR_S_DEBT,
	/* ns: CoDel's target at the present share. */
	NW_FAIR_S_TARGET,
	/* bit/s: the link's, as measured. */
	NW_FAIR_S_RATE,
	NW_FAIR_S_END
};

/* Statistics of a flow. */
enum {
	/* Bytes, signed. */
	NW_FLOW_S_DEFICIT = NW_S_KIND + 1,
	NW_FLOW_S_FIRST
};

enum {
	/* 1024ths of a packet. */
	NW_COCOA_F_LIMIT = NW_FLOW_S_FIRST,
	/* ns: the longest interval of this guard interval; the idle time of the last decision. */
	NW_COCOA_F_LONGEST,
	NW_COCOA_F_IDLE,
	/* One of enum nw_cocoa_decision. */
	NW_COCOA_F_DECISION,
	NW_COCOA_F_END
};

enum {
	/* 1024ths of a packet: the limit, and the limit at which the cycle began. */
	NW_LFQ_F_LIMIT = NW_FLOW_S_FIRST,
	NW_LFQ_F_CYCLE_LIMIT,
	/* The last factor, 1024ths. */
	NW_LFQ_F_FACTOR,
	/* Cycles that have ended; the share of time that the last one was idle, 1024ths. */
	NW_LFQ_F_CYCLES,
	NW_LFQ_F_IDLE,
	NW_LFQ_F_END
};

enum {
	/* Bytes, bit/s. */
	NW_FQ_CP_F_TOKENS = NW_FLOW_S_FIRST,
	NW_FQ_CP_F_TOKEN_RATE,
	NW_FQ_CP_F_END
};

enum {
	/* Bytes that it is ahead of virtual time, signed. */
	NW_FAIR_F_AHEAD = NW_FLOW_S_FIRST,
	/* 0 or 1. */
	NW_FAIR_F_SETTLED,
	NW_FAIR_F_DROPPING,
	NW_FAIR_F_END
};

#endif
