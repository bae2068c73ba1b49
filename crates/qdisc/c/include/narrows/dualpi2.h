/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What Linux's own dualpi2 and tc say to each other (linux/pkt_sched.h of 6.17), for a tc that was built against older
 * headers.
 */
#ifndef NARROWS_DUALPI2_H
#define NARROWS_DUALPI2_H

enum {
	/* Packets, 32 bits. */
	DUALPI2_A_LIMIT = 1,
	/* Bytes of the buffers behind the packets, 32 bits. */
	DUALPI2_A_MEMORY_LIMIT,
	/* us, 32 bits, and so are all times. */
	DUALPI2_A_TARGET,
	DUALPI2_A_TUPDATE,
	/* 256ths of 1/s, 32 bits. */
	DUALPI2_A_ALPHA,
	DUALPI2_A_BETA,
	/* Only one of the two thresholds of the step, packets or us. */
	DUALPI2_A_STEP_PACKETS,
	DUALPI2_A_STEP_THRESH,
	DUALPI2_A_MIN_QLEN_STEP,
	/* 8 bits, and so are all that follow. */
	DUALPI2_A_COUPLING,
	DUALPI2_A_DROP_OVERLOAD,
	DUALPI2_A_DROP_EARLY,
	/* Percent. */
	DUALPI2_A_CLASSIC_PROTECTION,
	DUALPI2_A_ECN_MASK,
	DUALPI2_A_SPLIT_GSO,
	DUALPI2_A_END,
};

/* The numbers of its statistics, 32 bits each. */
enum {
	/* 2^-32ths. */
	DUALPI2_S_PROBABILITY,
	/* us */
	DUALPI2_S_DELAY_C,
	DUALPI2_S_DELAY_L,
	/* Packets that came. */
	DUALPI2_S_PACKETS_C,
	DUALPI2_S_PACKETS_L,
	DUALPI2_S_MAXQ,
	/* All marks, and those of the step. */
	DUALPI2_S_MARKED,
	DUALPI2_S_STEP_MARKED,
	/* Signed: whose turn it is. */
	DUALPI2_S_CREDIT,
	/* Bytes. */
	DUALPI2_S_MEMORY_USED,
	DUALPI2_S_MAX_MEMORY_USED,
	DUALPI2_S_MEMORY_LIMIT,
};

#endif
