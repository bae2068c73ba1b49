/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * LFQ's policies: the factor of a limit, 256ths. Written by `cargo xtask lfq` from crates/core/src/queue/lfq/.
 */
#ifndef NARROWS_LFQ_POLICY_H
#define NARROWS_LFQ_POLICY_H

/* The learned tree. */
static inline u32 nw_lfq_tree(const struct nw_lfq_features *f)
{
	if (f->cycles == 0) {
		if (f->idle <= 472) {
			if (f->drain_us <= 37319) {
				return 268;
			} else if (f->drain_us <= 48463) {
				return 163;
			} else if (f->drain_us <= 94909) {
				return 95;
			} else {
				return 64;
			}
		} else if (f->drain_us <= 102038) {
			return 253;
		} else {
			return 130;
		}
	} else if (f->idle <= 13) {
		if (f->last_idle <= 8) {
			if (f->last_min <= 70) {
				if (f->last_age <= 49) {
					return 239;
				} else if (f->drain_us <= 8880) {
					return 244;
				} else {
					return 246;
				}
			} else if (f->min <= 69) {
				return 240;
			} else if (f->last_min <= 256) {
				return 233;
			} else if (f->last_drops <= 228) {
				return 155;
			} else {
				return 100;
			}
		} else {
			return 228;
		}
	} else if (f->idle <= 23) {
		return 257;
	} else if (f->idle <= 56) {
		return 360;
	} else if (f->idle <= 122) {
		return 453;
	} else {
		return 657;
	}
}

/* The rule that can be read. */
static inline u32 nw_lfq_rule(const struct nw_lfq_features *f)
{
	if (f->cycles == 0) {
		if (f->idle <= 500) {
			if (f->drain_us <= 30000) {
				return 256;
			} else if (f->drain_us <= 60000) {
				return 160;
			} else if (f->drain_us <= 120000) {
				return 96;
			} else {
				return 64;
			}
		} else if (f->drain_us <= 120000) {
			return 256;
		} else {
			return 128;
		}
	} else if (f->idle <= 8) {
		if (f->last_idle <= 8) {
			if (f->last_min <= 64) {
				if (f->last_age <= 48) {
					return 256;
				} else if (f->drain_us <= 12000) {
					return 250;
				} else {
					return 240;
				}
			} else if (f->min <= 64) {
				return 256;
			} else if (f->last_min <= 256) {
				return 216;
			} else if (f->last_drops <= 200) {
				return 150;
			} else {
				return 100;
			}
		} else {
			return 256;
		}
	} else if (f->idle <= 20) {
		return 290;
	} else if (f->idle <= 45) {
		return 360;
	} else if (f->idle <= 90) {
		return 448;
	} else {
		return 640;
	}
}

#endif
