/** Flame graphs of the selected range, else of what is in sight. */
import { h, put } from '../core/dom.js';
import { formatNs, formatShare } from '../core/units.js';
import { rgb, hash } from './colours.js';

/** @typedef {import('./app.js').App} App */
/** @typedef {import('./flame.js').Node} Node */
/** @typedef {import('./flame.js').Range} Range */

const FORMS = [['merged', 'Left-heavy'], ['time', 'Order of time'], ['sandwich', 'Around the selected name'],
  ['difference', 'Against the range before']];
const ROW = 18;
const LEAST = 0.0015;

/** @type {{form: string}} */
const kept = { form: 'merged' };

/** @param {App} app */
export async function flameTab(app) {
  const range = app.area ?? { begin: app.view.begin, end: app.view.end, tracks: threads(app) };
  const { name, source } = app.selection ?? { name: '', source: 0 };
  const missing = missingFor(app, name);
  const flame = missing ? null : await app.ask('flame', { range, form: kept.form, name, source, other: app.other });
  return [
    h('div', { class: 'tv-actions' }, formChoice(app), h('span', { class: 'tv-dim' },
      covered(app, range, flame?.left ?? 0))),
    missing ? h('p', { class: 'tv-dim' }, missing) : null,
    ...(flame ? graphs(app, range, flame) : []),
  ];
}

/** @param {App} app */
function formChoice(app) {
  const choice = h('select', { 'aria-label': 'Form of the flame graph', onchange: () => {
    kept.form = choice.value;
    app.emit('tab');
  } }, FORMS.map(([value, text]) => h('option', { value, selected: value === kept.form }, text)));
  return choice;
}

/**
 * What the graph is of.
 * @param {App} app
 * @param {Range} range
 * @param {number} left how many of its tracks hold nothing that calls or is called
 */
function covered(app, { begin, end, tracks }, left) {
  return `${formatNs(Math.round(end - begin))} of ${tracks.length - left} tracks `
    + `(${app.area ? 'the selected range' : 'in sight'}`
    + `${left ? '; steps, phases, gaps and spans of no thread are left out' : ''})`;
}

/**
 * @param {App} app
 * @param {Range} range
 * @param {import('./client.js').Answer<'flame'>} flame
 */
function graphs(app, range, flame) {
  if ('callers' in flame) {
    return [h('h4', null, 'What calls it'), graph(flame.callers, 0),
      h('h4', null, 'What it calls'), graph(flame.callees, 0)];
  }
  return [graph(flame.tree, kept.form === 'difference' && app.other ? scaleOf(range, app.other) : 0)];
}

/**
 * @param {App} app
 * @param {string} name
 * @returns {string|null}
 */
function missingFor(app, name) {
  if (kept.form === 'sandwich' && !name) {
    return 'Select a slice: the graph shows what calls its name and what it calls.';
  }
  if (kept.form === 'difference' && !app.other) {
    return 'Select two ranges one after the other: the second is compared with the first.';
  }
  return null;
}

/**
 * @param {App} app
 * @returns {number[]}
 */
function threads(app) {
  const selected = app.selection?.track;
  if (selected !== undefined) return [selected];
  return app.meta.tracks.filter((track) => track.type === 'thread').slice(0, 1).map((track) => track.number);
}

/**
 * @param {{begin: number, end: number}} range
 * @param {{begin: number, end: number}} other
 */
function scaleOf(range, other) {
  return (range.end - range.begin) / (other.end - other.begin || 1);
}

/**
 * Boxes by depth; a click on one shows it over the whole width.
 * @param {Node} tree
 * @param {number} scale what the other range's times are multiplied with; 0 for no comparison
 */
function graph(tree, scale) {
  const box = h('div', { class: 'tv-flame', role: 'tree', 'aria-label': 'Flame graph' });
  const about = h('p', { class: 'tv-dim', role: 'status' });
  const draw = (/** @type {Node} */ root) => {
    /** @type {HTMLElement[]} */
    const made = [];
    const add = (/** @type {Node} */ node, /** @type {number} */ from, /** @type {number} */ depth) => {
      const share = wide(node) / (wide(root) || 1);
      if (share < LEAST) return;
      const text = described(node, root, scale);
      const [r, g, b] = colour(node, scale);
      made.push(h('button', { type: 'button', title: text, role: 'treeitem', 'aria-label': text,
        onmouseenter: () => { about.textContent = text; }, onfocus: () => { about.textContent = text; },
        onclick: () => draw(node === root ? tree : node),
        style: { left: `${from * 100}%`, width: `${share * 100}%`, top: `${depth * ROW}px`,
          background: `rgb(${r},${g},${b})` } }, share > 0.03 ? node.name.slice(0, 200) : ''));
      let at = from;
      for (const child of node.children) {
        add(child, at, depth + 1);
        at += wide(child) / (wide(root) || 1);
      }
    };
    add(root, 0, 0);
    const deep = Math.max(0, ...made.map((one) => parseInt(one.style.top, 10)));
    box.style.height = `${deep + ROW}px`;
    put(box, made);
  };
  draw(tree);
  return h('div', null, about, box);
}

/** @param {Node} node */
function wide(node) {
  return node.width ?? node.total;
}

/**
 * @param {Node} node
 * @param {Node} root
 * @param {number} scale
 */
function described(node, root, scale) {
  const more = Math.round(node.total - node.before * scale);
  const change = scale ? `, ${formatNs(Math.abs(more))} ${more < 0 ? 'less' : 'more'} than before` : '';
  return `${node.name.slice(0, 500)}: ${formatNs(node.total)} (${formatShare(node.total / (root.total || 1))}), `
    + `self ${formatNs(Math.max(0, node.self))}, ${node.count}×${change}`;
}

/**
 * @param {Node} node
 * @param {number} scale
 * @returns {[number, number, number]}
 */
function colour(node, scale) {
  if (!scale) return rgb(18 + (hash(node.name) % 40), 62, 66 + (hash(node.name) >>> 9) % 8);
  const before = node.before * scale;
  const change = Math.max(-1, Math.min(1, (node.total - before) / (Math.max(node.total, before) || 1)));
  return change >= 0 ? rgb(8, 70 * change, 92 - 26 * change) : rgb(212, -70 * change, 92 + 26 * change);
}
