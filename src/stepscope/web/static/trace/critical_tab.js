/** The critical path: what sets the step time, by kind and by element, with what a step gains without each. */
import { h } from '../core/dom.js';
import { formatNs, formatShare } from '../core/units.js';
import { declared } from '../widgets/declared.js';
import { table } from '../widgets/table.js';
import { inQuery } from './details_tab.js';
import { cutMiddle } from './names.js';

/** @typedef {import('./app.js').App} App */
/** @typedef {import('../core/document.js').CriticalPath} CriticalPath */
/** @typedef {import('../core/document.js').CriticalElement} CriticalElement */

const MOST_CHARACTERS = 72;

/** @param {App} app */
export async function criticalTab(app) {
  /** @type {CriticalPath|undefined} */
  const path = app.report?.analyses?.critical_path;
  const { parts } = path ?? {};
  if (!path || !parts || !path.total_ns) {
    const why = path?.why_not ?? 'no device was recorded';
    return [h('p', { class: 'tv-dim' }, `The critical path is not known, because ${why}.`)];
  }
  const { total_ns: total, steps } = path;
  const label = labels(app);
  const told = Object.entries(parts).map(([category, ns]) => (
    `${label.get(category) ?? category} ${formatShare(ns / total)}`)).join(' · ');
  const [named, ...others] = declared('CriticalElement', app.report, {
    name: (row) => row.name ?? label.get(row.category) ?? row.category,
    category: (row) => label.get(row.category) ?? row.category,
  });
  const show = (/** @type {CriticalElement} */ row) => h('button', { type: 'button', class: 'tv-link',
    title: String(named.value(row)), onclick: () => find(app, row, label) },
  cutMiddle(String(named.value(row)), MOST_CHARACTERS));
  return [
    h('p', null, h('strong', null, formatNs(total)), ` in ${steps === 1 ? 'one step' : `${steps} steps`}: ${told}`),
    table({
      label: 'Elements of the critical path',
      rows: path.ops,
      columns: [{ ...named, show }, ...others],
    }),
  ];
}

/** The words of categories. @param {App} app @returns {Map<string, string>} */
function labels({ meta }) {
  return new Map(meta.sources[0].header.categories.map((/** @type {{name: string, label: string}} */ one) => (
    [one.name, one.label])));
}

/**
 * Every place of an element on the track, the first of them in sight.
 * @param {App} app
 * @param {CriticalElement} element
 * @param {Map<string, string>} label
 */
async function find(app, element, label) {
  const name = element.name ?? label.get(element.category) ?? element.category;
  await app.search(`kind:critical cat:${element.category} ${inQuery(name)}`);
  await app.go('hit', 1);
}
