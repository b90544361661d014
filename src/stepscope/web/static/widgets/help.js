/** What the keyboard does. */

import { h } from '../core/dom.js';

/** @param {import('../core/types.js').Page[]} pages */
export function help(pages) {
  /** @type {[string, string][]} */
  const keys = [
    ...pages.map((page) => /** @type {[string, string]} */ ([`g ${page.key}`, page.title])),
    ['a', 'ask the trace'],
    ['/', 'filter the first table of the page'],
    ['← →', 'on a chart: the bar before, after; on the strip of steps: move the range, with Shift its end'],
    ['Enter', 'on a chart: open in the trace'],
    ['Esc', 'on the strip of steps: all steps'],
    ['?', 'this list'],
  ];
  const pairs = keys.flatMap(([key, what]) => [h('dt', null, h('kbd', null, key)), h('dd', null, what)]);
  const dialog = h(
    'dialog',
    { class: 'help', 'aria-label': 'Keys' },
    h('h2', { tabindex: -1 }, 'Keys'),
    h('dl', { class: 'pairs' }, pairs),
    h('p', { class: 'dim' }, 'The trace has keys of its own: press ? while it has the focus.'),
    h('button', { type: 'button', onclick: () => dialog.close() }, 'Close'),
  );
  return dialog;
}
