/** Where a chart is read: the pointer and keys choose what is told, Enter or a click opens it, Escape leaves. */

import { h } from '../core/dom.js';

/**
 * @param {{
 *   class: string,
 *   style?: Record<string, string>,
 *   label: string,
 *   hover: (event: PointerEvent) => void,
 *   leave: () => void,
 *   move: (key: string) => boolean,
 *   open?: () => boolean,
 * }} given `label` says what the keys do; `move`: whether the key has chosen something; `open`: whether what is chosen
 *   was opened.
 * @param {...(import('../core/dom.js').Child)} children
 */
export function plot(given, ...children) {
  const open = given.open ?? (() => false);
  /** @param {string} key */
  const press = (key) => {
    if (key === 'Enter') return open();
    if (key !== 'Escape') return given.move(key);
    given.leave();
    return true;
  };
  return h(
    'div',
    {
      class: given.class,
      style: given.style,
      tabindex: 0,
      role: 'application',
      'aria-roledescription': 'chart',
      'aria-label': given.label,
      onpointermove: given.hover,
      onpointerleave: given.leave,
      onblur: given.leave,
      onclick: open,
      onkeydown: (/** @type {KeyboardEvent} */ event) => {
        if (press(event.key)) event.preventDefault();
      },
    },
    children,
  );
}
