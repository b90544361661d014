/** A titled part of a page, which may show its content as a chart or as a table. */

import { h, put } from '../core/dom.js';
import { prose } from '../core/text.js';

let made = 0;

/**
 * @param {string} title
 * @param {{note?: string|null, class?: string, actions?: Node[], part?: string}|null} options `part` is what a place
 *   may call it
 * @param {...(Node|string|null|false|Node[])} content
 */
export function panel(title, options, ...content) {
  const id = `panel-${++made}`;
  return h(
    'section',
    { class: `panel ${options?.class ?? ''}`, 'aria-labelledby': id, 'data-part': options?.part },
    h('header', null, h('h2', { id }, title), h('div', { class: 'actions' }, options?.actions ?? [])),
    options?.note ? h('p', { class: 'note' }, ...prose(options.note)) : null,
    ...content,
  );
}

/**
 * A chart whose reader may have the same values as a table.
 * @param {string} title
 * @param {{note?: string|null, class?: string, actions?: Node[]}|null} options
 * @param {() => Node} chart
 * @param {() => Node} table
 */
export function charted(title, options, chart, table) {
  const body = h('div', { class: 'body' }, chart());
  const toggle = h(
    'button',
    {
      type: 'button',
      'aria-pressed': 'false',
      onclick: () => {
        const asTable = toggle.getAttribute('aria-pressed') !== 'true';
        toggle.setAttribute('aria-pressed', String(asTable));
        put(body, asTable ? table() : chart());
      },
    },
    'Table',
  );
  return panel(title, { ...options, actions: [...(options?.actions ?? []), toggle] }, body);
}

/**
 * What stands where a page has no data: what is missing and what would record it.
 * @param {string} text
 * @param {(Node|string)[]} [cure]
 */
export function missing(text, cure = []) {
  return h('div', { class: 'missing' }, h('p', null, text), cure.length ? h('p', null, ...cure) : null);
}
