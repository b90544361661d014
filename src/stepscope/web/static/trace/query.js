/**
 * The search language: words, `-word`, `/regex/`, and fields such as `kind:` and `dur>`.
 * All must hold; `a|b` in a value is either, `name=` is the whole name.
 */
import { stepAt } from './steps.js';
import { parseNs } from './units.js';

/** @typedef {{field: string, op: string, value: string, not: boolean}} Term */
/** @typedef {{terms: Term[], error: string|null, unknown: string[]}} Query `unknown`: what looks like a field and is
 *   none, and so is text */

export const FIELDS = ['name', 'kind', 'cat', 'track', 'rank', 'run', 'step', 'dur', 'start', 'end', 'dtype'];
const NUMBERS = ['step', 'rank'];
const TERM = /(-?)(?:(\w+)(:|>=|<=|>|<|=))?(?:"((?:[^"\\]|\\.)*)"|(\/(?:[^/\\]|\\.)+\/i?)|(\S+))/g;

/**
 * @param {string} text
 * @returns {Query}
 */
export function parseQuery(text) {
  /** @type {Term[]} */
  const terms = [];
  /** @type {string[]} */
  const unknown = [];
  for (const match of text.matchAll(TERM)) {
    const [, minus, word, op, quoted, regex, plain] = match;
    const isField = word !== undefined && FIELDS.includes(word.toLowerCase());
    // `a:b` where a is no field is text, as in aten::mm.
    const value = quoted !== undefined ? quoted.replace(/\\(.)/g, '$1') : regex ?? plain;
    const term = isField
      ? { field: word.toLowerCase(), op, value, not: minus === '-' }
      : { field: 'name', op: ':', value: `${word ?? ''}${op ?? ''}${value}`, not: minus === '-' };
    const error = wrong(term);
    if (error) return { terms: [], error, unknown };
    terms.push(term);
    if (word !== undefined && !isField && !value.startsWith(':')) unknown.push(word);
  }
  return { terms, error: null, unknown };
}

/**
 * @param {Term} term
 * @returns {string|null}
 */
function wrong(term) {
  const isNumber = ['dur', 'start', 'end'].includes(term.field);
  if (isNumber && Number.isNaN(parseNs(term.value))) return `${term.value} is no time; write 100us, 2ms or 1.5s`;
  if (isNumber && term.op === ':') return `compare ${term.field} with > or <`;
  if (NUMBERS.includes(term.field) && !/^\d+$/.test(term.value)) return `${term.field} is a number: ${term.field}:3`;
  if (!isNumber && !NUMBERS.includes(term.field) && term.op !== ':' && term.op !== '=') {
    return `${term.field} is text: write ${term.field}:${term.value}`;
  }
  try {
    textTest(term.value);
  } catch {
    return `${term.value} is no regular expression`;
  }
  return null;
}

/**
 * Whether a text fits a value: a regular expression between slashes, else any of the parts between `|`, ignoring case.
 * @param {string} value
 * @returns {(text: string) => boolean}
 */
export function textTest(value) {
  const regex = /^\/(.+)\/(i?)$/.exec(value);
  if (regex) {
    const expression = new RegExp(regex[1], regex[2]);
    return (text) => expression.test(text);
  }
  const parts = value.toLowerCase().split('|').filter(Boolean);
  return (text) => {
    const low = text.toLowerCase();
    return parts.some((part) => low.includes(part));
  };
}

/**
 * What is wrong with a query for this trace: a kind that it has none of; null for nothing.
 * @param {import('./model.js').Model} model
 * @param {Query} query
 * @returns {string|null}
 */
export function unheard(model, { terms }) {
  for (const term of terms) {
    const test = ['kind', 'cat'].includes(term.field) ? ofName(model, term) : null;
    if (!test || model.texts.some((_, i) => test(i))) continue;
    return `nothing here is of the ${term.field === 'kind' ? 'kind' : 'category'} ${term.value}; there are `
      + kindsIn(model, term.field).join(', ');
  }
  return null;
}

/**
 * The kinds of a trace, or its kinds and categories.
 * @param {import('./model.js').Model} model
 * @param {string} field
 */
export function kindsIn({ kinds, kindNames, categories, categoryList }, field) {
  const names = new Set(Array.from(kinds, (kind) => kindNames[kind]));
  if (field === 'cat') for (const at of categories) if (categoryList[at]) names.add(categoryList[at].name);
  return [...names].sort();
}

/**
 * @param {string} op
 * @param {number} limit
 * @returns {(value: number) => boolean}
 */
function numberTest(op, limit) {
  if (op === '>') return (value) => value > limit;
  if (op === '>=') return (value) => value >= limit;
  if (op === '<') return (value) => value < limit;
  if (op === '<=') return (value) => value <= limit;
  return (value) => value === limit;
}

