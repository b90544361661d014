/** When and why the device was idle, and what the host waited for. */

import { h } from '../core/dom.js';
import { ABSENT, formatNs } from '../core/units.js';
import { device, named, ns, where, word } from '../widgets/columns.js';
import { declared } from '../widgets/declared.js';
import { pickDevice } from '../widgets/devices.js';
import { traceParams } from '../widgets/finding.js';
import { hbar, swatch } from '../widgets/hbar.js';
import { panel } from '../widgets/panel.js';
import { OF_STEPS } from '../widgets/scope.js';
import { chosenRows, meanParts } from '../widgets/steps.js';
import { table } from '../widgets/table.js';

/** @typedef {import('../core/types.js').Context} Context */
/** @typedef {import('../core/document.js').Gap} Gap */

/** @param {Context} context */
export function idleBy(context) {
  const { report, words } = context;
  const used = (report.analyses.breakdown ?? []).filter((one) => !one.unused);
  if (!used.length) return null;
  const ids = used.map((one) => one.device);
  const { device: picked, actions } = pickDevice(context, 'kernels', ids, 'Device: idle time');
  const entry = used.find((one) => one.device === picked) ?? used[0];
  const all = context.place.steps ? meanParts(chosenRows(context, entry.device)) : entry.parts;
  const parts = all.filter((part) => !words.categories[part.category].busy && part.ns_per_step);
  if (!parts.length) return null;
  const many = report.profile.devices.length > 1 ? `, device ${entry.device}` : '';
  const total = (report.analyses.idle?.per_device ?? []).find((one) => one.device === entry.device);
  const note = context.place.steps ? context.scope() : total && `${formatNs(total.total_ns)} idle in the steps: ${
    formatNs(total.between_steps_ns)} before the first op of a step, ${formatNs(total.within_steps_ns)} behind it`;
  return panel(`Idle time by cause, per step${many}`, { note, class: OF_STEPS, actions },
    hbar(context, 'Idle time by cause', entry, parts.map(({ category, ns_per_step: ns_, share }) => ({
      category, ns: ns_, share }))));
}

/** @param {Context} context */
export function gaps(context) {
  const { report, words } = context;
  const all = report.analyses.idle?.gaps ?? [];
  const rows = all.filter((gap) => context.inSteps(gap.step));
  const cause = (/** @type {Gap} */ gap) => Object.keys(gap.parts).sort((a, b) => gap.parts[b] - gap.parts[a])[0];
  if (!all.length) return null;
  const { part, filter } = context.place.params;
  return panel('Longest idle gaps', { note: context.scope(), class: OF_STEPS, part: 'gaps' }, table({
    label: 'Longest idle gaps',
    rows,
    filter: part === 'gaps' ? filter : undefined,
    columns: [
      ...device(report),
      word('step', (row) => (words.steps[String(row.step)] ?? '–') + (row.crosses_step ? '+' : '')),
      ns('at', (row) => row.start_ns),
      ns('idle', (row) => row.dur_ns),
      {
        title: 'mostly',
        value: (row) => words.categories[cause(row)]?.words ?? null,
        show: (row) => h('span', { class: 'nowrap' }, h('i', { class: `swatch ${swatch(cause(row), false)}` }),
          words.categories[cause(row)]?.words ?? ABSENT),
      },
      named('first op after it', (row) => row.op),
      named('the host is in', (row) => row.blocking ?? row.launch),
      where('where', (row) => row.where),
    ],
    onRow: (row) => context.go('trace', traceParams(row.start_ns, row.dur_ns, null)),
    rowLabel: 'Trace',
  }));
}

/** @param {Context} context */
export function syncs({ report }) {
  const rows = report.analyses.syncs ?? [];
  if (!rows.length) return null;
  return panel('Waits of the host for the device, per step', null, table({
    label: 'Waits of the host for the device',
    rows,
    columns: [
      ...declared('Sync', report, { op: (row) => row.op ?? row.call }),
      named('why', (row) => row.cause),
    ],
  }));
}

/** @param {Context} context */
export function delays({ report }) {
  const rows = report.analyses.launch_delay ?? [];
  if (!rows.length) return null;
  return panel('From launch to start', { note: 'where nothing was queued' }, table({
    label: 'From launch to start',
    rows,
    columns: [
      ...declared('LaunchDelay', report),
    ],
  }));
}
