import assert from 'node:assert/strict';
import { test } from 'node:test';
import { among } from '../../src/stepscope/web/static/core/source.js';
import { alignedStep, chosen } from '../../src/stepscope/web/static/pages/beside.js';
import { asked, asParams } from '../../src/stepscope/web/static/pages/trace.js';
import { emptyArrangement, textOf } from '../../src/stepscope/web/static/trace/layout.js';
import { alignments } from '../../src/stepscope/web/static/trace/model.js';
import { joinedNotes, keepNotes, keptNotes, readNotes, toldNotes } from '../../src/stepscope/web/static/trace/notes.js';
import { changedIn, matching, readArrangement, readRules, ruled } from '../../src/stepscope/web/static/trace/rules.js';

test('rules pin, hide, collapse and raise what matches, in the order they stand', () => {
  const rows = [{ key: 'a', text: textOf({ source: 0, group: 'device 0', label: 'stream 7', holds: 'H2D' }, ['']) },
    { key: 'b', text: 'device 0 stream 8' }, { key: 'c', text: 'host python' }];
  const made = ruled(emptyArrangement(), rows, [{ match: 'h2d', does: 'pin' }, { match: '^host', does: 'hide' },
    { match: 'stream', does: 'collapse' }, { match: 'stream 8', does: 'raise' }, { match: '[', does: 'hide' }]);
  assert.deepEqual(changedIn(made), { hidden: ['c'], collapsed: ['a', 'b'], heights: { b: 2 } });
  assert.deepEqual(made.pinned, ['a']);
  assert.equal(changedIn(emptyArrangement()), null);
  assert.equal(matching(rows, '['), null);
});

test('what comes from elsewhere is taken where it has the right form', () => {
  const given = [{ match: 'a', does: 'pin' }, { match: 1, does: 'pin' }, { match: 'b', does: 'run' }, null];
  assert.deepEqual(readRules(given),
    [{ match: 'a', does: 'pin' }]);
  assert.deepEqual(readRules('x'), []);
  const wild = readArrangement({ pinned: 'all', hidden: ['a'], heights: { a: 1e9 }, shared: true, extra: 1,
    filter: { toString: 'x' } });
  assert.deepEqual(wild, { ...emptyArrangement(), hidden: ['a'], shared: true });
  assert.deepEqual(readArrangement(null), emptyArrangement());
  assert.deepEqual(readNotes([[5, 9, 'x'], [5, 2, 'ends before'], ['5', null, ''], null, [7, null, 3]]),
    [{ time: 5, end: 9, text: 'x', kept: true }, { time: 7, end: null, text: '3', kept: true }]);
});

test('notes are joined without doubles, and only kept ones are told', () => {
  const [a, b] = readNotes([[5, 9, 'a'], [1, null, 'b']]);
  const now = { ...a, text: '', kept: false };
  assert.deepEqual(joinedNotes([a, now], [{ ...a }, b]).map(({ text }) => text), ['b', 'a', '']);
  assert.deepEqual(toldNotes([a, now]), [[5, 9, 'a']]);
});

test('the browser keeps the notes of the profiles looked at last', () => {
  const held = new Map();
  Object.assign(globalThis, { localStorage: { getItem: (/** @type {string} */ key) => held.get(key) ?? null,
    setItem: (/** @type {string} */ key, /** @type {string} */ value) => held.set(key, value) } });
  for (let at = 0; at < 60; at += 1) keepNotes(`profile ${at}`, readNotes([[at, null, 'n']]));
  assert.deepEqual(toldNotes(keptNotes('profile 59')), [[59, null, 'n']]);
  assert.deepEqual(keptNotes('profile 2'), []);
  keepNotes('profile 59', []);
  assert.deepEqual(keptNotes('profile 59'), []);
  held.set('stepscope-trace-notes', '{"not": "a list"}');
  assert.deepEqual(keptNotes('profile 58'), []);
  Reflect.deleteProperty(globalThis, 'localStorage');
  assert.equal(keepNotes('profile', []), false);
});

test('a view goes through the address and back; what is too long for one is left to the browser', () => {
  const state = { start_ns: 1, end_ns: 9, pin: ['0/a/b'], notes: /** @type {any} */ ([[1, 2, 'n']]),
    layout: { hidden: ['x'] }, colour: 'op-blind', find: 'kind:kernel', select: { start_ns: 1, dur_ns: 2, name: 'k' },
    track: 't' };
  const place = { page: 'trace', run: 0, steps: null, params: asParams(state) };
  assert.deepEqual(asked(place), state);
  const long = { ...state, layout: { hidden: Array.from({ length: 2000 }, (_, at) => `key ${at}`) } };
  assert.equal('layout' in asParams(long), false);
  assert.equal('layout' in asParams(long, Infinity), true);
});

test('runs are aligned by a chosen step: the one of its name, else the one in its place', () => {
  const header = (/** @type {string[]} */ names, /** @type {number} */ first) => (
    { steps: names.map((name, at) => ({ name, start_ns: first + 10 * at })), extent_ns: [first, 99], epoch_ns: null });
  const [a, b, c] = [header(['1', '2', '3'], 100), header(['2', '3', '4'], 500), header(['7', '8'], 0)];
  assert.deepEqual(alignments([a, b, c], 'steps', 1), [0, 110 - 500, 110 - 10]);
  assert.deepEqual(alignments([a, b, c], 'steps', 2), [0, 120 - 510, 120 - 10]);
  assert.deepEqual(alignments([a, header([], 40)], 'steps', 2), [0, 120 - 40]);
  const offer = { job: null, at: null, choices: [{ runs: [1, 2], text: '' }] };
  assert.deepEqual([chosen(offer, '1.2@5'), alignedStep('1.2@5'), alignedStep('1.2@x'), alignedStep('')],
    [[1, 2], 5, 0, 0]);
});

test('in a file of some runs they have other numbers', () => {
  const place = { page: 'trace', run: 7, steps: null, params: { start: '1', beside: '3.9@2' } };
  assert.deepEqual(among([3, 7, 9], place), { ...place, run: 1, params: { start: '1', beside: '0.2@2' } });
  assert.deepEqual(among([7], { ...place, params: {} }), { ...place, run: 0, params: {} });
});
