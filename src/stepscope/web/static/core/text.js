/** Untrusted text made safe to look at, and prose with its code. */

import { h } from './dom.js';

const NOT_SHOWN = /[\p{C}\p{Zl}\p{Zp}]|(?! )\p{Zs}/gu;
const LONGEST = 8192;
/** Characters of a name that a page shows; the rest of it is in copies and downloads. */
export const LONGEST_NAME = 400;
const LONGEST_PLACE = 56;

/**
 * Every character that acts on the text around it, or is not shown, as an escape: controls, bidirectional overrides,
 * zero-width characters, halves of surrogate pairs.
 * @param {string} text
 */
export function visible(text) {
  return text.replace(NOT_SHOWN, (part) => {
    const code = /** @type {number} */ (part.codePointAt(0));
    const named = { 9: '\\t', 10: '\\n', 13: '\\r' }[code];
    if (named) return named;
    if (code < 0x100) return `\\x${code.toString(16).padStart(2, '0')}`;
    if (code < 0x10000) return `\\u${code.toString(16).padStart(4, '0')}`;
    return `\\U${code.toString(16).padStart(8, '0')}`;
  });
}

/**
 * A name of bounded length: what is too long loses its middle.
 * @param {string} text
 * @param {number} [most]
 */
export function shorten(text, most = LONGEST_NAME) {
  const shown = visible(text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text);
  if (shown.length <= most) return shown;
  const tail = Math.floor((most - 1) / 3);
  return `${shown.slice(0, most - 1 - tail)}…${shown.slice(shown.length - tail)}`;
}

/**
 * A name of a trace as an element that keeps its direction to itself; the whole of it on hover.
 * @param {string|null|undefined} text
 * @param {string} [className]
 * @param {string} [shown] what of it is seen
 */
export function name(text, className = 'name', shown) {
  if (text === null || text === undefined) return h('span', { class: 'dim' }, '–');
  return h('bdi', { class: className, title: shorten(text, 2000) }, shorten(shown ?? withoutNoise(text)));
}

/** Characters of a name that a cell has room for; names that are alike so far keep as many of the beginning, and of
 * what is before their difference. */
const [CELL, ALIKE_HEAD, ALIKE_BEFORE] = [60, 16, 6];
/** Where names differ further ahead the difference is seen anyway. */
const ALIKE = 40;

/**
 * What cells show of names that begin alike and are too long for a cell: those lose their middle, up to where they
 * differ.
 * @param {string[]} names
 * @returns {Map<string, string>} by name, of those alone
 */
export function toldApart(names) {
  const long = [...new Set(names)].map((one) => ({ text: one, shown: withoutNoise(one) }))
    .filter(({ shown }) => shown.length > CELL).sort((a, b) => (a.shown < b.shown ? -1 : 1));
  const common = long.slice(1).map(({ shown }, at) => alike(long[at].shown, shown));
  const ends = long.map((_, at) => [common[at - 1] ?? 0, common[at] ?? 0].filter((one) => one >= ALIKE));
  const from = (/** @type {number} */ at, /** @type {(...all: number[]) => number} */ pick) => (
    `${long[at].shown.slice(0, ALIKE_HEAD)}…${long[at].shown.slice(pick(...ends[at]) - ALIKE_BEFORE)}`);
  /** @type {Map<string, number>} */
  const seen = new Map();
  const first = long.map((_, at) => (ends[at].length ? from(at, Math.min) : ''));
  for (const one of first) seen.set(one.slice(0, CELL), (seen.get(one.slice(0, CELL)) ?? 0) + 1);
  return new Map(long.flatMap(({ text }, at) => (first[at]
    ? [[text, (seen.get(first[at].slice(0, CELL)) ?? 0) > 1 ? from(at, Math.max) : first[at]]] : [])));
}

/** How many characters two texts begin with alike. @param {string} a @param {string} b */
function alike(a, b) {
  let at = 0;
  while (at < a.length && a[at] === b[at]) at++;
  return at;
}

/**
 * A place of the source as `name` shows it; of a long path the end, which says more than its beginning.
 * @param {string|null} place
 */
export function placeName(place) {
  const parts = place?.split('/') ?? [];
  if (place === null || place.length <= LONGEST_PLACE || parts.length < 3) return name(place);
  let kept = parts.length - 1;
  while (kept > 1 && parts.slice(kept - 1).join('/').length < LONGEST_PLACE) kept--;
  const shown = name(`…/${parts.slice(kept).join('/')}`);
  shown.title = shorten(place, 2000);
  return shown;
}

/**
 * A C++ name without what says nothing.
 * @param {string} text
 */
export function withoutNoise(text) {
  return text.replace(/^void /, '').replaceAll('(anonymous namespace)::', '').replaceAll('> >', '>>');
}

/**
 * Prose in which `backticks` mark code; a lone backtick is text.
 * @param {string} line
 * @returns {(HTMLElement|string)[]}
 */
export function prose(line) {
  const pieces = visible(line).split('`');
  if (pieces.length % 2 === 0) pieces.splice(-2, 2, pieces.slice(-2).join('`'));
  return pieces.map((piece, at) => (at % 2 ? h('code', null, h('bdi', null, piece)) : piece));
}

/**
 * A remedy: paragraphs of prose; lines that begin with four spaces are code and keep their shape.
 * @param {string} text
 * @returns {HTMLElement[]}
 */
export function remedy(text) {
  /** @type {HTMLElement[]} */
  const made = [];
  /** @type {string[]} */
  let code = [];
  const endCode = () => {
    if (code.length) made.push(h('pre', { tabindex: 0 }, code.map((line) => visible(line)).join('\n')));
    code = [];
  };
  for (const line of text.trimEnd().split('\n')) {
    if (line.startsWith('    ')) {
      code.push(line.slice(4));
    } else {
      endCode();
      if (line.trim()) made.push(h('p', null, ...prose(line)));
    }
  }
  endCode();
  return made;
}

/**
 * One place of the source as text, the most exact locator of it.
 * @param {import('./types.js').Where|null|undefined} place
 */
export function locator(place) {
  if (!place) return null;
  if (place.file !== null) return place.line === null ? place.file : `${place.file}:${place.line}`;
  return place.function ?? place.op ?? place.module ?? place.annotation;
}
