/** Two fingers on the tracks: apart and together they zoom, side by side they pan. */

/** @typedef {import('./app.js').App} App */
/** @typedef {{x: number, y: number}} At */
/** @typedef {{begin: number, span: number, scroll: number, middle: At, apart: number}} Pinch where it began */

/** Fingers above each other are apart by nothing: less than so many pixels says nothing of the time between them. */
const LEAST_APART = 24;

export class Fingers {
  /** @param {App} app @param {() => number} width of what they are on, in pixels */
  constructor(app, width) {
    this.app = app;
    this.width = width;
    /** @type {Map<number, At>} */
    this.down = new Map();
    /** @type {Pinch|null} */
    this.pinch = null;
  }

  /** @param {number} id @param {At} at @returns {boolean} whether these are two now */
  put(id, at) {
    this.down.set(id, at);
    const { view, scroll } = this.app;
    this.pinch = this.down.size === 2
      ? { begin: view.begin, span: view.span, scroll, ...this.measured() } : null;
    return this.down.size > 1;
  }

  /** @param {number} id @param {At} at @returns {boolean} whether two of them moved the view */
  move(id, at) {
    if (!this.down.has(id)) return false;
    this.down.set(id, at);
    const { pinch } = this;
    if (!pinch) return this.down.size > 1;
    const now = this.measured();
    const span = pinch.span * (pinch.apart / now.apart);
    // The time that was between them stays there.
    const time = pinch.begin + pinch.span * (pinch.middle.x / this.width());
    const begin = time - span * (now.middle.x / this.width());
    this.app.view.set(begin, begin + span);
    this.app.scrollTo(pinch.scroll - (now.middle.y - pinch.middle.y));
    return true;
  }

  /** @param {number} id @returns {boolean} whether it was one of several */
  lift(id) {
    const several = this.down.size > 1;
    this.down.delete(id);
    this.pinch = null;
    return several;
  }

  measured() {
    const [a, b] = [...this.down.values()];
    return { middle: { x: (a.x + b.x) / 2, y: (a.y + b.y) / 2 },
      apart: Math.max(Math.hypot(a.x - b.x, a.y - b.y), LEAST_APART) };
  }
}
