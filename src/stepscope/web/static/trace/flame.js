/** Flame graphs of any range of tracks: in order of time, merged (left-heavy), around one name, and of two ranges. */
import { overlapping } from './aggregate.js';

/** @typedef {import('./model.js').Model} Model */
/** @typedef {{name: string, kind: string, total: number, self: number, count: number, before: number,
 *   width?: number, children: Node[]}} Node `before` is the total in the range that is compared with, `width` how wide
 *   it is drawn where that is not the total */
/** @typedef {Node & {index: Map<number, Grown>}} Grown */
/** @typedef {{begin: number, end: number, tracks: number[]}} Range */

const MOST_NODES = 20_000;
/** Tracks that show the time of others once more, and spans of whatever else. */
const DERIVED = ['critical', 'steps', 'phases', 'annotations', 'scopes', 'idle', 'other', 'found'];

/**
 * @param {string} name
 * @param {string} kind
 * @returns {Grown}
 */
function node(name, kind) {
  return { name, kind, total: 0, self: 0, count: 0, before: 0, children: [], index: new Map() };
}

/**
 * Every stack of a range: `visit` gets the names from the outermost in, the time of the innermost (cut at the range)
 * and its slice, in order of time.
 * @param {Model} model
 * @param {Range} range
 * @param {(stack: number[], ns: number, slice: number) => void} visit
 */
function eachStack(model, range, visit) {
  for (const number of range.tracks) {
    /** @type {number[]} */
    const open = [];
    for (const i of overlapping(model, model.tracks[number], range.begin, range.end)) {
      const end = model.start[i] + model.dur[i];
      // What crosses is drawn beside, not inside.
      while (open.length) {
        const top = open[open.length - 1];
        if (model.start[top] + model.dur[top] >= end && model.start[top] + model.dur[top] > model.start[i]) break;
        open.pop();
      }
      open.push(i);
      const ns = Math.min(end, range.end) - Math.max(model.start[i], range.begin);
      visit(open.map((slice) => model.name[slice]), ns, i);
    }
  }
}

/**
 * A range without tracks that are no work of a device or thread, unless it has no others.
 * @param {Model} model
 * @param {Range} range
 * @returns {Range}
 */
export function ofWork(model, range) {
  const tracks = range.tracks.filter((number) => !DERIVED.includes(model.tracks[number].type));
  return tracks.length ? { ...range, tracks } : range;
}

/**
 * @param {Model} model
 * @param {Range} range
 * @param {number} source
 * @returns {Range}
 */
export function ofRun(model, range, source) {
  return { ...range, tracks: range.tracks.filter((number) => model.tracks[number].source === source) };
}

/**
 * The graph of a range, that of several runs with each below its own name.
 * @param {Model} model
 * @param {Range} range
 * @param {'time'|'merged'} order
 * @returns {Node}
 */
export function byRun(model, range, order) {
  const sources = [...new Set(range.tracks.map((number) => model.tracks[number].source))];
  if (sources.length < 2) return flame(model, range, order);
  const children = sources.map((at) => (
    { ...flame(model, ofRun(model, range, at), order), name: model.sources[at].label }));
  const total = children.reduce((sum, one) => sum + one.total, 0);
  return { name: 'all', kind: 'other', total, self: 0, count: 0, before: 0, children };
}

/**
 * @param {Model} model
 * @param {Range} range
 * @param {'time'|'merged'} order
 * @returns {Node}
 */
export function flame(model, range, order) {
  const root = node('all', 'other');
  let left = MOST_NODES;
  eachStack(model, range, (stack, ns) => {
    let at = root;
    for (let depth = 0; depth < stack.length; depth += 1) {
      const last = depth === stack.length - 1;
      let next = at.index.get(stack[depth]);
      const newest = at.children[at.children.length - 1];
      // In order of time only neighbours of one name are one.
      if (next && order === 'time' && last && next !== newest) next = undefined;
      if (!next) {
        if (left <= 0) return;
        left -= 1;
        next = node(model.texts[stack[depth]], model.kindNames[model.kinds[stack[depth]]]);
        at.index.set(stack[depth], next);
        at.children.push(next);
      }
      if (last) {
        next.total += ns;
        next.self += ns;
        next.count += 1;
        if (depth > 0) at.self -= ns;
        else root.total += ns;
      }
      at = next;
    }
  });
  if (order === 'merged') sort(root);
  return plain(root);
}

/**
 * Who calls a name, and what it calls: callers upwards (nearest first) and callees downwards, over all its occurrences.
 * @param {Model} model
 * @param {Range} range
 * @param {string} name
 * @returns {{callers: Node, callees: Node}}
 */
export function sandwich(model, range, name) {
  const callers = node(name, 'other');
  const callees = node(name, 'other');
  eachStack(model, range, (stack, ns) => {
    const outer = stack.findIndex((one) => model.texts[one] === name);
    if (outer < 0) return;
    let at = callees;
    for (const one of stack.slice(outer + 1)) at = child(model, at, one);
    add(at, ns);
    if (outer !== stack.length - 1) return;
    at = callers;
    add(at, ns);
    for (const one of stack.slice(0, outer).reverse()) {
      at = child(model, at, one);
      add(at, ns);
    }
  });
  sort(callers);
  sort(callees);
  return { callers: plain(callers), callees: plain(callees) };
}

/**
 * The merged graph of a range with, per node, the time of the same stack in another range.
 * @param {Model} model
 * @param {Range} range
 * @param {Range} other
 * @returns {Node}
 */
export function difference(model, range, other) {
  const made = flame(model, range, 'merged');
  merge(made, flame(model, other, 'merged'));
  widen(made, (range.end - range.begin) / (other.end - other.begin || 1));
  return made;
}

/**
 * Draw each as wide as the longer of both its times, so that what is gone is seen.
 * @param {Node} at
 * @param {number} scale what times of the other range are multiplied with
 * @returns {number}
 */
function widen(at, scale) {
  const inside = at.children.reduce((sum, child_) => sum + widen(child_, scale), 0);
  at.width = Math.max(at.total, at.before * scale, inside);
  at.children.sort((a, b) => Number(b.width) - Number(a.width));
  return at.width;
}

/**
 * @param {Node} into
 * @param {Node} other
 */
function merge(into, other) {
  into.before += other.total;
  const known = new Map(into.children.map((one) => [`${one.kind} ${one.name}`, one]));
  for (const one of other.children) {
    const key = `${one.kind} ${one.name}`;
    const mine = known.get(key) ?? { ...one, total: 0, self: 0, count: 0, before: 0, children: [] };
    if (!known.has(key)) into.children.push(mine);
    merge(mine, one);
  }
}

/**
 * @param {Model} model
 * @param {Grown} at
 * @param {number} name
 * @returns {Grown}
 */
function child(model, at, name) {
  const known = at.index.get(name);
  if (known) return known;
  const made = node(model.texts[name], model.kindNames[model.kinds[name]]);
  at.index.set(name, made);
  at.children.push(made);
  return made;
}

/**
 * @param {Node} at
 * @param {number} ns
 */
function add(at, ns) {
  at.total += ns;
  at.count += 1;
}

/** @param {Node} at */
function sort(at) {
  at.children.sort((a, b) => b.total - a.total);
  at.children.forEach(sort);
}

/**
 * Without the maps, which need not leave the worker.
 * @param {Grown} at
 * @returns {Node}
 */
function plain(at) {
  const { name, kind, total, self, count, before } = at;
  const children = at.children.map((one) => plain(/** @type {Grown} */ (one)));
  return { name, kind, total, self, count, before, children };
}
