import assert from 'node:assert/strict';
import test from 'node:test';
import { putFound, ROOM } from '../../src/stepscope/web/static/trace/found.js';
import { readTold } from '../../src/stepscope/web/static/trace/made.js';
import { brief } from '../../src/stepscope/web/static/trace/navigate.js';
import { findSlices, parseQuery } from '../../src/stepscope/web/static/trace/query.js';
import { slicesOf } from '../../src/stepscope/web/static/trace/sql.js';
import { model } from './made_model.js';

/** A model with room behind its slices, as the viewer reads them. */
function roomy() {
  const made = model([[[[0, 100, 'outer']], [[10, 20, 'gemm'], [40, 50, 'gemm']]]], { gemm: [1, 0] });
  const wider = (/** @type {Float64Array|Uint32Array|Uint16Array} */ column) => {
    const Kind = /** @type {any} */ (column.constructor);
    const grown = new Kind(column.length + ROOM);
    grown.set(column);
    return grown;
  };
  const { slices, tracks, lanes, texts, precisions } = made;
  return Object.assign(made, { start: wider(made.start), dur: wider(made.dur), name: wider(made.name),
    kindNames: [...made.kindNames, 'found'], recorded: { slices, tracks: tracks.length, lanes: lanes.length,
      texts: texts.length, precisions: precisions.length } });
}

/** @param {any} made @param {number} track */
function held(made, track) {
  const { firstLane, laneCount } = made.tracks[track];
  return made.lanes.slice(firstLane, firstLane + laneCount).map((/** @type {any} */ { first, count }) => (
    Array.from({ length: count }, (_, k) => brief(made, first + k)).map(({ start, dur, name }) => [start, dur, name])));
}

test('what SQL found is a track: what overlaps in lanes, named alike in the category of that name', () => {
  const made = roomy();
  /** @type {[number, number, string][]} */
  const rows = [[50, 10, 'gemm'], [0, 60, 'mine'], [10, 20, 'gemm'], [60, 5, 'mine']];
  assert.deepEqual(putFound(made, [{ text: 'SELECT 1', label: 'my query', rows }]), [null]);
  assert.deepEqual(held(made, 1), [[[0, 60, 'mine'], [60, 5, 'mine']], [[10, 20, 'gemm'], [50, 10, 'gemm']]]);
  const { label, type, group, device } = made.tracks[1];
  assert.deepEqual([label, type, group, device], ['my query', 'found', 'queries', null]);
  const about = brief(made, made.lanes[made.tracks[1].firstLane + 1].first);
  assert.deepEqual([about.kind, about.category, about.track], ['found', 'computing', 1]);
});

test('what a search found is a track, which no search finds again', () => {
  const made = roomy();
  putFound(made, [{ text: 'gemm group by name', label: 'a', rows: null }, { text: 'kind:', label: 'b', rows: null }]);
  assert.deepEqual(held(made, 1), [[[10, 20, 'gemm'], [40, 50, 'gemm']]]);
  assert.deepEqual([...findSlices(made, parseQuery('gemm'))], [1, 2]);
  const [error] = putFound(made, [{ text: 'kind:nothing', label: 'c', rows: null }]);
  assert.match(String(error), /nothing here is of the kind/);
  assert.equal(made.tracks.length, 1);
});

test('tracks take the place of those before, and leave what was recorded as it was', () => {
  const made = roomy();
  const before = JSON.stringify([made.texts, made.tracks, made.lanes, [...made.kinds]]);
  putFound(made, [{ text: 'a', label: 'a', rows: [[1, 5e9, 'long']] }, { text: 'b', label: 'b', rows: [[2, 3, 'x']] }]);
  assert.deepEqual([held(made, 1), held(made, 2)], [[[[1, 5e9, 'long']]], [[[2, 3, 'x']]]]);
  putFound(made, [{ text: 'b', label: 'b', rows: [[2, 3, 'x']] }]);
  assert.deepEqual(held(made, 1), [[[2, 3, 'x']]]);
  putFound(made, []);
  assert.equal(JSON.stringify([made.texts, made.tracks, made.lanes, [...made.kinds]]), before);
  assert.deepEqual(held(made, 0), [[[0, 100, 'outer']], [[10, 20, 'gemm'], [40, 50, 'gemm']]]);
});

test('a track that has not all of them says so: no room, or too many at one time', () => {
  const made = roomy();
  const many = Array.from({ length: ROOM + 5 }, (_, k) => /** @type {[number, number, string]} */ ([k, 1, 'x']));
  putFound(made, [{ text: 'a', label: 'many', rows: many }, { text: 'b', label: 'none', rows: [[1, 1, 'x']] }]);
  assert.deepEqual(made.tracks.slice(1).map((/** @type {any} */ { label }) => label),
    ['many (16,384 of 16,389)', 'none (0 of 1)']);
  const crowd = Array.from({ length: 30 }, () => /** @type {[number, number, string]} */ ([0, 9, 'x']));
  putFound(made, [{ text: 'a', label: 'crowd', rows: crowd }]);
  assert.deepEqual([made.tracks[1].label, made.tracks[1].laneCount], ['crowd (24 of 30)', 24]);
});

test('rows without a start or a duration are no slices; names are the column of that name, else the first text', () => {
  const columns = ['kind', 'start_ns', 'dur_ns'].map((name) => ({ name, unit: null }));
  const rows = [['k', 5, 7], ['k', null, 7], ['k', 5, null], ['k', 5, -1]];
  assert.deepEqual(slicesOf({ columns, rows, error: null }), [[5, 7, 'k']]);
  assert.equal(slicesOf({ columns: columns.slice(1, 2), rows: [[5]], error: null }), null);
});

test('tracks of an address are taken where they have the right form', () => {
  const rows = [[1, 2, 'x'], [1, -2, 'x'], ['1', 2, 'x'], null, [3, 4]];
  const given = [{ text: 'a', label: 'b', rows }, { text: 1, label: 'b' }, null, { text: 'c', label: 'd' }];
  assert.deepEqual(readTold(given),
    [{ text: 'a', label: 'b', rows: [[1, 2, 'x'], [3, 4, '']] }, { text: 'c', label: 'd' }]);
  assert.deepEqual(readTold('x'), []);
});
