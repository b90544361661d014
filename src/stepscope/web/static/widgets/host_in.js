/** What the host was in during the longest gaps of the device: evidence of waiting that no remedy was found for. */

import { h } from '../core/dom.js';
import { locator, name, placeName } from '../core/text.js';
import { formatNs } from '../core/units.js';
import { traceParams } from './finding.js';
import { linkTo } from './made_of.js';

/** @typedef {import('../core/types.js').Context} Context */
/** @typedef {Pick<import('../core/document.js').Gap, 'start_ns'|'dur_ns'|'blocking'|'launch'|'where'>} Gap */
/** @typedef {{call: string, place: string|null, ns: number, count: number, longest: Gap}} Held */

const SHOWN = 3;

/**
 * The calls that the most of this time passed in, each with its place and the way to its longest gap; null where no gap
 * tells one.
 * @param {Context} context
 */
export function hostIn(context) {
  const gaps = context.report.analyses.idle?.gaps ?? [];
  const calls = held(gaps.filter((gap) => context.inSteps(gap.step))).slice(0, SHOWN);
  if (!calls.length) return null;
  return h('div', { class: 'host-in' }, h('p', null, 'While the device waited longest, the host was in:'),
    h('ul', { class: 'plain' }, calls.map(({ call, place, ns, count, longest }) => h('li', null,
      name(call), place ? [' at ', placeName(place)] : null, `: ${formatNs(ns)} in ${count} ${
        count > 1 ? 'gaps' : 'gap'}`,
      context.hasTrace(null) ? [' · ', linkTo(context,
        { page: 'trace', params: traceParams(longest.start_ns, longest.dur_ns, null) }, {},
        'longest in trace')] : null))),
    linkTo(context, { page: 'kernels', params: { part: 'gaps' } }, {}, 'All long gaps'));
}

/**
 * Gaps by what the host was in and where, the longest in all first.
 * @param {Gap[]} gaps
 * @returns {Held[]}
 */
export function held(gaps) {
  /** @type {Map<string, Held>} */
  const known = new Map();
  for (const gap of gaps) {
    const [call, place] = [gap.blocking ?? gap.launch, locator(gap.where)];
    if (!call) continue;
    const key = JSON.stringify([call, place]);
    const one = known.get(key) ?? { call, place, ns: 0, count: 0, longest: gap };
    known.set(key, { ...one, ns: one.ns + gap.dur_ns, count: one.count + 1,
      longest: gap.dur_ns > one.longest.dur_ns ? gap : one.longest });
  }
  return [...known.values()].sort((a, b) => b.ns - a.ns);
}
