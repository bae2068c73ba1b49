/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The parameters of the disciplines, with the names, ranges and defaults of their declarations in Rust (crates/core/src/queue).
 * Written by NARROWS_RECORD=1 cargo test -p narrows-qdisc params
 *
 * X(discipline, attribute, name, how tc writes it, bits, least, most, default, only set when the qdisc is added, tc's
 *   words for 0, 1 and so on, in BPF programs, what is allowed)
 */
#ifndef NARROWS_PARAMS_H
#define NARROWS_PARAMS_H

#define NW_COCOA_PARAMS(X) \
	X(COCOA, LIMIT, limit, PACKETS, 32, 1, 10000000, 10000, 0, NULL, 1, "limit: 1p to 10000000p") \
	X(COCOA, QUANTUM, quantum, BYTES, 32, 256, 1048576, 3028, 0, NULL, 1, "quantum: 256B to 1048576B") \
	X(COCOA, INITIAL_QUANTUM, initial_quantum, BYTES, 32, 0, 1073741824, 3028, 0, NULL, 1, "initial_quantum: 0B to 1073741824B") \
	X(COCOA, BUCKETS, buckets, NUMBER, 32, 1, 65536, 1024, 1, NULL, 0, "buckets: 1 to 65536") \
	X(COCOA, ORPHAN_MASK, orphan_mask, NUMBER, 32, 0, 65535, 1023, 1, NULL, 0, "orphan_mask: 0 to 65535") \
	X(COCOA, MULTIPLIER, multiplier, FACTOR, 32, 10, 102400, 1280, 0, NULL, 1, "multiplier: 0.01 to 100 (10 to 102400 in 1024ths)") \
	X(COCOA, MAX_INCREASE, max_increase, FACTOR, 32, 1024, 102400, 2048, 0, NULL, 1, "max_increase: 1 to 100 (1024 to 102400 in 1024ths)") \
	X(COCOA, GROWTH, growth, CHOICE, 32, 0, 1, 0, 0, "exact whole", 1, "growth: exact (0) or whole (1)") \
	X(COCOA, MAX_GUARD, max_guard, TIME, 64, 1000ull, 3600000000000ull, 1000000000ull, 0, NULL, 1, "max_guard: 1us to 3600s") \
	X(COCOA, INITIAL_LIMIT, initial_limit, PACKETS, 32, 1, 10000000, 100, 0, NULL, 1, "initial_limit: 1p to 10000000p") \
	X(COCOA, LEARN, learn, FLAG, 32, 0, 1, 0, 0, NULL, 1, "learn: 0 or 1") \
	X(COCOA, MIN_LIMIT, min_limit, PACKETS, 32, 1, 10000000, 4, 0, NULL, 1, "min_limit: 1p to 10000000p") \
	X(COCOA, PACING, pacing, FLAG, 32, 0, 1, 0, 0, NULL, 0, "pacing: 0 or 1")

#define NW_CP_PARAMS(X) \
	X(CP, LIMIT, limit, LIMIT, 32, 1, 10000000, 100, 0, NULL, 1, "limit: 1p to 10000000p") \
	X(CP, LIMIT_BYTES, limit_bytes, LIMIT_BYTES, 64, 0ull, 1073741824ull, 0ull, 0, NULL, 1, "limit: 0B to 1073741824B") \
	X(CP, THRESHOLD, threshold, PACKETS, 32, 0, 10000000, 5, 0, NULL, 1, "threshold: 0p to 10000000p") \
	X(CP, MAX_CONGESTION, max_congestion, CONGESTION, 64, 0ull, 425201762304ull, 858993459ull, 0, NULL, 1, "max_congestion: 1 to 100 (in 2^-32ths beyond 1)") \
	X(CP, BUCKET, bucket, BYTES64, 64, 0ull, 1073741824ull, 0ull, 0, "auto", 1, "bucket: up to 1073741824B, or 0 for the discipline's rule") \
	X(CP, RATE, rate, RATE, 64, 0ull, 1000000000000ull, 0ull, 0, "auto", 1, "rate: up to 1000gbit, or 0 for the discipline's rule") \
	X(CP, FOLLOW_DRAIN, follow_drain, FLAG, 32, 0, 1, 0, 0, NULL, 1, "follow_drain: 0 or 1") \
	X(CP, ECN, ecn, FLAG, 32, 0, 1, 0, 0, NULL, 0, "ecn: 0 or 1") \
	X(CP, MTU, mtu, BYTES, 32, 0, 65535, 0, 0, "auto", 1, "mtu: up to 65535B, or 0 for the discipline's rule")

