/** The trace of a whole job: of some ranks on one clock, or of one. */

import { h } from '../core/dom.js';
import { missing, panel } from '../widgets/panel.js';
import { ranksTogether } from './beside.js';

/** @param {import('../core/types.js').Context} context */
export function tracesOfRanks(context) {
  const { run } = context;
  const ranks = Object.keys(run.traces).map(Number).sort((a, b) => a - b);
  const links = ranks.map((rank) => h('button', { type: 'button', onclick: () => context.ofRank(rank) },
    `Rank ${rank}`));
  const together = ranksTogether(run);
  const all = together.map(({ rank, beside, ranks: several }) => h('button', {
    type: 'button', onclick: () => context.ofRank(rank, { beside }),
  }, `Ranks ${several.join(', ')} in one view`));
  const title = together.length ? 'Ranks on one clock, or one at a time' : 'One rank at a time';
  return h('div', { class: 'page' }, panel(title, null,
    missing('Overview and Ranks show the whole job, the others what its ranks spend by name.', [run.no_pack ?? '']),
    h('div', { class: 'choices' }, all, links)));
}
