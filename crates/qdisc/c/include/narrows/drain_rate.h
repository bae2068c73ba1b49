/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The rate at which a queue drains, measured from departures, after `parts/drain_rate.rs`. Between two departures of
 * a queue that did not run empty, the first one's bytes were being sent. Bytes and time are averaged, each sample
 * weighing a sixteenth. A sample is as many departures as take half of the time that one takes on average, so that a
 * burst is one sample with the pause after it.
 *
 * The rate is a quotient that every departure changes. It is divided when it is asked for, and kept until the next
 * departure.
 */
#ifndef NARROWS_DRAIN_RATE_H
#define NARROWS_DRAIN_RATE_H

#include "base.h"

/* One sample weighs a sixteenth. */
#define NW_DRAIN_SHIFT 4

struct nw_drain_rate {
	/* The sample under way: bytes and ns. */
	u64 bytes;
	u64 ns;
	/* Averages, in sixteenths: bytes and ns per sample. */
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

/* Averages the sample, and begins the next one. */
static inline void nw_drain_sampled(struct nw_drain_rate *d)
{
	if (!d->ns16) {
		d->bytes16 = d->bytes << NW_DRAIN_SHIFT;
		d->ns16 = d->ns << NW_DRAIN_SHIFT;
	} else {
		d->bytes16 = d->bytes16 - (d->bytes16 >> NW_DRAIN_SHIFT) + d->bytes;
		d->ns16 = d->ns16 - (d->ns16 >> NW_DRAIN_SHIFT) + d->ns;
	}
	d->bytes = 0;
	d->ns = 0;
	d->divided = false;
}

/* A packet has left; is anything left behind it? */
static inline void nw_drain_on_departure(struct nw_drain_rate *d, u32 len, bool leaves_more, u64 now)
{
	if (d->busy) {
		d->bytes += d->sent;
		d->ns += nw_sub(now, d->since);
		if (d->ns > d->ns16 >> (NW_DRAIN_SHIFT + 1))
			nw_drain_sampled(d);
	}
	if (!leaves_more) {
		/* The pause that belongs to the end of a burst is not known. */
		d->bytes = 0;
		d->ns = 0;
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
