/** A flame graph of paths: each box as wide as its time with what is inside it; Enter or a click looks closer. */

import { h, put } from '../core/dom.js';
import { visible } from '../core/text.js';
import { hideTip, showTip } from './tip.js';

/**
 * @typedef {{path: string|string[], value: number, times?: number, change?: number}} Leaf `times`: how many it stands
 *   for; `change`: by how much it takes longer than before
 * @typedef {{name: string, path: string, value: number, times: number, change: number, listed: boolean,
 *   children: Node_[]}} Node_
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
      at.change += leaf.change ?? 0;
    }
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
 * @param {{label: string, leaves: Leaf[], format: (value: number, change: number) => string,
 *   announce: (text: string) => void, changes?: boolean}} given `changes`: colours say by how much boxes changed
 */
export function flame(given) {
  const root = treeOf(given.leaves);
  const holder = h('div', { class: 'flame', role: 'tree', 'aria-label': given.label });
  const draw = (/** @type {Node_[]} */ line) => {
    const top = line[line.length - 1];
    /** @type {HTMLElement[]} */
    const boxes = [];
    line.slice(1).forEach((node, depth) => boxes.push(box(node, 0, 1, depth, line.slice(0, depth + 2))));
    place(top, 0, 1, line.length - 1, line, boxes);
    put(holder, boxes);
    holder.style.height = `${(Math.max(0, ...boxes.map((one) => Number(one.dataset.depth))) + 1) * ROW}px`;
    boxes.forEach((one, at) => { one.tabIndex = at === Math.max(0, line.length - 2) ? 0 : -1; });
  };
  /**
   * @param {Node_} node
   * @param {number} left
   * @param {number} width
   * @param {number} depth
   * @param {Node_[]} line
   * @param {HTMLElement[]} boxes
   */
  const place = (node, left, width, depth, line, boxes) => {
    let at = left;
    for (const child of node.children) {
      const own = node.value ? (child.value / node.value) * width : 0;
      if (own >= NARROWEST) {
        boxes.push(box(child, at, own, depth, [...line, child]));
        place(child, at, own, depth + 1, [...line, child], boxes);
      }
      at += own;
    }
  };
  /**
   * @param {Node_} node
   * @param {number} left
   * @param {number} width
   * @param {number} depth
   * @param {Node_[]} line
   */
  const box = (node, left, width, depth, line) => {
    const times = node.times > 1 ? ` × ${node.times}` : given.changes && node.change
      ? ` ${given.format(node.value, node.change)}` : '';
    const what = `${visible(node.path)}${given.changes ? '' : times}`;
    const text = `${what}: ${node.listed || given.changes ? '' : 'at least '}${given.format(node.value, node.change)}`;
    const element = h(
      'div',
      {
        class: `flame-box ${given.changes ? node.change > 0 ? 'grew' : 'shrank' : ''}`,
        role: 'treeitem',
        'aria-label': text,
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
          draw(line);
          given.announce(text);
        },
        onpointermove: (/** @type {PointerEvent} */ event) => showTip([text], event.clientX, event.clientY),
        onpointerleave: hideTip,
        onkeydown: (/** @type {KeyboardEvent} */ event) => onKey(event, element),
      },
      width > 0.02 ? h('span', null, h('bdi', null, visible(node.name)), times) : null,
    );
    return element;
  };
  /** @param {KeyboardEvent} event @param {HTMLElement} element */
  const onKey = (event, element) => {
    const all = /** @type {HTMLElement[]} */ ([...holder.children]);
    const depth = Number(element.dataset.depth);
    const at = all.indexOf(element);
    const same = all.filter((one) => Number(one.dataset.depth) === depth);
    const beside = same.indexOf(element);
    const parents = all.slice(0, at).reverse();
    const next = /** @type {Record<string, HTMLElement|undefined>} */ ({
      ArrowRight: same[beside + 1],
      ArrowLeft: same[beside - 1],
      ArrowDown: Number(all[at + 1]?.dataset.depth) === depth + 1 ? all[at + 1] : undefined,
      ArrowUp: parents.find((one) => Number(one.dataset.depth) === depth - 1),
    })[event.key];
    if (event.key === 'Enter' || event.key === ' ') element.click();
    else if (event.key === 'Escape') draw([root]);
    else if (next) next.focus();
    else return;
    event.preventDefault();
    if (!holder.contains(document.activeElement)) {
      /** @type {HTMLElement|null} */ (holder.querySelector('[tabindex="0"]'))?.focus();
    }
  };
  draw([root]);
  const whole = h('button', { type: 'button', class: 'quiet', onclick: () => draw([root]) }, 'Whole');
  return h('div', null, holder, whole);
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
