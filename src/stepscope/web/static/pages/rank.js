/** What stands on pages that show one rank at a time where the report is a whole job's. */

import { h } from '../core/dom.js';
import { missing, panel } from '../widgets/panel.js';
import { related } from '../widgets/related.js';
import { ranksTogether } from './beside.js';

/** @param {import('../core/types.js').Context} context */
export function ofOneRank(context) {
  const { run } = context;
  const ranks = Object.keys(run.traces).map(Number).sort((a, b) => a - b);
  const links = ranks.map((rank) => h('button', { type: 'button', onclick: () => context.ofRank(rank) },
    `Rank ${rank}`));
  const together = context.place.page === 'trace' ? ranksTogether(run) : null;
  const all = together && h('button', {
    type: 'button', onclick: () => context.ofRank(together.rank, { beside: together.beside }),
  }, `Ranks ${together.ranks.join(', ')} in one view`);
  const title = together ? 'Ranks on one clock, or one at a time' : 'One rank at a time';
  return h('div', { class: 'page' }, panel(title, null,
    missing('This is looked at rank by rank; Overview and Ranks show the whole job.', [run.no_pack ?? '']),
    h('div', { class: 'choices' }, all, links)), related(context, context.place.page));
}
