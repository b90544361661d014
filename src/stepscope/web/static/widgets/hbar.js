/** One bar of parts across the page, with its legend as the table alternative beside it. */

import { h } from '../core/dom.js';
import { formatNs, formatShare } from '../core/units.js';

/** @typedef {{words: string, swatch: string, ns: number, share: number, busy: boolean}} Part */

/**
 * @param {string} label
 * @param {Part[]} parts
 */
export function hbar(label, parts) {
  const shown = parts.filter((part) => part.ns > 0);
  return h(
    'div',
    null,
    h(
      'div',
      { class: 'hbar', role: 'img', 'aria-label': `${label}; the list below has the values` },
      shown.map((part) =>
        h('i', {
          class: `swatch ${part.swatch}`,
          style: { 'flex-grow': String(part.share) },
          title: `${part.words}: ${formatNs(part.ns)}, ${formatShare(part.share)}`,
        }),
      ),
    ),
    h(
      'div',
      { class: 'legend' },
      legend('works', shown.filter((part) => part.busy)),
      legend('waits', shown.filter((part) => !part.busy)),
    ),
  );
}

/** @param {string} title @param {Part[]} parts */
function legend(title, parts) {
  if (!parts.length) return null;
  return h(
    'table',
    { 'aria-label': title },
    h('caption', null, title),
    parts.map((part) =>
      h(
        'tr',
        null,
        h('td', null, h('i', { class: `swatch ${part.swatch}` }), part.words),
        h('td', { class: 'num' }, formatNs(part.ns)),
        h('td', { class: 'num' }, formatShare(part.share)),
      ),
    ),
  );
}

/**
 * The class that colours a category.
 * @param {string} category
 * @param {boolean} busy
 */
export function swatch(category, busy) {
  return `cat-${category}${busy ? '' : ' waits'}`;
}
