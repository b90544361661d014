/** What happened in the selected range: what devices' time was booked to, and sums per track and name. */
import { copyText, download, h } from '../core/dom.js';
import { formatCount, formatNs, formatShare } from '../core/units.js';
import { table } from '../widgets/table.js';

/** @typedef {import('./app.js').App} App */

/** @param {App} app */
export async function areaTab(app) {
  const { area } = app;
  if (!area) {
    return [h('p', { class: 'tv-dim' }, 'No range is selected. Drag with Shift, or select a slice and press E.')];
  }
  const found = await app.ask('area', area);
  const span = area.end - area.begin;
  const rows = found.sums.flatMap((/** @type {any} */ sum) => sum.names.map((/** @type {any} */ name) => ({
    ...name, track: trackName(app, sum.track), share: name.self / span })));
  return [
    h('div', { class: 'tv-actions' },
      h('strong', null, formatNs(span)), h('span', { class: 'tv-dim' },
        ` from ${formatNs(area.begin - app.meta.begin)}, ${area.tracks.length} tracks`),
      h('button', { type: 'button', onclick: () => app.view.fit(area.begin, area.end, 0.02) }, 'Zoom to it'),
      h('button', { type: 'button', onclick: () => app.open('flame') }, 'Flame graph'),
      exports(app, found)),
    h('div', { class: 'tv-columns' }, found.devices.map((/** @type {any} */ device) => parts(app, device, span)),
      tracks(app, found, span)),
    table({ label: 'Slices in the range', rows, columns: [
      { title: 'Track', value: (row) => row.track },
      { title: 'Name', value: (row) => row.name, wide: true },
      { title: 'Kind', value: (row) => row.kind.replaceAll('_', ' ') },
      { title: 'Self', value: (row) => row.self, show: (row) => formatNs(row.self), numeric: true },
      { title: 'Of range', value: (row) => row.share, show: (row) => formatShare(row.share), numeric: true },
      { title: 'Total', value: (row) => row.total, show: (row) => formatNs(row.total), numeric: true },
      { title: 'Count', value: (row) => row.count, show: (row) => formatCount(row.count), numeric: true },
      { title: 'Median', value: (row) => row.p50, show: (row) => formatNs(row.p50), numeric: true },
      { title: '99 %', value: (row) => row.p99, show: (row) => formatNs(row.p99), numeric: true },
      { title: 'Largest', value: (row) => row.max, show: (row) => formatNs(row.max), numeric: true },
    ] }),
  ];
}

/**
 * @param {App} app
 * @param {number} number
 */
export function trackName(app, number) {
  const track = app.meta.tracks[number];
  return [app.sourceLabels[track.source], track.group, track.label].filter(Boolean).join(' · ');
}

/**
 * @param {App} app
 * @param {any} device
 * @param {number} span
 */
function parts(app, device, span) {
  const told = device.parts.reduce((/** @type {number} */ sum, /** @type {any} */ part) => sum + part.ns, 0);
  const rest = { label: 'outside of what was recorded', ns: span - told };
  const rows = told < span ? [...device.parts, rest] : device.parts;
  return h('section', null,
    h('h4', null, [app.sourceLabels[device.source], device.group].filter(Boolean).join(' · ')),
    h('dl', null, rows.flatMap((/** @type {any} */ part) => [h('dt', null, part.label),
      h('dd', null, `${formatNs(part.ns)} (${formatShare(part.ns / span)})`)])));
}

/**
 * @param {App} app
 * @param {any} found
 * @param {number} span
 */
function tracks(app, found, span) {
  return h('section', null, h('h4', null, 'Tracks'), h('dl', null, found.sums.slice(0, 40).flatMap(
    (/** @type {any} */ sum) => [h('dt', null, trackName(app, sum.track)),
      h('dd', null, `${formatCount(sum.count)} slices, ${formatShare(sum.busy / span)} covered`)])));
}

/**
 * @param {App} app
 * @param {any} found
 */
function exports(app, found) {
  const area = /** @type {import('./app.js').Area} */ (app.area);
  const file = app.meta.sources[0].header.files[0] ?? 'PROFILE';
  const save = async () => {
    const { text, left } = await app.ask('events', area);
    download('selection.json', text, 'application/json');
    app.say(left ? `${formatCount(left)} slices found no room in the file` : 'The file opens in Perfetto');
  };
  const snippet = `import stepscope\nprofile = stepscope.open(${JSON.stringify(file)})\n`
    + `print(profile.region(${area.begin}, ${area.end}))\n`;
  return h('span', { class: 'tv-actions' },
    h('button', { type: 'button', onclick: () => copyText(JSON.stringify({ ...area, ...found })) }, 'Copy JSON'),
    h('button', { type: 'button', onclick: save }, 'File for Perfetto'),
    h('button', { type: 'button', title: snippet, onclick: () => copyText(snippet) }, 'Copy Python'),
    h('button', { type: 'button', onclick: () => copyText(`stepscope query ${quoted(file)} --time `
      + `${area.begin}ns:${area.end}ns`) }, 'Copy command'));
}

/** @param {string} text */
function quoted(text) {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
