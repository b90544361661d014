/** One tooltip for all charts; the same text goes to screen readers through the live region. */

import { h, put } from '../core/dom.js';

/** @type {HTMLElement|null} */
let box = null;

/**
 * @param {(Node|string)[]} content
 * @param {number} x of the pointer, in the window
 * @param {number} y
 */
export function showTip(content, x, y) {
  if (!box) {
    box = h('div', { class: 'tip', role: 'tooltip', 'aria-hidden': 'true' });
    document.body.append(box);
  }
  put(box, content);
  box.hidden = false;
  const { offsetWidth, offsetHeight } = box;
  const left = x + 14 + offsetWidth > innerWidth ? x - offsetWidth - 10 : x + 14;
  const top = y + 16 + offsetHeight > innerHeight ? y - offsetHeight - 10 : y + 16;
  box.style.left = `${Math.max(4, left)}px`;
  box.style.top = `${Math.max(4, top)}px`;
}

export function hideTip() {
  if (box) box.hidden = true;
}

/**
 * Lines of a tooltip: a title and pairs, each with the swatch of its category where it has one.
 * @param {string} title
 * @param {{label: string, value: string, swatch?: string}[]} pairs
 */
export function tipLines(title, pairs) {
  return [
    h('b', null, title),
    h(
      'table',
      null,
      pairs.map(({ label, value, swatch }) =>
        h(
          'tr',
          null,
          h('td', null, swatch ? h('i', { class: `swatch ${swatch}` }) : '', label),
          h('td', { class: 'num' }, value),
        ),
      ),
    ),
  ];
}
