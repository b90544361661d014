/** What happened in the selected range: what devices' time was booked to, and sums per track and name. */
import { copyText, download, h } from '../core/dom.js';
import { formatCount, formatNs, formatShare } from '../core/units.js';
import { csv, table } from '../widgets/table.js';
import { ownTime } from './clock.js';
import { counted } from './units.js';

/** @typedef {import('./app.js').App} App */
/** @typedef {import('./app.js').Area} Area */
/** @typedef {import('./client.js').Answer<'area'>} Ranged */
/** @typedef {import('./aggregate.js').NameSum & {track: string, share: number}} Row */

const COLUMNS = /** @type {import('../widgets/table.js').Column<Row>[]} */ ([
  { title: 'Track', value: (row) => row.track },
  { title: 'Name', value: (row) => row.name, wide: true },
  { title: 'Kind', value: (row) => row.kind.replaceAll('_', ' ') },
  { title: 'Self', value: (row) => row.self, show: (row) => formatNs(row.self), numeric: true },
  { title: 'Of range', value: (row) => row.share, show: (row) => formatShare(row.share), numeric: true },
  { title: 'Total', value: (row) => row.total, show: (row) => formatNs(row.total), numeric: true },
  { title: 'Count', value: (row) => row.count, show: (row) => formatCount(row.count), numeric: true },
  { title: 'Median, uncut', value: (row) => row.p50, show: (row) => formatNs(row.p50), numeric: true },
  { title: '99 %, uncut', value: (row) => row.p99, show: (row) => formatNs(row.p99), numeric: true },
  { title: 'Largest, uncut', value: (row) => row.max, show: (row) => formatNs(row.max), numeric: true },
]);

const CUT = 'Self and total are cut at the ends of the range; median, 99 % and largest are those of whole slices.';
/** Shown behind what was recorded of devices and threads. */
const LAST = ['idle', 'steps', 'phases', 'annotations', 'scopes', 'other', 'found'];

/** @param {App} app */
export async function areaTab(app) {
  const { area } = app;
  if (!area) {
    return [h('p', { class: 'tv-dim' },
      'No range is selected. Drag with Shift, or press E: the selected slice\'s, or all that is in sight.')];
  }
  const answer = await app.ask('area', area);
  const span = area.end - area.begin;
  return [
    h('div', { class: 'tv-actions' },
      h('strong', null, formatNs(span)), h('span', { class: 'tv-dim' },
        ` from ${formatNs(area.begin - app.meta.begin)}, ${area.tracks.length} tracks`),
      h('button', { type: 'button', onclick: () => app.view.fit(area.begin, area.end, 0.02) }, 'Zoom to it'),
      h('button', { type: 'button', onclick: () => app.open('flame') }, 'Flame graph'),
      exports(app, area)),
    h('div', { class: 'tv-columns' }, answer.devices.map((device) => parts(app, device, span)),
      tracks(app, answer, span)),
    table({ label: 'Slices in the range', rows: rowsOf(app, answer, span), columns: COLUMNS, note: CUT }),
  ];
}

/**
 * @param {App} app
 * @param {Ranged} answer
 * @param {number} span
 */
function rowsOf(app, answer, span) {
  const place = (/** @type {Ranged['sums'][number]} */ sum) => LAST.indexOf(app.meta.tracks[sum.track].type);
  const sorted = [...answer.sums].sort((a, b) => place(a) - place(b));
  return sorted.flatMap((sum) => sum.names.map((name) => ({
    ...name, track: trackName(app, sum.track), share: name.self / span })));
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
 * @param {Ranged['devices'][number]} device
 * @param {number} span
 */
function parts(app, device, span) {
  const told = device.parts.reduce((sum, part) => sum + part.ns, 0);
  const rest = { label: 'outside of what was recorded', ns: span - told };
  const rows = told < span ? [...device.parts, rest] : device.parts;
  return h('section', null,
    h('h4', null, [app.sourceLabels[device.source], device.group].filter(Boolean).join(' · ')),
    h('dl', null, rows.flatMap((part) => [h('dt', null, part.label),
      h('dd', null, `${formatNs(part.ns)} (${formatShare(part.ns / span)})`)])));
}

/**
 * @param {App} app
 * @param {Ranged} answer
 * @param {number} span
 */
function tracks(app, answer, span) {
  return h('section', null, h('h4', null, 'Tracks'), h('dl', null, answer.sums.slice(0, 40).flatMap(
    (sum) => [h('dt', null, trackName(app, sum.track)),
      h('dd', null, `${counted(sum.count, 'slice')}, ${formatShare(sum.busy / span)} covered`)])));
}

/**
 * @param {App} app
 * @param {Area} area
 */
function exports(app, area) {
  const button = (/** @type {string} */ text, /** @type {() => void} */ act, /** @type {string} */ title = '') => (
    h('button', { type: 'button', title, onclick: act }, text));
  const every = () => app.ask('area', { ...area, most: Infinity });
  const json = async () => jsonOf(app, area, await every());
  const perfetto = async () => {
    const { text, left } = await app.ask('events', area);
    download('selection.trace.json', text, 'application/json');
    app.say(left ? `${formatCount(left)} slices found no room in the file` : 'The file opens in Perfetto');
  };
  const python = pythonOf(app, area);
  return h('span', { class: 'tv-actions' },
    button('Copy JSON', async () => copyText(await json())),
    button('Save JSON', async () => download('selection.json', await json(), 'application/json')),
    button('Save CSV', async () => download('selection.csv',
      csv(COLUMNS, rowsOf(app, await every(), area.end - area.begin)), 'text/csv')),
    button('Save picture', () => app.picture(), 'What is in sight, with the selection'),
    button('File for Perfetto', perfetto, 'ui.perfetto.dev draws it whole; stepscope diagnose reads it'),
    button('Copy Python', () => copyText(python), python),
    button('Copy command', () => copyText(commandOf(app, area))));
}

/**
 * @param {App} app
 * @param {Area} area
 * @param {Ranged} answer
 */
function jsonOf(app, area, answer) {
  const sums = answer.sums.map((sum) => ({ ...sum, track: trackName(app, sum.track),
    type: app.meta.tracks[sum.track].type }));
  return JSON.stringify({ begin: area.begin, end: area.end, devices: answer.devices, tracks: sums });
}

/**
 * Per run in the selection its file, and the range in its own time.
 * @param {App} app
 * @param {Area} area
 */
function rangesOf({ meta }, { begin, end, tracks: chosen }) {
  const sources = [...new Set(chosen.map((number) => meta.tracks[number].source))];
  return sources.map((at) => {
    const source = meta.sources[at];
    return { file: String(source.header.files[0] ?? 'PROFILE'), begin: ownTime(source, begin),
      end: ownTime(source, end) };
  });
}

/**
 * @param {App} app
 * @param {Area} area
 */
function pythonOf(app, area) {
  const lines = rangesOf(app, area).map(({ file, begin, end }) => (
    `profile = stepscope.open(${JSON.stringify(file)})\nregion = profile.region(${begin}, ${end})\nprint(region)\n`));
  return `import stepscope\n\n${lines.join('\n')}`;
}

/**
 * @param {App} app
 * @param {Area} area
 */
function commandOf(app, area) {
  return rangesOf(app, area).map(({ file, begin, end }) => (
    `stepscope query ${quoted(file)} --time ${begin}ns:${end}ns`)).join('\n');
}

/** @param {string} text */
function quoted(text) {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
