/** Bars of stacked parts below each other, on one scale, with one legend. */

import { h } from '../core/dom.js';
import { visible } from '../core/text.js';
import { formatNs } from '../core/units.js';
import { entry, swatch } from './hbar.js';

/** @typedef {import('../core/types.js').Context} Context */

/**
 * @param {Context} context
 * @param {{label: string, total: number, parts: Record<string, number>}[]} rows
 */
export function compared(context, rows) {
  const { words } = context;
  const most = Math.max(1, ...rows.map((row) => row.total));
  const present = new Set(rows.flatMap((row) => Object.keys(row.parts).filter((category) => row.parts[category] > 0)));
  const shown = Object.keys(words.categories)
    .filter((category) => present.has(category))
    .sort((a, b) => Number(words.categories[b].busy) - Number(words.categories[a].busy));
  const classOf = (/** @type {string} */ category) => `swatch ${swatch(category, words.categories[category].busy)}`;
  return h(
    'div',
    null,
    h('div', { class: 'bars-below' }, rows.map((row) => [
      h('bdi', { class: 'bar-name' }, visible(row.label)),
      h('div', { class: 'bar-room' }, h(
        'div',
        { class: 'hbar', role: 'img',
          'aria-label': `${visible(row.label)}, ${formatNs(row.total)}; a table has the parts`,
          style: { width: `${(row.total / most) * 100}%` } },
        shown.filter((category) => row.parts[category] > 0).map((category) => h('i', {
          class: classOf(category),
          style: { 'flex-grow': String(row.parts[category] / row.total) },
          title: `${visible(row.label)}, ${words.categories[category].words}: ${formatNs(row.parts[category])}`,
        })),
      )),
      h('span', { class: 'num' }, formatNs(row.total)),
    ]).flat()),
    h('div', { class: 'keys flush' }, shown.map((category) =>
      h('span', null, h('i', { class: classOf(category) }), entry(context, { device: 0 }, category)))),
  );
}
