/** Where the time of a category comes from: the list, page or slices that a part of a bar leads to. */

import { written } from '../core/router.js';
import { h } from '../core/dom.js';

/** @typedef {import('../core/types.js').Context} Context */
/** @typedef {import('../core/types.js').Place} Place */
/** @typedef {{rank?: number|null, device: number|null}} Lane */

const COLLECTIVES = ['collective', 'collective_transfer', 'collective_wait'];
const ON_DEVICE = ['compute', 'memset', 'copy_h2d', 'copy_d2h', 'copy_d2d', 'copy_p2p'];
const ON_HOST = ['host_compute', 'python'];

/**
 * The page, and what it is asked to show, for a category of a bar; null where nothing lists it.
 * @param {Context} context
 * @param {string} category
 * @param {Lane} of whose time the bar is
 * @returns {{page: string, params: Record<string, string>}|null}
 */
export function madeOf(context, category, { device }) {
  const { report, words } = context;
  if (report.analyses.ranks) return { page: 'ranks', params: { show: category } };
  if (COLLECTIVES.includes(category)) return { page: 'ranks', params: {} };
  if (device !== null && hasGaps(report, category)) {
    return { page: 'kernels', params: { part: 'gaps', filter: words.categories[category].words } };
  }
  if (ON_DEVICE.includes(category) && report.analyses.kernels) return { page: 'kernels', params: {} };
  if (category === 'input' && device === null) return { page: 'input', params: {} };
  if (device === null && ON_HOST.includes(category)) return { page: 'ops', params: {} };
  return context.hasTrace(null) ? { page: 'trace', params: inTrace(context, category) } : null;
}

/**
 * A link to it: by mouse and keyboard, and in a new tab where the page has an address.
 * @param {Context} context
 * @param {{page: string, params: Record<string, string>}} to
 * @param {Record<string, unknown>} props
 * @param {...(Node|string)} content
 */
export function linkTo(context, to, props, ...content) {
  const { place } = context;
  const steps = place.steps && /** @type {[number, number]} */ ([...place.steps]);
  return h('a', { href: written({ ...place, ...to, steps }), ...props, onclick: (/** @type {MouseEvent} */ event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault(); // In a frame without an address a fragment would leave the page.
    context.go(to.page, to.params);
  } }, ...content);
}

/** Whether a listed gap is mostly this. @param {import('../core/types.js').Report} report @param {string} category */
function hasGaps(report, category) {
  return (report.analyses.idle?.gaps ?? []).some(({ parts }) => (
    Object.keys(parts).every((other) => parts[category] >= parts[other])));
}

/** @param {Context} context @param {string} category */
function inTrace({ report, place }, category) {
  const [first, last] = (place.steps ?? [0, report.steps.length - 1]).map((at) => report.steps[at]);
  return {
    ...(first ? { start: String(first.start_ns), end: String(last.start_ns + last.dur_ns) } : {}),
    find: `cat=${category}`,
  };
}
