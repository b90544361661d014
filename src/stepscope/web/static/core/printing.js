/** What is printed is complete and dark on light: folds open and tables are whole for it, and as before behind it. */

import { showTheme } from './theme.js';

/** Prepare each print of the page. */
export function preparePrints() {
  /** @type {HTMLDetailsElement[]} */
  let opened = [];
  addEventListener('beforeprint', () => {
    opened = [...document.querySelectorAll('details')].filter((one) => !one.open && one.closest('main'));
    for (const one of opened) one.open = true;
    document.dispatchEvent(new CustomEvent('stepscope:whole', { detail: true }));
    showTheme('light');
  });
  addEventListener('afterprint', () => {
    for (const one of opened) one.open = false;
    opened = [];
    document.dispatchEvent(new CustomEvent('stepscope:whole', { detail: false }));
    showTheme();
  });
}
