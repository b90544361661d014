/** Times of several profiles on one clock. */

/** @typedef {{offset_ns: number, drift: number, at_ns: number}} Move what is added to a profile's times: at `at_ns` of
 *   its own the offset, and `drift` per ns from there */
/** @typedef {{offset: number, drift: number, driftAt: number}} Moved */

/**
 * A time of a profile as the view shows it.
 * @param {Moved} source
 * @param {number} time
 */
export function viewTime({ offset, drift, driftAt }, time) {
  return time + offset + (drift ? Math.round(drift * (time - driftAt)) : 0);
}

/**
 * A time of the view as the profile has it.
 * @param {Moved} source
 * @param {number} time
 */
export function ownTime({ offset, drift, driftAt }, time) {
  return drift ? Math.round((time - offset + drift * driftAt) / (1 + drift)) : time - offset;
}

/**
 * Bring starts and ends of slices that were moved by the offset alone to the clock of the view: what nests still does.
 * @param {Moved} source
 * @param {Float64Array} start
 * @param {ArrayLike<number> & {[at: number]: number}} dur
 */
export function undrift(source, start, dur) {
  for (let i = 0; i < start.length; i += 1) {
    const own = start[i] - source.offset;
    start[i] = viewTime(source, own);
    dur[i] = viewTime(source, own + dur[i]) - start[i];
  }
}