#define NW_FQ_CP_PARAMS(X) \
	X(FQ_CP, LIMIT, limit, PACKETS, 32, 1, 10000000, 10000, 0, NULL, 0, "limit: 1p to 10000000p") \
	X(FQ_CP, QUANTUM, quantum, BYTES, 32, 256, 1048576, 3028, 0, NULL, 0, "quantum: 256B to 1048576B") \
	X(FQ_CP, INITIAL_QUANTUM, initial_quantum, BYTES, 32, 0, 1073741824, 15140, 0, NULL, 0, "initial_quantum: 0B to 1073741824B") \
	X(FQ_CP, BUCKETS, buckets, NUMBER, 32, 1, 65536, 1024, 1, NULL, 0, "buckets: 1 to 65536") \
	X(FQ_CP, ORPHAN_MASK, orphan_mask, NUMBER, 32, 0, 65535, 1023, 1, NULL, 0, "orphan_mask: 0 to 65535") \
	X(FQ_CP, FLOW_LIMIT, flow_limit, PACKETS, 32, 1, 10000000, 100, 0, NULL, 0, "flow_limit: 1p to 10000000p") \
	X(FQ_CP, THRESHOLD, threshold, PACKETS, 32, 0, 10000000, 5, 0, NULL, 0, "threshold: 0p to 10000000p") \
	X(FQ_CP, MAX_CONGESTION, max_congestion, CONGESTION, 64, 0ull, 425201762304ull, 858993459ull, 0, NULL, 0, "max_congestion: 1 to 100 (in 2^-32ths beyond 1)") \
	X(FQ_CP, BUCKET, bucket, BYTES64, 64, 0ull, 1073741824ull, 0ull, 0, "auto", 0, "bucket: up to 1073741824B, or 0 for the discipline's rule") \
	X(FQ_CP, ECN, ecn, FLAG, 32, 0, 1, 0, 0, NULL, 0, "ecn: 0 or 1") \
	X(FQ_CP, RATE, rate, RATE, 64, 0ull, 1000000000000ull, 0ull, 0, "auto", 0, "rate: up to 1000gbit, or 0 for the discipline's rule") \
	X(FQ_CP, MTU, mtu, BYTES, 32, 0, 65535, 0, 0, "auto", 0, "mtu: up to 65535B, or 0 for the discipline's rule")

#define NW_FAIR_PARAMS(X) \
	X(FAIR, LIMIT, limit, PACKETS, 32, 1, 10000000, 10240, 0, NULL, 0, "limit: 1p to 10000000p") \
	X(FAIR, QUANTUM, quantum, BYTES, 32, 256, 1048576, 1514, 0, NULL, 0, "quantum: 256B to 1048576B") \
	X(FAIR, FLOWS, flows, NUMBER, 32, 1, 32768, 1024, 1, NULL, 0, "flows: 1 to 32768") \
	X(FAIR, TARGET, target, TIME, 64, 1000ull, 100000000000ull, 5000000ull, 0, NULL, 0, "target: 1us to 100s") \
	X(FAIR, INTERVAL, interval, TIME, 64, 1000ull, 100000000000ull, 100000000ull, 0, NULL, 0, "interval: 1us to 100s") \
	X(FAIR, ECN, ecn, FLAG, 32, 0, 1, 1, 0, NULL, 0, "ecn: 0 or 1") \
	X(FAIR, NEWCOMERS, newcomers, PACKETS, 32, 1, 10000000, 256, 0, NULL, 0, "newcomers: 1p to 10000000p") \
	X(FAIR, MEMORY, memory, TIME, 64, 1000000ull, 3600000000000ull, 1000000000ull, 0, NULL, 0, "memory: 1ms to 3600s") \
	X(FAIR, PROBATION, probation, TIME, 64, 0ull, 3600000000000ull, 100000000ull, 0, NULL, 0, "probation: 0ms to 3600s") \
	X(FAIR, AHEAD, ahead, TIME, 64, 0ull, 3600000000000ull, 500000000ull, 0, NULL, 0, "ahead: 0ms to 3600s") \
	X(FAIR, RATE, rate, RATE, 64, 0ull, 1000000000000ull, 0ull, 0, "auto", 0, "rate: up to 1000gbit, or 0 for the discipline's rule") \
	X(FAIR, MTU, mtu, BYTES, 32, 0, 65535, 0, 0, "auto", 0, "mtu: up to 65535B, or 0 for the discipline's rule")

#define NW_LFQ_PARAMS(X) \
	X(LFQ, LIMIT, limit, PACKETS, 32, 1, 10000000, 10000, 0, NULL, 1, "limit: 1p to 10000000p") \
	X(LFQ, QUANTUM, quantum, BYTES, 32, 256, 1048576, 3028, 0, NULL, 1, "quantum: 256B to 1048576B") \
	X(LFQ, INITIAL_QUANTUM, initial_quantum, BYTES, 32, 0, 1073741824, 3028, 0, NULL, 1, "initial_quantum: 0B to 1073741824B") \
	X(LFQ, BUCKETS, buckets, NUMBER, 32, 1, 65536, 1024, 1, NULL, 0, "buckets: 1 to 65536") \
	X(LFQ, ORPHAN_MASK, orphan_mask, NUMBER, 32, 0, 65535, 1023, 1, NULL, 0, "orphan_mask: 0 to 65535") \
	X(LFQ, POLICY, policy, CHOICE, 32, 0, 1, 0, 0, "tree rule", 1, "policy: tree (0) or rule (1)") \
	X(LFQ, EVERY, every, PACKETS, 32, 1, 1000000, 10, 0, NULL, 1, "every: 1p to 1000000p") \
	X(LFQ, INITIAL_LIMIT, initial_limit, PACKETS, 32, 1, 10000000, 100, 0, NULL, 1, "initial_limit: 1p to 10000000p") \
	X(LFQ, MIN_LIMIT, min_limit, PACKETS, 32, 1, 10000000, 4, 0, NULL, 1, "min_limit: 1p to 10000000p") \
	X(LFQ, PACING, pacing, FLAG, 32, 0, 1, 0, 0, NULL, 0, "pacing: 0 or 1")

#define NW_DISCIPLINES(X) X(COCOA) X(CP) X(FQ_CP) X(FAIR) X(LFQ)

#endif
