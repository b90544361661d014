/** One finding: what it saves, where it is, what to do, and what was seen. */

import { copyText, h } from '../core/dom.js';
import { name, prose, remedy, visible } from '../core/text.js';
import { formatNs } from '../core/units.js';

/** @typedef {import('../core/types.js').Finding} Finding */
/** @typedef {import('../core/types.js').Context} Context */
/** @typedef {import('../core/types.js').Evidence} Evidence */

const SEEN = 5;

/**
 * @param {number} number
 * @param {Finding} finding
 * @param {Context} context
 * @param {boolean} open whether it begins with everything shown
 */
export function findingCard(number, finding, context, open) {
  const words = context.words.findings[finding.id];
  const first = finding.evidence[0];
  return h(
    'details',
    { class: 'finding', id: `finding-${finding.id}`, open },
    h(
      'summary',
      null,
      h('span', { class: 'number' }, String(number)),
      h('span', { class: 'title' }, ...prose(finding.title)),
      h('span', { class: 'saving' }, words.saving),
      h('span', { class: 'dim' }, words.trust),
    ),
    inside(finding, context, first && context.hasTrace(finding.rank)
      ? h('button', { type: 'button', class: 'primary', onclick: () => showInTrace(context, finding, first) },
        'Show in trace')
      : null),
  );
}

/**
 * Everything of a finding whose title, first place and cure stand above already.
 * @param {Finding} finding
 * @param {Context} context
 */
export function details(finding, context) {
  const { trust } = context.words.findings[finding.id];
  return h('details', { id: `finding-${finding.id}` },
    h('summary', null, h('span', null, 'Why, the whole fix, and where it was seen'),
      h('span', { class: 'dim' }, trust)),
    inside(finding, context, h('p', { class: 'note' }, ...prose(context.words.replayed))));
}

/**
 * @param {Finding} finding
 * @param {Context} context
 * @param {Node|null} last what stands below it
 */
function inside(finding, context, last) {
  const { sites, places: told } = context.words.findings[finding.id];
  return h(
    'div',
    { class: 'inside' },
    sites.length ? places('all', sites.map(prose)) : places('where', told.map((line) => [line])),
    finding.fix ? fixed(finding.fix) : null,
    h('div', { class: 'row' }, h('b', null, 'why'), h('div', null, finding.why.split('\n').map(paragraph))),
    finding.evidence.length ? seen(finding, context) : null,
    last,
  );
}

/** @param {string} line */
function paragraph(line) {
  return h('p', null, ...prose(line));
}

/**
 * @param {string} label
 * @param {(Node|string)[][]} lines
 */
function places(label, lines) {
  if (!lines.length) return null;
  return h(
    'div',
    { class: 'row' },
    h('b', null, label),
    h('ul', { class: 'places' }, lines.map((line) =>
      h('li', null, line.map((piece) => (typeof piece === 'string' ? h('bdi', null, visible(piece)) : piece))))),
  );
}

/** @param {string} text */
function fixed(text) {
  const copy = h('button', { type: 'button', class: 'quiet', onclick: async () => {
    copy.textContent = (await copyText(text)) ? 'Copied' : 'Not allowed here';
  } }, 'Copy');
  return h('div', { class: 'row fix' }, h('b', null, 'fix'), h('div', null, ...remedy(text), copy));
}

/** @param {Finding} finding @param {Context} context */
function seen(finding, context) {
  const shown = finding.evidence.slice(0, SEEN);
  return h(
    'div',
    { class: 'row' },
    h('b', null, 'seen'),
    h('ul', { class: 'places' }, shown.map((piece) =>
      h(
        'li',
        null,
        context.hasTrace(finding.rank)
          ? h('button', { type: 'button', class: 'link', onclick: () => showInTrace(context, finding, piece) },
            formatNs(piece.dur_ns))
          : formatNs(piece.dur_ns),
        ' ',
        name(piece.name),
        ` at ${formatNs(piece.start_ns)}`,
        piece.track ? [', ', name(piece.track, 'dim')] : null,
        piece.step !== null && context.words.steps[String(piece.step)]
          ? `, step ${context.words.steps[String(piece.step)]}` : null,
      )), finding.evidence.length > SEEN
        ? h('li', { class: 'dim' }, `and ${finding.evidence.length - SEEN} more`) : null),
  );
}

/**
 * Go to the trace where a piece of evidence lies, with room around it, its track pinned.
 * @param {Context} context
 * @param {Finding} finding
 * @param {Evidence} piece
 */
export function showInTrace(context, finding, piece) {
  const { start_ns: start, dur_ns: duration, track, name: named } = piece;
  context.trace(finding.rank, { ...traceParams(start, duration, track, named),
    ...(track ? { pin: JSON.stringify([track.slice(0, 200)]) } : {}) });
}

/**
 * What the trace page is asked to show: a stretch with room around it, and what to select in it.
 * @param {number} start
 * @param {number} duration
 * @param {string|null} track
 * @param {string|null} [named]
 * @returns {Record<string, string>}
 */
export function traceParams(start, duration, track, named) {
  const room = Math.max(1000, Math.round(duration / 2));
  return {
    start: String(start - room),
    end: String(start + duration + room),
    at: String(start),
    dur: String(duration),
    ...(track === null ? {} : { track: track.slice(0, 200) }),
    ...(named ? { name: named.slice(0, 200) } : {}),
  };
}

/** Of a longer name its beginning is searched for: an address has an end. */
const LONGEST_SOUGHT = 400;

/**
 * What the trace page is asked to show: all slices of a name in the steps chosen, else in all of them.
 * @param {Context} context
 * @param {string} sought
 * @returns {Record<string, string>}
 */
export function searchParams({ report, place }, sought) {
  const { steps } = report;
  const [first, last] = (place.steps ?? [0, steps.length - 1]).map((at) => steps[at]);
  const text = sought.slice(0, LONGEST_SOUGHT).replace(/["\\]/g, '\\$&');
  return {
    ...(first ? { start: String(first.start_ns), end: String(last.start_ns + last.dur_ns) } : {}),
    find: `name${sought.length > LONGEST_SOUGHT ? ':' : '='}"${text}"`,
  };
}
