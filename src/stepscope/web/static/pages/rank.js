/** What stands on pages that show one rank at a time where the report is a whole job's. */

import { h } from '../core/dom.js';
import { missing, panel } from '../widgets/panel.js';

/** @param {import('../core/types.js').Context} context */
export function ofOneRank(context) {
  const { run } = context;
  const ranks = Object.keys(run.traces).map(Number).sort((a, b) => a - b);
  const links = ranks.map((rank) => h('button', { type: 'button', onclick: () => context.ofRank(rank) },
    `Rank ${rank}`));
  return h('div', { class: 'page' }, panel('One rank at a time', null,
    missing('This is looked at rank by rank; Overview and Ranks show the whole job.', [run.no_pack ?? '']),
    h('div', { class: 'choices' }, links)));
}
