/** Which figures of a page are of the chosen steps. */

import { h } from '../core/dom.js';

/** The class of a panel whose figures are of the chosen steps only. */
export const OF_STEPS = 'of-steps';

/**
 * One line that names the parts of a page that are of the chosen steps.
 * @param {Element} page
 * @param {string} scope the steps in words
 */
export function scopeNote(page, scope) {
  const titles = [...page.querySelectorAll(`.${OF_STEPS} h2`)].map((one) => `“${one.textContent}”`);
  const figures = page.querySelector(`.tiles .${OF_STEPS}`) ? ['the figures at the top that say so'] : [];
  const follow = [...figures, ...titles];
  return h('p', { class: 'note scope', role: 'note' }, follow.length
    ? `Of ${scope} only: ${follow.join(', ')}. The rest of this page is of all steps used.`
    : `You chose ${scope}, but what is here is known for all steps used together, not for each.`);
}
