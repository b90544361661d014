/** A flame graph of paths: each box as wide as its time with what is inside it; Enter or a click looks closer. */

import { h, put } from '../core/dom.js';
import { visible } from '../core/text.js';
import { hideTip, showTip } from './tip.js';

/**
 * @typedef {{path: string|string[], value: number, times?: number, change?: number, whole?: boolean}} Leaf `times`: how
 *   many it stands for; `change`: by how much it takes longer than before, of a `whole` one with what is in it
 * @typedef {{name: string, path: string, value: number, times: number, change: number, listed: boolean,
 *   children: Node_[]}} Node_
 * @typedef {{node: Node_, left: number, width: number, depth: number, line: Node_[]}} Spot where a box lies, in shares
 *   of the whole width; `line`: from the root to it
 */

const ROW = 22;
const NARROWEST = 0.0015;
/** Of a colour in a box that is new or gone, in percent: text in it stays readable. */
const DEEPEST = 45;

/**
 * The tree that paths with slashes span. A part that is not listed itself is as large as what it holds.
 * @param {Leaf[]} leaves
 * @returns {Node_}
 */
export function treeOf(leaves) {
  /** @type {Node_} */
  const root = { name: '', path: '', value: 0, times: 1, change: 0, listed: false, children: [] };
  for (const leaf of leaves) {
    let at = root;
    let path = '';
    for (const part of typeof leaf.path === 'string' ? leaf.path.split('/') : leaf.path) {
      path = path ? `${path}/${part}` : part;
      let next = at.children.find((one) => one.name === part);
      if (!next) {
        next = { name: part, path, value: 0, times: 1, change: 0, listed: false, children: [] };
        at.children.push(next);
      }
      at = next;
      if (!leaf.whole) at.change += leaf.change ?? 0;
    }
    if (leaf.whole) at.change = leaf.change ?? 0;
    at.listed = true;
    at.value = leaf.value;
    at.times = leaf.times ?? 1;
  }
  settle(root);
  return root;
}

/** @param {Node_} node */
function settle(node) {
  node.children.forEach(settle);
  node.children.sort((a, b) => b.value - a.value);
  node.value = Math.max(node.value, node.children.reduce((sum, one) => sum + one.value, 0));
}

/**
 * @typedef {{label: string, leaves: Leaf[], format: (value: number, change: number) => string,
 *   announce: (text: string) => void, changes?: boolean}} Given `changes`: colours say by how much boxes changed
 */

/** @param {Given} given */
export function flame(given) {
  const root = treeOf(given.leaves);
  const holder = h('div', { class: 'flame', role: 'tree', 'aria-label': given.label });
  /** @param {Node_[]} line from the root to what is looked at */
  const draw = (line) => {
    const spots = spotsOf(line);
    const boxes = spots.map((spot) => box(given, spot, {
      closer: () => draw(spot.line),
      onKey: (event, element) => {
        if (event.key === 'Escape') draw([root]);
        else if (!press(holder, element, event.key)) return;
        event.preventDefault();
        if (!holder.contains(document.activeElement)) {
          /** @type {HTMLElement|null} */ (holder.querySelector('[tabindex="0"]'))?.focus();
        }
      },
    }));
    put(holder, boxes);
    holder.style.height = `${(Math.max(0, ...spots.map(({ depth }) => depth)) + 1) * ROW}px`;
    boxes.forEach((one, at) => { one.tabIndex = at === Math.max(0, line.length - 2) ? 0 : -1; });
  };
  draw([root]);
  const whole = h('button', { type: 'button', class: 'quiet', onclick: () => draw([root]) }, 'Whole');
  return h('div', null, holder, whole);
}

/**
 * What is drawn when the end of `line` is looked at: what it is in, as wide as all, and what is inside it.
 * @param {Node_[]} line
 * @returns {Spot[]}
 */
function spotsOf(line) {
  const around = line.slice(1).map((node, depth) => (
    { node, left: 0, width: 1, depth, line: line.slice(0, depth + 2) }));
  return [...around, ...inside({ node: line[line.length - 1], left: 0, width: 1, depth: line.length - 2, line })];
}

