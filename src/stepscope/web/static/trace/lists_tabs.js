/** Lists: idle gaps, hits of the search, findings, notes. */
import { h } from '../core/dom.js';
import { formatCount, formatNs } from '../core/units.js';
import { table } from '../widgets/table.js';
import { viewTime } from './clock.js';
import { trackName } from './area_tab.js';
import { link } from './details_tab.js';
import { keyOf } from './layout.js';
import { counted } from './units.js';

/** @typedef {import('./app.js').App} App */
/** @typedef {import('./navigate.js').Brief} Brief */

/** @param {App} app */
export async function gapsTab(app) {
  const range = app.area ?? app.view;
  const gaps = await app.ask('gaps', { begin: range.begin, end: range.end, device: null });
  if (!app.meta.tracks.some((track) => track.type === 'idle')) {
    const text = 'No device was recorded, so there are no gaps. Record device activity to see them.';
    return [h('p', { class: 'tv-dim' }, text)];
  }
  const name = (/** @type {Brief|null} */ one) => (one ? one.name : null);
  const to = (/** @type {Brief|null} */ one) => (one ? link(app, one) : 'not recorded');
  return [
    h('p', null, `${counted(gaps.count, 'gap')} ${app.area ? 'in the selected range' : 'in sight'}, `
      + `${formatNs(gaps.total)} in all${gaps.count > gaps.listed.length ? '; the longest are listed' : ''}.`),
    table({ label: 'Idle gaps', rows: gaps.listed, onRow: (row) => app.select(row.about, { reveal: true, tab: null }),
      rowLabel: 'Show', columns: [
        { title: 'Device', value: (row) => trackName(app, row.about.track).split(' · ').slice(0, -1).join(' · ') },
        { title: 'Duration', value: (row) => row.about.dur, show: (row) => formatNs(row.about.dur), numeric: true },
        { title: 'Start', value: (row) => row.about.start - app.meta.begin,
          show: (row) => formatNs(row.about.start - app.meta.begin), numeric: true },
        { title: 'Cause', value: (row) => row.parts.map((part) => (
          `${part.cause} ${formatNs(part.ns)}`)).join(', ') },
        { title: 'Host was in', value: (row) => name(row.during), show: (row) => to(row.during), wide: true },
        { title: 'Ended by', value: (row) => name(row.op), show: (row) => to(row.op), wide: true },
      ] }),
  ];
}

/** @param {App} app */
export async function searchTab(app) {
  const { found: hits } = app;
  const help = h('p', { class: 'tv-dim' },
    'Words, /regex/, -not, and fields: name: kind: cat: dtype: track: rank: run: step:12 dur>100us start<2s end>1s. ',
    `Kinds here: ${app.meta.kinds.join(', ')}. Example: kind:kernel -name:memcpy dur>100us`);
  if (!hits) return [help];
  if (hits.error) return [h('p', { class: 'tv-bad', role: 'alert' }, hits.error), help];
  return [
    hits.unknown.length ? h('p', { class: 'tv-warn', role: 'note' },
      `${hits.unknown.join(', ')}: no field of that name, so it was looked for in the names.`) : null,
    h('p', null, sums(hits), hits.count > hits.listed.length ? '; the longest are listed.' : '.'),
    hits.count ? null : help,
    table({ label: 'Hits', rows: hits.listed, onRow: (row) => app.select(row, { reveal: true, tab: null }),
      rowLabel: 'Show', columns: [
        { title: 'Name', value: (row) => row.name, wide: true },
        { title: 'Kind', value: (row) => row.kind.replaceAll('_', ' ') },
        { title: 'Duration', value: (row) => row.dur, show: (row) => formatNs(row.dur), numeric: true },
        { title: 'Start', value: (row) => row.start - app.meta.begin,
          show: (row) => formatNs(row.start - app.meta.begin), numeric: true },
        { title: 'Track', value: (row) => trackName(app, row.track) },
      ] }),
    hits.names.length > 1 ? h('details', { class: 'tv-sums' }, h('summary', null, 'By name'), table({
      label: 'Hits by name', rows: hits.names, columns: [
        { title: 'Run', value: (row) => (hits.runs.length > 1 ? row.run : '') },
        { title: 'Name', value: (row) => row.name, wide: true },
        { title: 'Kind', value: (row) => row.kind.replaceAll('_', ' ') },
        { title: 'Count', value: (row) => row.count, show: (row) => formatCount(row.count), numeric: true },
        { title: 'Total', value: (row) => row.total, show: (row) => formatNs(row.total), numeric: true },
      ] })) : null,
  ];
}

/**
 * How many slices were found and how long they are together, of several runs each by itself.
 * @param {import('./app.js').Found} found
 */
export function sums({ count, total, runs }) {
  const told = (/** @type {{count: number, total: number}} */ one) => (
    `${counted(one.count, 'slice')}, ${formatNs(one.total)}`);
  const parts = runs.filter((run) => run.count);
  if (parts.length < 2) return `${told({ count, total })} in all`;
  return parts.map((run) => `${run.label}: ${told(run)}`).join('; ');
}

/** @param {App} app */
export async function findingsTab(app) {
  const rows = app.meta.sources.flatMap((source, at) => source.header.findings.map((finding) => (
    { ...finding, at, run: source.label })));
  if (!rows.length) return [h('p', { class: 'tv-dim' }, 'Nothing was found that costs time in every step.')];
  return rows.map((finding) => h('div', { class: 'tv-finding' },
    h('button', { type: 'button', class: 'tv-link',
      onclick: (/** @type {Event} */ event) => (
        app.goToPage(event.target, finding.at, { page: 'overview', finding: finding.id })) },
    [finding.run, finding.title].filter(Boolean).join(': ')),
    h('ul', { class: 'tv-stack' }, finding.evidence.map((piece) => (
      h('li', null, h('button', { type: 'button', class: 'tv-link',
        onclick: () => evidence(app, finding.at, piece) }, piece.name.slice(0, 160)),
      h('span', { class: 'tv-dim' }, ` ${formatNs(piece.end_ns - piece.start_ns)}`))))),
    finding.evidence.length ? null : h('span', { class: 'tv-dim' }, 'shown by sums, not by a single place')));
}

/**
 * @param {App} app
 * @param {number} source
 * @param {import('./pack.js').Piece} piece
 */
async function evidence(app, source, piece) {
  const start = viewTime(app.meta.sources[source], piece.start_ns);
  // A track's place among those of its own run.
  const track = piece.track === null ? null
    : app.meta.tracks.filter((one) => one.source === source)[piece.track] ?? null;
  const dur = piece.end_ns - piece.start_ns;
  const slice = await app.ask('locate', { start, dur, name: piece.name, track: track?.id ?? null, source });
  if (track) app.arrange({ pinned: [...new Set([...app.arrangement.pinned, keyOf(track)])] });
  app.view.fit(start, start + Math.max(dur, 1), 1);
  if (slice) app.select(slice, { reveal: true, tab: null });
  app.measure = { begin: start, end: start + dur };
  app.emit('area');
}
