/** Ranks beside each other; of one rank's report what it can say, and what more needs. */

import { h } from '../core/dom.js';
import { formatNs, formatShare } from '../core/units.js';
import { deviceBars } from '../widgets/devices.js';
import { missing, panel } from '../widgets/panel.js';
import { related, tiles } from '../widgets/related.js';
import { job } from './job.js';
import { collectives } from './job_links.js';

/** @typedef {import('../core/types.js').Context} Context */

const COLLECTIVES = ['collective', 'collective_transfer', 'collective_wait'];

/** @type {import('../core/types.js').Page} */
export const ranks = { id: 'ranks', key: 'r', title: 'Ranks', render,
  has: ({ analyses }) => Boolean(analyses.ranks || analyses.collectives) };

/** @param {Context} context */
function render(context) {
  const { profile, summary, analyses } = context.report;
  if (analyses.ranks) return job(context);
  const [rank] = profile.ranks;
  const own = rank === null ? 'a profile that does not say its rank'
    : `rank ${rank}${profile.world_size ? ` of ${profile.world_size}` : ''}`;
  const parts = COLLECTIVES.filter((category) => summary.parts_ns_per_step[category]);
  return h(
    'div',
    { class: 'page' },
    panel('Ranks', null, missing(`This report is of ${own}. Which rank is late, how ranks differ and what a collective
      waits for shows only where profiles of several ranks of the same job, over the same steps, are read together.`, [
      'Record every rank (', h('code', null, 'stepscope run'), ' in the launcher of the job does) and keep the '
      + 'profiles in one folder.'])),
    parts.length ? tiles(parts.map((category) => [
      context.words.categories[category].words,
      formatNs(summary.parts_ns_per_step[category]),
      `per step, ${formatShare(summary.parts_share[category])}`,
    ])) : null,
    analyses.collectives ? collectives(context) : null,
    deviceBars(context, 'ranks', { title: 'Collectives that nothing hides in each step', only: COLLECTIVES }),
    related(context, 'ranks'),
  );
}
