import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ownTime, viewTime } from '../../src/stepscope/web/static/trace/clock.js';
import { difference } from '../../src/stepscope/web/static/trace/flame.js';
import { beside, occurrences, spread } from '../../src/stepscope/web/static/trace/navigate.js';
import { sumByName } from '../../src/stepscope/web/static/trace/pick.js';
import { readings } from '../../src/stepscope/web/static/trace/pointer.js';
import { findSlices, parseQuery } from '../../src/stepscope/web/static/trace/query.js';
import { model } from './made_model.js';

test('the next slice of a stream may lie on another of its lanes', () => {
  const made = model([[[[0, 100, 'a'], [200, 10, 'd']], [[50, 100, 'b'], [200, 5, 'e']], [[60, 10, 'c']]]]);
  const way = (/** @type {number} */ from, /** @type {number} */ step) => {
    const names = [];
    for (let at = from; at >= 0; at = beside(made, at, step)) names.push(made.texts[made.name[at]]);
    return names.join('');
  };
  assert.equal(way(0, 1), 'abcde');
  assert.equal(way(made.name.length - 2, -1), 'edcba');
  made.tracks[0].type = 'thread';
  assert.equal(way(0, 1), 'ad');
});

test('a flame graph of two ranges shows what is gone', () => {
  const made = model([[[[0, 100, 'step'], [200, 100, 'step']],
    [[0, 20, 'stays'], [30, 60, 'goes'], [200, 40, 'stays']]]]);
  const tree = difference(made, { begin: 200, end: 300, tracks: [0] }, { begin: 0, end: 100, tracks: [0] });
  const [step] = tree.children;
  assert.deepEqual(step.children.map(({ name, total, before, width }) => [name, total, before, width]),
    [['goes', 0, 60, 60], ['stays', 40, 20, 40]]);
  assert.equal(step.width, 100);
  const half = difference(made, { begin: 200, end: 250, tracks: [0] }, { begin: 0, end: 100, tracks: [0] });
  assert.equal(half.children[0].children[0].width, 40);
});

test('bins of durations have edges in whole ns, and hold every slice', () => {
  const durations = [0, 1, 1, 5, 1000, 999_999, 1_000_000];
  const made = model([[durations.map((dur, at) => [at * 2_000_000, dur, 'k'])]]);
  const { bins, edges } = spread(made, occurrences(made, 0, made.sources[0]));
  assert.equal(edges[0], 0);
  assert.equal(edges[edges.length - 1], 1_000_001);
  bins.forEach((/** @type {number} */ count, /** @type {number} */ at) => {
    assert.equal(durations.filter((dur) => dur >= edges[at] && dur < edges[at + 1]).length, count);
  });
  const same = model([[[[0, 7, 'k'], [10, 7, 'k']]]]);
  assert.equal(spread(same, occurrences(same, 0, same.sources[0])).bins.reduce((sum, count) => sum + count, 0), 2);
});

test('a whole name is asked for with an equals sign; sums by name have most time first', () => {
  const made = model([[[[0, 5, 'mm'], [10, 500, 'addmm'], [1000, 50, 'mm'], [2000, 1, 'a|b']]]]);
  const find = (/** @type {string} */ text) => findSlices(made, parseQuery(text));
  assert.deepEqual([...find('name:mm')], [0, 1, 2]);
  assert.deepEqual([...find('name="mm"')], [0, 2]);
  assert.deepEqual([...find('name="a|b"')], [3]);
  assert.deepEqual(sumByName(made, find('mm')).map(({ name, count, total }) => [name, count, total]),
    [['addmm', 1, 500], ['mm', 2, 55]]);
});

test('the pointer tells the place in the step of each run', () => {
  const sources = /** @type {any} */ ([{ label: 'before' }, { label: 'after' }]);
  const steps = [{ name: 'step 4', start: 0, end: 100, hostStart: 0, source: 0 },
    { name: 'step 5', start: 10, end: 60, hostStart: 10, source: 1 }];
  assert.deepEqual(readings({ sources, steps }, 40), ['before step 4 + 40 ns', 'after step 5 + 30 ns']);
  assert.deepEqual(readings({ sources, steps }, 70), ['before step 4 + 70 ns', 'after outside its steps']);
});

test('times of the view are those of the profile again', () => {
  for (const source of [{ offset: -250, drift: 0, driftAt: 0 }, { offset: 1e6, drift: 2e-6, driftAt: 5e8 }]) {
    for (const time of [0, 123_456_789, 9e9]) assert.equal(ownTime(source, viewTime(source, time)), time);
  }
});
