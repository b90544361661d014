import assert from 'node:assert/strict';
import { test } from 'node:test';
import { App } from '../../src/stepscope/web/static/trace/app.js';
import { deviceParts } from '../../src/stepscope/web/static/trace/aggregate.js';
import { Details } from '../../src/stepscope/web/static/trace/detail.js';
import { Engine } from '../../src/stepscope/web/static/trace/engine.js';
import { longestGaps } from '../../src/stepscope/web/static/trace/gaps.js';
import { arrange, emptyArrangement } from '../../src/stepscope/web/static/trace/layout.js';
import { legend } from '../../src/stepscope/web/static/trace/legend.js';
import { counted } from '../../src/stepscope/web/static/trace/units.js';
import { model } from './made_model.js';

/** A device with gaps and a thread; the same in a second run. */
function made() {
  /** @type {[number, number, string][][]} */
  const gaps = [[[0, 10, 'input'], [20, 90, 'input'], [120, 40, 'launch']],
    [[20, 50, 'part'], [70, 40, 'launch part']]];
  const found = model([gaps, [[[10, 10, 'gemm']]], [[[0, 160, 'main'], [170, 10, 'main']]], [[[0, 500, 'main']]]],
    { input: [2, 2], launch: [2, 2], part: [3, 2], 'launch part': [3, 2], gemm: [1, 0] });
  found.tracks[0].type = 'idle';
  found.tracks[3].source = 1;
  found.sources = [{ header: {}, label: 'before', firstSlice: 0, slices: 8 },
    { header: {}, label: 'after', firstSlice: 8, slices: 1 }];
  return found;
}

/** @param {any} held */
function engineOf(held) {
  const engine = new Engine();
  engine.model = held;
  engine.rest = Promise.resolve();
  return engine;
}

test('gaps are walked along from the longest to the shortest', async () => {
  const held = made();
  assert.deepEqual([...longestGaps(held, -1)].map((i) => held.dur[i]), [90, 40, 10]);
  const engine = engineOf(held);
  const lengths = [];
  let at = -1;
  for (let found = await engine.next({ slice: at, how: 'gap', way: 1 }); found;) {
    lengths.push(found.dur);
    at = found.slice;
    found = await engine.next({ slice: at, how: 'gap', way: 1 });
  }
  assert.deepEqual(lengths, [90, 40, 10]);
  assert.equal((await engine.next({ slice: at, how: 'gap', way: -1 }))?.dur, 40);
});

test('work that was not recorded stands beside the gaps, and is none of them', async () => {
  const found = model([[[[0, 10, 'input'], [10, 500, 'unseen'], [510, 20, 'input']]], [[[530, 10, 'gemm']]]],
    { input: [2, 2], unseen: [5, 1], gemm: [1, 0] });
  found.tracks[0].type = 'idle';
  assert.deepEqual([...longestGaps(found, -1)].map((i) => found.dur[i]), [20, 10]);
  const parts = deviceParts(found, 0, 0, 0, 540);
  assert.deepEqual(parts.map(({ category, busy, ns }) => [category, busy, ns]),
    [['copy', true, 500], ['input', false, 30], ['compute', true, 10]]);
});

test('a flame graph has work alone, and each run below its own name', () => {
  const engine = engineOf(made());
  const range = { begin: 0, end: 500, tracks: [0, 1, 2, 3] };
  const given = { range, form: 'merged', name: 'main', source: 0, other: null };
  const { tree, left } = /** @type {any} */ (engine.flame(given));
  assert.equal(left, 1);
  assert.deepEqual(tree.children.map((/** @type {any} */ one) => [one.name, one.total]),
    [['before', 180], ['after', 500]]);
  assert.equal(/** @type {any} */ (engine.flame({ ...given, form: 'sandwich' })).callees.total, 170);
  const gaps = /** @type {any} */ (engine.flame({ ...given, range: { ...range, tracks: [0] } }));
  assert.deepEqual([gaps.left, gaps.tree.total], [0, 140]);
});

