/** Two runs against each other: what that needs. */

import { h } from '../core/dom.js';
import { missing, panel } from '../widgets/panel.js';

/** @type {import('../core/types.js').Page} */
export const compare = { id: 'compare', key: 'c', title: 'Compare', render };

/** @param {import('../core/types.js').Context} context */
function render({ run }) {
  const text = `This report holds ${run.title} by itself. A comparison needs two profiles of the same work, before and
    after a change: where the step time went, what changed, and whether it is more than noise.`;
  return h('div', { class: 'page' }, panel('Compare', null, missing(text, [
    'Pages do not compare yet; ', h('code', null, 'stepscope view BEFORE AFTER'), ' shows both, one at a time.'])));
}
