/** What is printed is complete and dark on light: folds open for it, and are as they were behind it. */

import { showTheme } from './theme.js';

/** Prepare each print of the page. */
export function preparePrints() {
  /** @type {HTMLDetailsElement[]} */
  let opened = [];
  addEventListener('beforeprint', () => {
    opened = [...document.querySelectorAll('details')].filter((one) => !one.open && one.closest('main'));
    for (const one of opened) one.open = true;
    showTheme('light');
  });
  addEventListener('afterprint', () => {
    for (const one of opened) one.open = false;
    opened = [];
    showTheme();
  });
}
