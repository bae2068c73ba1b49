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

/* Attributes that each discipline's options begin with. */
enum {
	NW_A_UNSPEC,
	/* Aligns attributes of 64 bits. */
	NW_A_PAD,
	/* Most packets that wait (32 bits). */
	NW_A_LIMIT,
	NW_A_FIRST
};

/* cocoa and fq_cp have the scheduler's options first (32 bits each). */
enum {
	NW_A_QUANTUM = NW_A_FIRST,
	NW_A_INITIAL_QUANTUM,
	NW_A_BUCKETS,
	NW_A_ORPHAN_MASK,
	NW_A_FLOW_FIRST
};

enum {
	/* 1024ths, 32 bits. */
	NW_COCOA_A_MULTIPLIER = NW_A_FLOW_FIRST,
	NW_COCOA_A_MAX_INCREASE,
	/* ns, 64 bits. */
	NW_COCOA_A_MAX_GUARD,
	/* Packets, 32 bits. */
	NW_COCOA_A_INITIAL_LIMIT,
	NW_COCOA_A_MIN_LIMIT,
	/* 0 or 1, 32 bits. */
	NW_COCOA_A_WHOLE,
	NW_COCOA_A_LEARN,
	NW_COCOA_A_PACING,
	NW_COCOA_A_END
};

enum {
	/* Most bytes that wait, 64 bits; zero to count packets. */
	NW_CP_A_LIMIT_BYTES = NW_A_FIRST,
	/* Full-sized packets, 32 bits. */
	NW_CP_A_THRESHOLD,
	/* cmax - 1 in 2^-32ths, 64 bits. */
	NW_CP_A_EXCESS,
	/* Bytes, 64 bits; zero for the rule. */
	NW_CP_A_BUCKET,
	/* bit/s, 64 bits; zero for the measured rate. */
	NW_CP_A_RATE,
	/* 0 or 1, 32 bits. */
	NW_CP_A_FOLLOW_DRAIN,
	NW_CP_A_ECN,
	/* Bytes, 32 bits; zero for the device's. */
	NW_CP_A_MTU,
	NW_CP_A_END
};

enum {
	/* Packets, 32 bits. */
	NW_FQ_CP_A_FLOW_LIMIT = NW_A_FLOW_FIRST,
	NW_FQ_CP_A_THRESHOLD,
	/* As those of cp. */
	NW_FQ_CP_A_EXCESS,
	NW_FQ_CP_A_BUCKET,
	NW_FQ_CP_A_RATE,
	NW_FQ_CP_A_ECN,
	NW_FQ_CP_A_MTU,
	NW_FQ_CP_A_END
};

enum {
	/* 32 bits. */
	NW_FAIR_A_FLOWS = NW_A_FIRST,
	/* Bytes, 32 bits. */
	NW_FAIR_A_QUANTUM,
	/* ns, 64 bits. */
	NW_FAIR_A_TARGET,
	NW_FAIR_A_INTERVAL,
	/* 0 or 1, 32 bits. */
	NW_FAIR_A_ECN,
	/* Packets, 32 bits. */
	NW_FAIR_A_NEWCOMERS,
	/* ns, 64 bits. */
	NW_FAIR_A_MEMORY,
	NW_FAIR_A_PROBATION,
	NW_FAIR_A_AHEAD,
	/* bit/s, 64 bits; zero when it is not known. */
	NW_FAIR_A_RATE,
	/* Bytes, 32 bits; zero for the device's. */
	NW_FAIR_A_MTU,
	NW_FAIR_A_END
};

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