test('hits that lie within a pixel are marked as one, however many there are', () => {
  /** @type {[number, number, string][]} */
  const lane = Array.from({ length: 3000 }, (_, at) => [at * 10, 5, 'k']);
  const engine = engineOf(model([[[...lane, [90_000, 500, 'k']]]]));
  engine.search({ text: 'k' });
  const view = { begin: 0, end: 100_000, lanes: [0] };
  assert.deepEqual(engine.marked({ ...view, apart: 100 }), [[0, 0, 29_995, true], [0, 90_000, 500, false]]);
  assert.equal(engine.marked({ ...view, apart: 1 }).length, 3001);
});

test('the legend tells every colour there is, in each way of colouring', () => {
  const held = made();
  held.precisions = held.texts.map((/** @type {string} */ text) => (text === 'gemm' ? 'bf16' : null));
  const colours = { red: held.texts.map(() => 10), green: held.texts.map(() => 20), blue: held.texts.map(() => 30) };
  const labels = (/** @type {any} */ mode) => (
    legend(held, colours, mode).map(({ group, label }) => `${group}: ${label}`));
  const idle = 'Idle time, by cause: input';
  assert.deepEqual(labels('category'), [idle, 'Slices: host op', 'Slices: kernel']);
  assert.deepEqual(labels('precision'), [idle, 'Number formats: bf16', 'Number formats: slices that compute nothing']);
  assert.deepEqual(labels('op'), [idle]);
  assert.deepEqual(labels('rank'), ['Runs: before', 'Runs: after']);
  assert.deepEqual(legend(held, colours, 'op')[0].colour, [10, 20, 30]);
});

test('the steps are seen first where much else was recorded', () => {
  const opened = (/** @type {number} */ begin) => {
    const steps = [{ name: 'step 0', start: 520, end: 560, hostStart: 500, source: 0 },
      { name: 'step 1', start: 560, end: 600, hostStart: 540, source: 0 }];
    const meta = /** @type {any} */ ({ begin, end: 610, slices: 1, tracks: [], counters: [], steps,
      sources: [{ label: '', header: { files: [], extent_ns: [begin, 610] } }] });
    const app = new App(meta, /** @type {any} */ (async () => null), /** @type {any} */ (null), 'light');
    app.home();
    return [app.view.begin, app.view.end];
  };
  assert.deepEqual(opened(0), [498, 602]);
  const [begin, end] = opened(505);
  assert.ok(begin < 505 && end > 610);
});

test('of several runs stacks of threads are closed, so that all are in sight', () => {
  const lanes = (/** @type {any[]} */ tracks) => arrange(tracks, [], ['', ''], emptyArrangement()).items
    .filter((item) => item.type === 'track').map((item) => item.collapsed);
  const thread = (/** @type {number} */ source) => (
    { number: source, id: 't', label: 'main', type: 'thread', group: 'host', source, device: null, holds: null,
      firstLane: 30 * source, laneCount: 30 });
  assert.deepEqual(lanes([thread(0)]), [false]);
  assert.deepEqual(lanes([thread(0), thread(1)]), [true, true]);
});

test('lists that were recorded over several lines stand on one', async () => {
  const told = new Details(/** @type {any} */ ({
    sections: { 'details.t.at': { type: 'ints' }, 'details.t.grid': { type: 'ints' } },
    json: async (/** @type {string} */ name) => (name === 'details.tables'
      ? [{ name: 't', columns: [{ name: 'grid', unit: '', doc: '', text: true }] }] : ['[\n  132,\n  1\n]', 'a\nb']),
    ints: async (/** @type {string} */ name) => (name.endsWith('.at') ? [4, 5] : [0, 1]),
  }));
  assert.deepEqual((await told.of(4)).map(({ value }) => value), ['[ 132, 1 ]']);
  assert.deepEqual((await told.of(5)).map(({ value }) => value), ['a\\nb']);
});

test('one is not told as many', () => {
  assert.deepEqual([counted(1, 'gap'), counted(0, 'gap'), counted(5471, 'gap')], ['1 gap', '0 gaps', '5,471 gaps']);
});