/**
 * What is inside a box, each before its own; the narrowest are left out.
 * @param {Spot} spot
 * @returns {Spot[]}
 */
function inside({ node, left, width, depth, line }) {
  let at = left;
  /** @type {Spot[]} */
  const boxes = [];
  for (const child of node.children) {
    const own = node.value ? (child.value / node.value) * width : 0;
    if (own >= NARROWEST) {
      const spot = { node: child, left: at, width: own, depth: depth + 1, line: [...line, child] };
      boxes.push(spot, ...inside(spot));
    }
    at += own;
  }
  return boxes;
}

/**
 * What stands behind the name of a box, and what is told of it.
 * @param {Given} given
 * @param {Node_} node
 */
function textsOf(given, node) {
  const value = given.format(node.value, node.change);
  const times = node.times > 1 ? ` × ${node.times}` : '';
  if (given.changes) {
    return { behind: times || (node.change ? ` ${value}` : ''), told: `${visible(node.path)}: ${value}` };
  }
  return { behind: times, told: `${visible(node.path)}${times}: ${node.listed ? '' : 'at least '}${value}` };
}

/**
 * @param {Given} given
 * @param {Spot} spot
 * @param {{closer: () => void, onKey: (event: KeyboardEvent, element: HTMLElement) => void}} acts
 */
function box(given, { node, left, width, depth }, { closer, onKey }) {
  const { behind, told } = textsOf(given, node);
  const element = h(
    'div',
    {
      class: `flame-box ${given.changes ? node.change > 0 ? 'grew' : 'shrank' : ''}`,
      role: 'treeitem',
      'aria-label': told,
      'aria-level': depth + 1,
      'data-depth': depth,
      style: {
        left: `${left * 100}%`,
        width: `${width * 100}%`,
        top: `${depth * ROW}px`,
        '--hue': String(hue(node.name)),
        '--change': `${node.value ? Math.min(1, Math.abs(node.change) / node.value) * DEEPEST : 0}%`,
      },
      onclick: () => {
        closer();
        given.announce(told);
      },
      onpointermove: (/** @type {PointerEvent} */ event) => showTip([told], event.clientX, event.clientY),
      onpointerleave: hideTip,
      onkeydown: (/** @type {KeyboardEvent} */ event) => onKey(event, element),
    },
    width > 0.02 ? h('span', null, h('bdi', null, visible(node.name)), behind) : null,
  );
  return element;
}

/**
 * Whether a key looks closer at a box or goes on to another.
 * @param {HTMLElement} holder
 * @param {HTMLElement} element
 * @param {string} key
 */
function press(holder, element, key) {
  if (key === 'Enter' || key === ' ') {
    element.click();
    return true;
  }
  const next = neighbours(holder, element)[key];
  next?.focus();
  return Boolean(next);
}

/**
 * The boxes around one, by the key that goes to each.
 * @param {HTMLElement} holder
 * @param {HTMLElement} element
 * @returns {Record<string, HTMLElement|undefined>}
 */
function neighbours(holder, element) {
  const all = /** @type {HTMLElement[]} */ ([...holder.children]);
  const depthOf = (/** @type {HTMLElement|undefined} */ one) => Number(one?.dataset.depth);
  const depth = depthOf(element);
  const at = all.indexOf(element);
  const same = all.filter((one) => depthOf(one) === depth);
  const beside = same.indexOf(element);
  return {
    ArrowRight: same[beside + 1],
    ArrowLeft: same[beside - 1],
    ArrowDown: depthOf(all[at + 1]) === depth + 1 ? all[at + 1] : undefined,
    ArrowUp: all.slice(0, at).reverse().find((one) => depthOf(one) === depth - 1),
  };
}

/**
 * A colour that stays with a name; numbers in it do not count, so that layers of a kind look alike.
 * @param {string} text
 */
export function hue(text) {
  let sum = 7;
  for (const letter of text.slice(0, 200).replace(/[_\d]+/g, '')) sum = (sum * 31 + letter.charCodeAt(0)) % 3600;
  return sum / 10;
}
