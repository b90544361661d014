/** The grid of a job's ranks and steps: of many ranks neighbours share a row, those that stand out have their own. */

import { formatNs, orDash } from '../core/units.js';
import { bands, largest, standingOut } from '../widgets/bands.js';
import { traceParams } from '../widgets/finding.js';
import { swatch } from '../widgets/hbar.js';
import { heatmap } from '../widgets/heatmap.js';
import { laneName } from '../widgets/lanes.js';
import { tipLines } from '../widgets/tip.js';

/** @typedef {import('../core/types.js').Context} Context */
/** @typedef {import('../core/types.js').AccountRow} AccountRow */
/** @typedef {import('../widgets/bands.js').Band} Band */
/** @typedef {import('../widgets/lanes.js').Lane} Lane */
/** @typedef {{row: AccountRow|null, waited: number}} Cell */
/** @typedef {{lane: Lane, cells: Map<number, Cell>}} LaneCells */
/** @typedef {{lanes: LaneCells[], columns: number[], shown: string, title: string}} Grid `shown` is what cells show */

const MOST_ROWS = 32;
/** Of more rows some are below what is seen first: those that stand out stand above all others, too. */
const ALL_SEEN = 8;
const MOST_APART = 6;

/**
 * @param {Context} context
 * @param {Grid} grid
 */
export function chart(context, grid) {
  const { lanes, columns, shown } = grid;
  const values = lanes.map(({ cells }) => columns.map((number) => valueOf(cells.get(number), shown)));
  const rows = rowsOf(values, placesNamed(context, lanes));
  const at = (/** @type {number} */ y, /** @type {number} */ x) => largest(values, rows[y], x);
  const heading = (/** @type {number} */ y, /** @type {number} */ x) => headingOf(grid, rows[y], at(y, x), x);
  const pairs = (/** @type {number} */ y, /** @type {number} */ x) => parts(context,
    lanes[at(y, x)].cells.get(columns[x]));
  const opened = (/** @type {number} */ y, /** @type {number} */ x) => {
    const { first, last } = rows[y];
    const row = lanes[at(y, x)].cells.get(columns[x])?.row;
    if (first !== last) openRanks(context, shown, `${lanes[first].lane.rank}-${lanes[last].lane.rank}`);
    else if (row && context.hasTrace(row.rank)) context.trace(row.rank, traceParams(row.start_ns, row.dur_ns, null));
  };
  const opens = rows.some((one) => one.first !== one.last || context.hasTrace(lanes[one.first].lane.rank));
  return heatmap({
    label: `Ranks and steps: ${grid.title}`,
    rows: rows.map((one) => rowName(lanes, one)),
    columns: columns.map(String),
    values: rows.map((_, y) => columns.map((_number, x) => values[at(y, x)][x])),
    colour: shown === 'waited' ? 'heat-waited' : shown === 'time' ? 'heat-time' : `cat-${shown}`,
    fromLeast: shown === 'time',
    format: formatNs,
    tell: (y, x) => tipLines(heading(y, x), pairs(y, x)),
    say: (y, x) => context.announce([heading(y, x), ...pairs(y, x).map((one) => `${one.label} ${one.value}`)]
      .join('; ')),
    strong: (y) => y < rows.length - bands(lanes.length, MOST_ROWS).length,
    ...(opens ? { open: opened } : {}),
  });
}

/**
 * The lanes of the ranks that an address chooses, `64-95`; all where it chooses none.
 * @param {LaneCells[]} lanes
 * @param {string|undefined} chosen
 */
export function lanesOf(lanes, chosen) {
  const match = /^(\d{1,9})-(\d{1,9})$/.exec(chosen ?? '');
  if (!match) return lanes;
  const kept = lanes.filter(({ lane: { rank } }) => Number(rank) >= Number(match[1])
    && Number(rank) <= Number(match[2]));
  return kept.length ? kept : lanes;
}

/** How many lanes a row of the grid stands for, at most. @param {number} count */
export function perRow(count) {
  const [band] = bands(count, MOST_ROWS);
  return band ? band.last - band.first + 1 : 1;
}

/** Whether rows that stand out are shown above all others. @param {number} count of lanes */
export function hasApart(count) {
  return count > ALL_SEEN;
}

/**
 * @param {Context} context
 * @param {string} shown
 * @param {string} ranks
 */
export function openRanks(context, shown, ranks) {
  context.go('ranks', { show: shown, ...(ranks && { ranks }) });
}

/**
 * @param {(number|null)[][]} values
 * @param {number[]} named
 * @returns {Band[]}
 */
function rowsOf(values, named) {
  const together = bands(values.length, MOST_ROWS);
  if (values.length <= ALL_SEEN) return together;
  const alone = standingOut(values, named, MOST_APART).map((place) => ({ first: place, last: place }));
  return [...alone, ...together];
}

/**
 * Places of the ranks that findings and stragglers name.
 * @param {Context} context
 * @param {LaneCells[]} lanes
 */
function placesNamed({ report }, lanes) {
  const told = [...(report.analyses.ranks?.stragglers ?? []), ...report.findings].map((one) => one.rank);
  /** @type {Set<number|null>} */
  const named = new Set(told.filter((rank) => rank !== null));
  return lanes.flatMap(({ lane }, at) => (named.has(lane.rank) ? [at] : []));
}

/** @param {LaneCells[]} lanes @param {Band} band */
function rowName(lanes, { first, last }) {
  const [from, to] = [lanes[first].lane, lanes[last].lane];
  return first === last ? laneName(from) : `ranks ${from.rank}–${to.rank}`;
}

/**
 * @param {Grid} grid
 * @param {Band} band
 * @param {number} at the lane that is told of
 * @param {number} x
 */
function headingOf({ lanes, columns }, band, at, x) {
  const one = `${laneName(lanes[at].lane)}, step ${columns[x]}: ${
    orDash(lanes[at].cells.get(columns[x])?.row?.dur_ns, formatNs)}`;
  return band.first === band.last ? one : `largest of ${rowName(lanes, band)}: ${one}`;
}

/** @param {Context} context @param {Cell|undefined} cell */
function parts({ words }, cell) {
  return [
    ...(cell?.waited ? [{ label: 'the others waited for it', value: formatNs(cell.waited) }] : []),
    ...Object.entries(cell?.row?.parts ?? {}).map(([category, value]) => ({
      label: words.categories[category].words,
      value: formatNs(value),
      swatch: swatch(category, words.categories[category].busy),
    })),
  ];
}

/** @param {Cell|undefined} cell @param {string} shown */
function valueOf(cell, shown) {
  if (!cell) return null;
  if (shown === 'waited') return cell.waited;
  return shown === 'time' ? cell.row?.dur_ns ?? null : cell.row?.parts[shown] ?? 0;
}
