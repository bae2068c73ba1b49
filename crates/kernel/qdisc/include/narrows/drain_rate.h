/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The rate at which a queue drains, measured from departures, after `parts/drain_rate.rs`. Between two departures of
 * a queue that did not run empty, the first one's bytes were being sent. Both are averaged, each departure weighing a
 * sixteenth.
 *
 * The rate is a quotient that every departure changes. It is divided when it is asked for, and kept until the next
 * departure.
 */
#ifndef NARROWS_DRAIN_RATE_H
#define NARROWS_DRAIN_RATE_H

#include "base.h"

/* One departure weighs a sixteenth. */
#define NW_DRAIN_SHIFT 4

struct nw_drain_rate {
	/* Averages, in sixteenths: bytes and ns per departure. */
	u64 bytes16;
	u64 ns16;
	/* The last departure, if something was left behind. */
	u64 since;
	u32 sent;
	bool busy;
	/* `rate` is the quotient of the averages. */
	bool divided;
	u64 rate;
};

/* A packet has left; is anything left behind it? */
static inline void nw_drain_on_departure(struct nw_drain_rate *d, u32 len, bool leaves_more, u64 now)
{
	if (d->busy) {
		u64 ns = nw_sub(now, d->since);

		if (!d->ns16) {
			d->bytes16 = (u64)d->sent << NW_DRAIN_SHIFT;
			d->ns16 = ns << NW_DRAIN_SHIFT;
		} else {
			d->bytes16 = d->bytes16 - (d->bytes16 >> NW_DRAIN_SHIFT) + d->sent;
			d->ns16 = d->ns16 - (d->ns16 >> NW_DRAIN_SHIFT) + ns;
		}
		d->divided = false;
	}
	d->busy = leaves_more;
	d->since = now;
	d->sent = len;
}

/* The rate, bit/s; `otherwise` until something has been measured. */
static inline u64 nw_drain_rate(struct nw_drain_rate *d, u64 otherwise)
{
	if (!d->ns16)
		return otherwise;
	if (!d->divided) {
		d->rate = nw_mul_div(d->bytes16, NW_BYTE, d->ns16);
		d->divided = true;
	}
	return d->rate;
}

#endif
