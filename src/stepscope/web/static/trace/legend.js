/** Which colours a trace shows, and what for. */
import { sourceTint } from './colours.js';

/** @typedef {import('./model.js').Model} Model */
/** @typedef {{group: string, label: string, colour: [number, number, number]}} Entry */

const FORMATS = { title: 'Number formats', kinds: ['kernel', 'collective'] };

/**
 * What each colour of a trace stands for; names of one kind are told by their mean.
 * @param {Model} model
 * @param {import('./raster.js').Colours} colours
 * @param {import('./colours.js').Mode} mode
 * @returns {Entry[]}
 */
export function legend(model, colours, mode) {
  if (mode === 'rank') {
    return model.sources.map(({ label }, at) => (
      { group: 'Runs', label: label || 'this run', colour: sourceTint(at) }));
  }
  /** @type {Map<string, {group: string, label: string, sum: [number, number, number], count: number}>} */
  const sums = new Map();
  model.texts.forEach((_, i) => {
    const about = meaning(model, i, mode);
    if (!about) return;
    const key = `${about.group} ${about.label}`;
    const one = sums.get(key) ?? { ...about, sum: [0, 0, 0], count: 0 };
    one.sum = [one.sum[0] + colours.red[i], one.sum[1] + colours.green[i], one.sum[2] + colours.blue[i]];
    one.count += 1;
    sums.set(key, one);
  });
  return [...sums.values()].map(({ group, label, sum, count }) => ({ group, label,
    colour: /** @type {[number, number, number]} */ (sum.map((part) => Math.round(part / count))) }))
    .sort((a, b) => a.group.localeCompare(b.group) || a.label.localeCompare(b.label));
}

/**
 * @param {Model} model
 * @param {number} name
 * @param {import('./colours.js').Mode} mode
 * @returns {{group: string, label: string}|null} null where a colour says nothing but the name
 */
function meaning(model, name, mode) {
  const kind = model.kindNames[model.kinds[name]];
  if (kind === 'idle' || kind === 'cause') {
    return { group: 'Idle time, by cause', label: model.categoryList[model.categories[name]]?.label ?? 'not known' };
  }
  // On the critical path everything has the colour that it has elsewhere, as has what a query found.
  if (['critical', 'found'].includes(kind)) return null;
  if (kind === 'unrecorded') return { group: 'Slices', label: 'work that was not recorded' };
  if (kind === 'phase') return { group: 'Phases', label: model.texts[name] };
  if (mode === 'op') return null;
  if (mode === 'category') return { group: 'Slices', label: kind.replaceAll('_', ' ') };
  return FORMATS.kinds.includes(kind) ? { group: FORMATS.title, label: model.precisions[name] ?? 'not known' }
    : { group: FORMATS.title, label: 'slices that compute nothing' };
}
