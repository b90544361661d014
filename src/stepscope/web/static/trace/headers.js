/** The names of the tracks beside the canvas, with what can be done to each. */
import { h, put } from '../core/dom.js';
import { turn } from './folds.js';
import { FOUND } from './found.js';
import { modeOf } from './layout.js';
import { removeTrack } from './made.js';
import { formatValue } from './units.js';

/** @typedef {import('./app.js').App} App */
/** @typedef {import('./layout.js').Item} Item */

const HEIGHTS = [1, 2, 4];
const HEADS = { group: groupHead, fold: foldHead, track: trackHead, counter: trackHead };

/** @param {App} app */
export function headers(app) {
  const inner = h('div', { class: 'tv-heads-inner' });
  const pinned = h('div', { class: 'tv-heads-pinned' });
  const element = h('div', { class: 'tv-heads', role: 'list', 'aria-label': 'Tracks' }, inner, pinned);
  const build = () => {
    put(inner, app.layout.items.filter((item) => !item.pinned).map((item) => head(app, item)));
    put(pinned, app.layout.items.filter((item) => item.pinned).map((item) => head(app, item)));
    pinned.style.height = `${app.layout.pinnedHeight}px`;
    pinned.hidden = app.layout.pinnedHeight === 0;
    move();
  };
  const move = () => {
    inner.style.transform = `translateY(${-Math.round(app.scroll)}px)`;
  };
  app.on(['layout', 'scales'], build);
  app.on(['view'], move);
  element.addEventListener('wheel', (event) => {
    app.scrollTo(app.scroll + event.deltaY);
    event.preventDefault();
  }, { passive: false });
  build();
  return element;
}

/**
 * @param {App} app
 * @param {Item} item
 */
function head(app, item) {
  return HEADS[item.type](app, item, { top: `${item.y}px`, height: `${item.height}px` });
}

/**
 * @param {App} app
 * @param {Item} item
 * @param {Record<string, string>} style
 */
function groupHead(app, item, style) {
  const about = app.meta.sources.flatMap((one) => one.header.groups).find((group) => group.id === item.group)?.about;
  const clock = app.clocks[Number.parseInt(item.key, 10)];
  return h('div', { class: 'tv-head tv-group', style, role: 'listitem' },
    h('button', { type: 'button', 'aria-expanded': String(!item.closed),
      title: [item.label, about, clock].filter(Boolean).join(' – '),
      onclick: () => app.toggle('closed', item.key) }, item.closed ? '▸ ' : '▾ ', item.label),
    clock ? h('span', { class: 'tv-clock', title: 'How exact its clock is in this view' }, clock) : null,
    about && !clock ? h('span', { class: 'tv-about', title: about }, about) : null);
}

/**
 * The name of a track or counter, with its tools.
 * @param {App} app
 * @param {Item} item
 * @param {Record<string, string>} style
 */
function trackHead(app, item, style) {
  const holds = item.track?.holds;
  const most = item.counter ? scaleText(app, item, item.counter) : null;
  const kind = item.track?.type ?? 'counter';
  return h('div', { class: `tv-head tv-${kind}`, style, role: 'listitem', 'data-key': item.key },
    h('button', { type: 'button', class: 'tv-name', 'aria-label': spoken(app, item),
      title: `${item.label}${holds ? ` – ${holds}` : ''}`,
      'aria-expanded': item.lanes.length > 1 ? String(!item.collapsed) : null,
      onclick: () => collapse(app, item) },
    item.lanes.length > 1 ? (item.collapsed ? '▸ ' : '▾ ') : '', item.label),
    holds ? h('span', { class: 'tv-holds' }, holds) : null,
    most ? h('span', { class: 'tv-holds' }, most) : null,
    h('span', { class: 'tv-tools' }, tools(app, item)));
}

/**
 * The name of streams that hold the same, folded or above them.
 * @param {App} app
 * @param {Item} item
 * @param {Record<string, string>} style
 */
function foldHead(app, { key, label, group, collapsed }, style) {
  const holds = key.slice(key.lastIndexOf('/streams of ') + '/streams of '.length);
  const of = [app.sourceLabels[Number.parseInt(key, 10)], group].filter(Boolean).join(', ');
  const told = `${label}${holds && ` of ${holds}`}`;
  const spokenAs = [told, of, collapsed ? 'folded into one row' : 'unfolded'].join(', ');
  return h('div', { class: 'tv-head tv-fold', style, role: 'listitem', 'data-key': key },
    h('button', { type: 'button', class: 'tv-name', 'aria-label': spokenAs, 'aria-expanded': String(!collapsed),
      title: `${told}: ${collapsed ? 'unfold' : 'fold'} them (J)`,
      onclick: () => turn(app, [key]) }, collapsed ? '▸ ' : '▾ ', label),
    holds ? h('span', { class: 'tv-holds' }, holds) : null);
}

/**
 * What a track is, for who does not see it.
 * @param {App} app
 * @param {Item} item
 */
