/** Findings that a page's figures are about, with a way to them. */

import { h } from '../core/dom.js';
import { prose } from '../core/text.js';
import { NOT_RECORDED } from '../core/units.js';
import { panel } from './panel.js';

/**
 * @param {import('../core/types.js').Context} context
 * @param {string} page
 */
export function related(context, page) {
  const { report, words } = context;
  const isHere = (/** @type {{id: string}} */ one) => words.findings[one.id].pages.includes(page);
  const main = report.findings.filter((one) => isHere(one) && words.told.includes(one.id));
  const minor = (report.analyses.minor_findings ?? []).filter(isHere);
  if (!main.length && !minor.length) return null;
  const line = (/** @type {import('../core/types.js').Finding} */ one, /** @type {boolean} */ open) => h(
    'li',
    null,
    open
      ? h('button', { type: 'button', class: 'link', onclick: () => context.go('overview', { finding: one.id }) },
        ...prose(one.title))
      : h('span', null, ...prose(one.title)),
    ' ',
    h('span', { class: open ? 'good' : 'dim' }, words.findings[one.id].saving),
  );
  return panel('Findings about this', null, h('ul', { class: 'plain' }, main.map((one) => line(one, true)),
    minor.map((/** @type {import('../core/types.js').Finding} */ one) => line(one, false))));
}

/** @typedef {import('../core/types.js').Untold} Untold */
/** @typedef {[string, string|Untold, string?, string?]} Told label, value, the rest and a class */
/** @typedef {Told|null|undefined|false|''|0} Tile */

/**
 * A figure, or that it was not recorded.
 * @template {number|string} T
 * @param {T|null|undefined} value
 * @param {(value: T) => string} format
 */
export function known(value, format) {
  return value === null || value === undefined ? { untold: NOT_RECORDED } : format(value);
}

/** Of a longer value the tile would be the largest thing of its row, and say least at a glance. */
const LONGEST_VALUE = 24;

/**
 * Figures in a row; below them in a line each what is not known, or is a sentence.
 * @param {Tile[]} given
 */
export function tiles(given) {
  const told = /** @type {Told[]} */ (given.filter((one) => Boolean(one)));
  const isFigure = (/** @type {Told} */ [, value]) => typeof value === 'string' && value.length <= LONGEST_VALUE;
  const text = (/** @type {Told[1]} */ value) => (typeof value === 'string' ? value : value.untold);
  const figures = told.filter(isFigure);
  const others = told.filter((one) => !isFigure(one));
  return h('div', { class: 'figures' },
    figures.length ? h('dl', { class: 'tiles' }, figures.map(([label, value, rest, className]) => h(
      'div',
      className ? { class: className } : null,
      h('dt', null, label),
      h('dd', null, text(value)),
      rest ? h('dd', { class: 'rest' }, rest) : null,
    ))) : null,
    others.length ? h('dl', { class: 'untold' }, others.map(([label, value, rest]) => h('div', null,
      h('dt', null, label), h('dd', null, text(value)), rest ? h('dd', null, rest) : null))) : null);
}
