// @ts-check
/** Numbers with their units, as people say them. */

/** A duration in words. @param {number} seconds */
export function span(seconds) {
  if (seconds >= 1) return `${seconds.toFixed(seconds < 10 ? 2 : 1)} s`;
  if (seconds >= 1e-3) return `${(seconds * 1e3).toFixed(seconds < 0.01 ? 1 : 0)} ms`;
  return `${(seconds * 1e6).toFixed(0)} µs`;
}

/** A rate in words. @param {number} mbit */
export function rate(mbit) {
  if (mbit >= 1000) return `${+(mbit / 1000).toPrecision(3)} Gbit/s`;
  return mbit >= 1 ? `${+mbit.toPrecision(3)} Mbit/s` : `${+(mbit * 1000).toPrecision(3)} kbit/s`;
}
