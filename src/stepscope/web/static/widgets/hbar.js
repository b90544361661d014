/** One bar of parts across the page, with its legend as the table alternative beside it; each part leads to its own. */

import { h } from '../core/dom.js';
import { formatNs, formatShare } from '../core/units.js';
import { linkTo, madeOf } from './made_of.js';

/** @typedef {import('../core/types.js').Context} Context */
/** @typedef {import('./made_of.js').Lane} Lane */
/** @typedef {{category: string, ns: number, share: number}} Part */

/**
 * @param {Context} context
 * @param {string} label
 * @param {Lane} of whose time it is
 * @param {Part[]} parts
 */
export function hbar(context, label, of, parts) {
  const { categories } = context.words;
  const shown = parts.filter((part) => part.ns > 0);
  const isBusy = (/** @type {Part} */ { category }) => categories[category]?.busy ?? true;
  return h(
    'div',
    null,
    // Each part is in the legend too, with its link: there by keyboard, here by mouse.
    h('div', { class: 'hbar', role: 'img', 'aria-label': `${label}; the list below has the values` },
      shown.map((part) => segment(context, of, part))),
    h(
      'div',
      { class: 'legend' },
      legend(context, 'works', of, shown.filter(isBusy)),
      legend(context, 'waits', of, shown.filter((part) => !isBusy(part))),
    ),
  );
}

/** @param {Context} context @param {Lane} of @param {Part} part */
function segment(context, of, { category, ns, share }) {
  const to = madeOf(context, category, of);
  return h('i', {
    class: `swatch ${swatchOf(context, category)} ${to ? 'leads' : ''}`,
    style: { 'flex-grow': String(share) },
    title: `${wordsOf(context, category)}: ${formatNs(ns)}, ${formatShare(share)}`,
    onclick: to ? () => context.go(to.page, to.params) : null,
  });
}

/** @param {Context} context @param {string} title @param {Lane} of @param {Part[]} parts */
function legend(context, title, of, parts) {
  if (!parts.length) return null;
  return h(
    'table',
    { 'aria-label': title },
    h('caption', null, title),
    parts.map(({ category, ns, share }) => h(
      'tr',
      null,
      h('td', null, h('i', { class: `swatch ${swatchOf(context, category)}` }), entry(context, of, category)),
      h('td', { class: 'num' }, formatNs(ns)),
      h('td', { class: 'num' }, formatShare(share)),
    )),
  );
}

/**
 * The name of a category as a link to what it is made of.
 * @param {Context} context
 * @param {Lane} of
 * @param {string} category
 */
export function entry(context, of, category) {
  const to = madeOf(context, category, of);
  const text = wordsOf(context, category);
  return to ? linkTo(context, to, { class: 'leads' }, text) : text;
}

/** @param {Context} context @param {string} category */
function wordsOf({ words }, category) {
  return words.categories[category]?.words ?? category;
}

/** @param {Context} context @param {string} category */
function swatchOf({ words }, category) {
  return swatch(category, words.categories[category]?.busy ?? true);
}

/**
 * The class that colours a category.
 * @param {string} category
 * @param {boolean} busy
 */
export function swatch(category, busy) {
  return `cat-${category}${busy ? '' : ' waits'}`;
}
