/** What is in sight, with its history: a stretch of time, and what its owner keeps beside it. */

/** @typedef {{begin: number, end: number, beside: unknown}} Place */

const LEAST_NS = 20;
const REMEMBERED = 100;
const SETTLED_MS = 600;
/** The gesture that moves and zooms; a drag scrolls too. */
export const SIGHT = 'sight';

export class View {
  /**
   * @param {number} begin
   * @param {number} end
   * @param {() => void} changed
   * @param {{get: () => unknown, set: (beside: unknown) => void}} [beside] what else a place in the history has
   */
  constructor(begin, end, changed, beside = { get: () => null, set: () => {} }) {
    this.first = begin;
    this.last = end;
    this.begin = begin;
    this.end = end;
    this.changed = changed;
    this.beside = beside;
    /** @type {Place[]} */
    this.past = [];
    /** @type {Place[]} */
    this.future = [];
    this.moved = -Infinity;
    this.gesture = '';
    /** @type {{kept: boolean}|null} while several changes are one; `kept`: what was before them is in the history */
    this.joint = null;
  }

  get span() {
    return this.end - this.begin;
  }

  /**
   * Show a stretch of time, kept within the trace and a margin.
   * @param {number} begin
   * @param {number} end
   * @param {{quiet?: boolean, now?: number}} [how] quiet: without a place in the history
   */
  set(begin, end, how = {}) {
    const whole = this.last - this.first;
    const span = Math.min(Math.max(end - begin, LEAST_NS), whole * 1.1);
    const margin = span * 0.5;
    let from = (begin + end - span) / 2;
    from = Math.max(this.first - margin, Math.min(from, this.last + margin - span));
    if (span >= whole) from = (this.first + this.last - span) / 2;
    if (from === this.begin && from + span === this.end) return;
    if (!how.quiet) this.remember(SIGHT, how.now);
    this.begin = from;
    this.end = from + span;
    this.changed();
  }

  /** @returns {Place} */
  get place() {
    return { begin: this.begin, end: this.end, beside: this.beside.get() };
  }

  /**
   * Keep what is in sight before it changes. One gesture is one place.
   * @param {string} gesture changes of other kinds are others
   * @param {number} [now]
   */
  remember(gesture, now = Date.now()) {
    const goesOn = gesture === this.gesture && now - this.moved <= SETTLED_MS;
    this.moved = now;
    this.gesture = gesture;
    if (this.joint ? this.joint.kept : goesOn) return;
    if (this.joint) this.joint.kept = true;
    this.past.push(this.place);
    if (this.past.length > REMEMBERED) this.past.shift();
    this.future = [];
  }

  /**
   * Several changes as one place in the history.
   * @param {() => void} act
   */
  together(act) {
    const { joint } = this;
    this.joint ??= { kept: false };
    try {
      act();
    } finally {
      this.joint = joint;
      this.moved = -Infinity;
    }
  }

  /**
   * @param {number} factor less than 1 shows less
   * @param {number} at the share of the width that stays
   */
  zoom(factor, at) {
    const span = Math.min(Math.max(this.span * factor, LEAST_NS), (this.last - this.first) * 1.1);
    const fixed = this.begin + this.span * at;
    this.set(fixed - span * at, fixed + span * (1 - at));
  }

  /** @param {number} share of the width */
  pan(share) {
    this.set(this.begin + this.span * share, this.end + this.span * share);
  }

  whole() {
    const margin = (this.last - this.first) * 0.01;
    this.jump(this.first - margin, this.last + margin);
  }

  /**
   * Show a stretch of time as a place of its own in the history: no gesture goes on over it.
   * @param {number} begin
   * @param {number} end
   */
  jump(begin, end) {
    this.moved = -Infinity;
    this.set(begin, end);
    this.moved = -Infinity;
  }

  /**
   * Show a range with some room around it.
   * @param {number} begin
   * @param {number} end
   * @param {number} [room] share of the range on each side
   */
  fit(begin, end, room = 0.15) {
    this.jump(begin - (end - begin) * room, end + (end - begin) * room);
  }

  /** @param {number} time @param {number} [least] ns that must be in sight around it */
  reveal(time, least = 0) {
    if (time >= this.begin && time + least <= this.end) return;
    const span = Math.max(this.span, least * 1.4);
    this.set(time + least / 2 - span / 2, time + least / 2 + span / 2);
  }

  back() {
    this.travel(this.past, this.future);
  }

  forward() {
    this.travel(this.future, this.past);
  }

  /**
   * @param {Place[]} from
   * @param {Place[]} to
   */
  travel(from, to) {
    const place = from.pop();
    if (!place) return;
    to.push(this.place);
    this.joint = { kept: true };
    this.beside.set(place.beside);
    this.joint = null;
    this.moved = -Infinity;
    this.set(place.begin, place.end, { quiet: true });
  }
}
