/** Of a job: its collectives, and the clocks of its ranks that they tell. */

import { there } from '../core/types.js';
import { formatNs, formatPerStep, formatRate, formatSigned, orDash } from '../core/units.js';
import { named, ns, number, share, size, word } from '../widgets/columns.js';
import { NOT_DETERMINED, told } from '../widgets/lanes.js';
import { missing, panel } from '../widgets/panel.js';
import { table } from '../widgets/table.js';

/** @typedef {import('../core/types.js').Context} Context */
/** @typedef {import('../core/document.js').Traffic} Traffic */

/** @param {Context} context */
export function collectives({ report }) {
  const rows = report.analyses.collectives ?? [];
  if (!rows.length) {
    return panel('Collectives', null, missing('No collective was recorded by several of these ranks.'));
  }
  const link = rows.some((row) => row.link_bandwidth !== null) ? '' : ' What the link can do is not known.';
  const note = `transfer: from the last rank's arrival to the end (≤: at most); wait: of a rank for the last one.${
    link}`;
  const bound = (/** @type {Traffic} */ row, /** @type {string} */ sign) => (row.bound ? `${sign} ` : '');
  const rate = (/** @type {string} */ title, /** @type {'algorithm_bandwidth'|'bus_bandwidth'} */ key) => ({
    title,
    value: (/** @type {Traffic} */ row) => row[key],
    numeric: true,
    show: (/** @type {Traffic} */ row) => orDash(row[key], (speed) => `${bound(row, '≥')}${formatRate(speed, 'B/s')}`),
  });
  return panel('Collectives', { note }, table({
    label: 'Collectives',
    rows,
    columns: [
      word('kind', (row) => row.kind.replaceAll('_', '-')),
      named('group', (row) => row.group),
      number('ranks', (row) => row.size),
      size('size', (row) => row.bytes),
      number('per step', (row) => row.per_step, formatPerStep),
      ns('duration', (row) => row.duration_ns),
      told('wait', (row) => row.wait_ns, formatNs),
      { title: 'transfer', value: (row) => row.transfer_ns, numeric: true,
        show: (row) => (row.transfer_ns === null ? NOT_DETERMINED : `${bound(row, '≤')}${formatNs(row.transfer_ns)}`) },
      told('exposed per step', (row) => row.exposed_ns_per_step, formatNs),
      rate('algorithm', 'algorithm_bandwidth'),
      rate('bus', 'bus_bandwidth'),
      { title: 'link', value: (row) => row.link_bandwidth, numeric: true,
        show: (row) => orDash(row.link_bandwidth, (value) => formatRate(value, 'B/s')) },
      share('of the link', (row) => row.link_share),
      number('most uneven', (row) => row.imbalance, (value) => `${value.toFixed(2)} ×`),
    ],
  }));
}

/** @param {Context} context */
export function clocks({ report }) {
  const ranks = there(report.analyses.ranks);
  if (ranks.clocks.length < 2) return null;
  const note = 'what to add to a rank\'s clock to have the first one\'s, learnt from collectives that end together';
  return panel('Clocks', { note }, table({
    label: 'Clocks',
    rows: ranks.clocks,
    columns: [
      number('rank', (row) => row.rank, String),
      told('offset', (row) => row.offset_ns, formatSigned),
      told('uncertainty', (row) => row.uncertainty_ns, (value) => `± ${formatNs(value)}`),
      told('drift', (row) => row.drift, (value) => `${formatSigned(Math.round(value * 1e9))}/s`),
      number('collectives', (row) => row.collectives),
    ],
  }));
}