/** Kinds of slices that show others once more. */
const TWICE = ['cause', 'annotated', 'critical'];

/**
 * The slices that fit: what holds of names and tracks is asked once of each, the rest of every slice left.
 * @param {import('./model.js').Model} model
 * @param {Query} query
 * @returns {Int32Array<ArrayBuffer>} rising
 */
export function findSlices(model, { terms }) {
  return fitting(model, testsOf(model, terms));
}

/** @typedef {{names: Uint8Array, tracks: Uint8Array,
 *   each: ((i: number, track: import('./model.js').Track) => boolean)[]}} Tests 1 for the names and tracks that fit,
 *   and what is asked of every slice of those */

/**
 * @param {import('./model.js').Model} model
 * @param {Term[]} terms
 * @returns {Tests}
 */
function testsOf(model, terms) {
  const names = new Uint8Array(model.texts.length).fill(1);
  if (!terms.some(({ field }) => field === 'kind')) {
    // The causes of a gap lie inside it: it is found itself. So is an annotation where the host was in it.
    model.kinds.forEach((kind, i) => { if (TWICE.includes(model.kindNames[kind])) names[i] = 0; });
  }
  // What queries found already lies elsewhere.
  const tracks = Uint8Array.from(model.tracks, ({ type }) => Number(type !== 'found'));
  /** @type {Tests['each']} */
  const each = [];
  for (const term of terms) {
    const nameTest = ofName(model, term);
    const trackTest = ofTrack(model, term);
    if (nameTest) {
      for (let i = 0; i < names.length; i += 1) if (nameTest(i) === term.not) names[i] = 0;
    } else if (trackTest) {
      for (const track of model.tracks) if (trackTest(track) === term.not) tracks[track.number] = 0;
    } else {
      const test = ofSlice(model, term);
      each.push((i, track) => test(i, track) !== term.not);
    }
  }
  return { names, tracks, each };
}

/**
 * @param {import('./model.js').Model} model
 * @param {Tests} tests
 */
function fitting(model, { names, tracks, each }) {
  /** @type {Int32Array<ArrayBuffer>} */
  let rows = new Int32Array(1024);
  let size = 0;
  for (const lane of model.lanes) {
    if (!tracks[lane.track]) continue;
    const track = model.tracks[lane.track];
    for (let i = lane.first; i < lane.first + lane.count; i += 1) {
      if (!names[model.name[i]] || !each.every((test) => test(i, track))) continue;
      if (size === rows.length) {
        const grown = new Int32Array(size * 2);
        grown.set(rows);
        rows = grown;
      }
      rows[size] = i;
      size += 1;
    }
  }
  return rows.subarray(0, size);
}

/**
 * @param {import('./model.js').Model} model
 * @param {Term} term
 * @returns {((name: number) => boolean)|null}
 */
function ofName(model, term) {
  const test = term.op === '=' ? (/** @type {string} */ text) => text === term.value : textTest(term.value);
  if (term.field === 'name') return (i) => test(model.texts[i]);
  const ofKind = (/** @type {number} */ i) => {
    const kind = model.kindNames[model.kinds[i]];
    return test(kind) || test(kind.replaceAll('_', ' '));
  };
  if (term.field === 'kind') return ofKind;
  if (term.field === 'dtype') return (i) => test(model.precisions[i] ?? '');
  if (term.field === 'cat') {
    return (i) => {
      const { name = '', label = '' } = model.categoryList[model.categories[i]] ?? {};
      return ofKind(i) || test(name) || test(label);
    };
  }
  return null;
}

/**
 * @param {import('./model.js').Model} model
 * @param {Term} term
 * @returns {((track: import('./model.js').Track) => boolean)|null}
 */
function ofTrack(model, term) {
  if (term.field === 'track') {
    const test = textTest(term.value);
    return (track) => test(`${track.group} ${track.label} ${track.holds ?? ''}`);
  }
  if (term.field === 'run') {
    const test = textTest(term.value);
    return (track) => test(model.sources[track.source].label);
  }
  if (term.field === 'rank') {
    const test = numberTest(term.op, Number(term.value));
    return (track) => test(model.sources[track.source].header.rank ?? NaN);
  }
  return null;
}

/**
 * @param {import('./model.js').Model} model
 * @param {Term} term
 * @returns {(slice: number, track: import('./model.js').Track) => boolean}
 */
function ofSlice(model, term) {
  if (term.field === 'step') {
    const test = numberTest(term.op, Number(term.value));
    return (i, track) => test(stepAt(model, track, model.start[i]));
  }
  const test = numberTest(term.op, parseNs(term.value));
  if (term.field === 'dur') return (i) => test(model.dur[i]);
  if (term.field === 'start') return (i) => test(model.start[i]);
  return (i) => test(model.start[i] + model.dur[i]);
}