function spoken(app, item) {
  const { track, counter, lanes } = item;
  const of = [app.sourceLabels[source(item) ?? 0], track?.group ?? counter?.group].filter(Boolean).join(', ');
  const what = track ? track.type.replaceAll('_', ' ') : 'counter';
  const rows = lanes.length > 1 ? `${lanes.length} rows${item.collapsed ? ' folded into one' : ''}` : '';
  return [item.label, what, of, track?.holds, rows, item.pinned && 'pinned'].filter(Boolean).join(', ');
}

/**
 * What the height of a counter stands for.
 * @param {App} app
 * @param {Item} item
 * @param {import('./layout.js').CounterAbout} counter
 */
function scaleText({ arrangement, scales }, { key }, { number, unit, low, high }) {
  const mode = modeOf(arrangement, key);
  const [least, most] = scales.get(number) ?? [Math.min(low, 0), high];
  const told = (/** @type {number} */ value) => `${formatValue(value, unit)}${mode === 'rate' ? '/s' : ''}`;
  const kind = [mode === 'value' ? '' : 'Δ', arrangement.log.includes(key) ? 'log' : ''].filter(Boolean).join(' ');
  return `${kind} ${least < 0 ? `${told(least)} ` : ''}to ${told(most)}`.trim();
}

/**
 * Show a counter's changes, or its values again.
 * @param {App} app
 * @param {string} key
 * @param {'delta'|'rate'} mode
 */
function change(app, key, mode) {
  const { arrangement } = app;
  const without = (/** @type {string[]} */ list) => list.filter((one) => one !== key);
  const next = modeOf(arrangement, key) === mode ? [] : [key];
  app.arrange({ delta: without(arrangement.delta), rate: without(arrangement.rate),
    [mode]: [...without(arrangement[mode]), ...next] });
}

/**
 * @param {App} app
 * @param {Item} item
 */
function collapse(app, item) {
  const { key } = item;
  const { collapsed, expanded } = app.arrangement;
  if (item.collapsed) {
    app.arrange({ collapsed: collapsed.filter((one) => one !== key), expanded: [...expanded, key] });
  } else {
    app.arrange({ collapsed: [...collapsed, key], expanded: expanded.filter((one) => one !== key) });
  }
}

/**
 * @param {App} app
 * @param {Item} item
 */
function tools(app, item) {
  const { key } = item;
  const made = item.track?.type === FOUND ? item.track : null;
  const button = (/** @type {string} */ text, /** @type {string} */ title, /** @type {() => void} */ act) => (
    h('button', { type: 'button', title, 'aria-label': `${title}: ${item.label}`, onclick: act }, text));
  return [
    button(item.pinned ? '⊖' : '⊕', item.pinned ? 'Unpin' : 'Pin to the top', () => app.toggle('pinned', key)),
    button('↕', 'Height 1x, 2x, 4x', () => grow(app, key)),
    button('↑', 'Move up', () => shift(app, item, -1)),
    button('↓', 'Move down', () => shift(app, item, 1)),
    button('solo', 'This one alone, again: all', () => app.solo(key)),
    made ? button('×', 'Remove', () => void removeTrack(app, made.id))
      : button('×', 'Hide', () => app.toggle('hidden', key)),
    item.counter ? button('log', 'Logarithmic scale', () => app.toggle('log', key)) : null,
    item.counter ? button('Δ', 'Change from sample to sample', () => change(app, key, 'delta')) : null,
    item.counter ? button('Δ/s', 'Change per second', () => change(app, key, 'rate')) : null,
  ];
}

/**
 * @param {App} app
 * @param {string} key
 */
export function grow(app, key) {
  const now = app.arrangement.heights[key] ?? 1;
  const next = HEIGHTS[(HEIGHTS.indexOf(now) + 1) % HEIGHTS.length];
  app.arrange({ heights: { ...app.arrangement.heights, [key]: next } });
}

/**
 * @param {App} app
 * @param {Item} item
 * @param {number} way
 */
function shift(app, item, way) {
  const beside = (/** @type {Item} */ one) => one.pinned || (one.group === item.group && source(one) === source(item));
  const same = app.layout.items.filter((one) => one.type !== 'group' && one.pinned === item.pinned && beside(one));
  const at = same.findIndex((one) => one.key === item.key);
  const other = same[at + way];
  if (!other) return;
  if (item.pinned) {
    const keys = same.map((one) => one.key);
    [keys[at], keys[at + way]] = [keys[at + way], keys[at]];
    app.arrange({ pinned: keys });
    return;
  }
  const keys = same.map((one) => one.key);
  [keys[at], keys[at + way]] = [keys[at + way], keys[at]];
  app.arrange({ order: [...app.arrangement.order.filter((one) => !keys.includes(one)), ...keys] });
}

/** @param {Item} item */
function source(item) {
  return (item.track ?? item.counter)?.source;
}
