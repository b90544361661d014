/** The ranks of one job beside each other: whom the others waited for, why, and what collectives cost. */

import { h } from '../core/dom.js';
import { visible } from '../core/text.js';
import { there } from '../core/types.js';
import { formatNs } from '../core/units.js';
import { laneName, NOT_DETERMINED } from '../widgets/lanes.js';
import { panel } from '../widgets/panel.js';
import { related, tiles } from '../widgets/related.js';
import { clocks, collectives } from './job_links.js';
import { path } from './job_path.js';
import { breakdowns, stragglers } from './job_ranks.js';
import { heat, lateSteps } from './job_steps.js';

/** @typedef {import('../core/types.js').Context} Context */

const MOST_NAMED = 64;

/** @param {Context} context */
export function job(context) {
  return h(
    'div',
    { class: 'page' },
    figures(context),
    heat(context),
    stragglers(context),
    path(context),
    breakdowns(context),
    lateSteps(context),
    collectives(context),
    clocks(context),
    unread(context),
    related(context, 'ranks'),
  );
}

/** @param {Context} context */
function figures({ report }) {
  const ranks = there(report.analyses.ranks);
  const [first] = ranks.stragglers;
  const of = ranks.world_size === null ? 'how many the job has is not recorded' : `of ${ranks.world_size}`;
  return tiles([
    ['ranks read', String(ranks.present), of],
    ranks.determined
      ? ['stragglers', String(ranks.stragglers.length), 'ranks late step after step, beyond chance']
      : ['stragglers', { untold: NOT_DETERMINED }, 'too few steps, or no clocks to compare'],
    first && ['the others wait', formatNs(first.waited_ns_per_step), `per step for ${laneName(first)}`],
  ]);
}

/** @param {Context} context */
function unread({ report }) {
  const { missing: absent, unreadable } = there(report.analyses.ranks);
  if (!absent.length && !unreadable.length) return null;
  return panel('Ranks that are not here', null, h('ul', { class: 'plain' },
    absent.length ? h('li', null, `without a profile: ${absent.slice(0, MOST_NAMED).join(', ')}`
      + `${absent.length > MOST_NAMED ? `, and ${absent.length - MOST_NAMED} more` : ''}`) : null,
    unreadable.map((one) => h('li', null, h('bdi', null, visible(`${one.path}: ${one.reason}`))))));
}
