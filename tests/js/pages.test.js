import assert from 'node:assert/strict';
import test from 'node:test';
import { namesOf, placesOf } from '../../src/stepscope/web/static/core/ranges.js';
import { parsed, written } from '../../src/stepscope/web/static/core/router.js';
import { bytes } from '../../src/stepscope/web/static/core/source.js';
import { drawn } from '../../src/stepscope/web/static/pages/kernels_roofline.js';
import { asked, asParams } from '../../src/stepscope/web/static/pages/trace.js';
import { lastAt } from '../../src/stepscope/web/static/widgets/area.js';
import { traceParams } from '../../src/stepscope/web/static/widgets/finding.js';
import { held } from '../../src/stepscope/web/static/widgets/host_in.js';
import { placed } from '../../src/stepscope/web/static/widgets/hlo_graph.js';
import { treeOf } from '../../src/stepscope/web/static/widgets/flame.js';
import { roofsOf, spread } from '../../src/stepscope/web/static/widgets/roofline.js';
import { barAt, decades, ticks } from '../../src/stepscope/web/static/widgets/scale.js';
import { scaleOf } from '../../src/stepscope/web/static/widgets/stacked.js';
import { ofAllDevices } from '../../src/stepscope/web/static/widgets/merged.js';
import { moved } from '../../src/stepscope/web/static/widgets/strip.js';
import { csv, sorted } from '../../src/stepscope/web/static/widgets/table.js';

test('a place survives its hash, whatever its parameters hold', () => {
  const place = {
    page: 'trace', run: 2, steps: /** @type {[number, number]} */ ([3, 7]), params: { name: 'a&b=c #"<%', start: '-5' },
    queries: [{ name: 'the "slow" ones', text: 'dur>1ms group by name' }],
  };
  assert.deepEqual(parsed(written(place)), place);
  assert.deepEqual(parsed('#/ops?queries={"a":1,"b":"c","":"d"}').queries, [{ name: 'b', text: 'c' }]);
  assert.deepEqual(parsed('#/ops?queries=[nonsense').queries, []);
  assert.equal(written({ page: 'ops', run: 0, steps: null, params: {} }), '#/ops');
});

test('a range of steps is written by the numbers that the job has', () => {
  const steps = /** @type {any[]} */ ([5, 6, 7, 9].map((number, index) => ({ number, index })));
  assert.deepEqual(namesOf(steps, [1, 3]), [6, 9]);
  assert.deepEqual(placesOf(steps, [6, 9]), [1, 3]);
  assert.deepEqual(placesOf(steps, [7, 99]), [2, 3]);
  assert.equal(placesOf(steps, [20, 30]), null);
  const unsure = /** @type {any[]} */ ([5, 5, null].map((number, index) => ({ number, index })));
  assert.deepEqual(namesOf(unsure, [1, 2]), [1, 2]);
});

test('a hash that says nothing sensible is the overview', () => {
  for (const hash of ['', '#', '#/', '#nothing', '#/ops?steps=x-y&run=-1&run=1e9']) {
    assert.deepEqual([parsed(hash).run, parsed(hash).steps], [0, null]);
  }
  assert.equal(parsed('#<script>').page, 'overview');
});

test('what a finding shows is what the viewer is asked for', () => {
  const place = { page: 'trace', run: 0, steps: null, params: traceParams(1_000_000, 200_000, 'GPU 0', 'gemm') };
  assert.deepEqual(asked(place), {
    start_ns: 900_000,
    end_ns: 1_300_000,
    track: 'GPU 0',
    select: { start_ns: 1_000_000, dur_ns: 200_000, name: 'gemm' },
  });
});

test('the state of the viewer survives the hash', () => {
  const state = { start_ns: 5, end_ns: 90, track: 't', pin: ['a', 'b'], select: { start_ns: 6, dur_ns: 2 } };
  const place = { page: 'trace', run: 0, steps: null, params: asParams(state) };
  assert.deepEqual(asked(parsed(written(place))), state);
  assert.equal(asked({ ...place, params: { start: '9', end: '3' } }), null);
  assert.equal(asked({ ...place, params: {} }), null);
});

test('CSV is quoted, unrounded, and holds no formula', () => {
  const columns = [
    { title: 'name', value: (/** @type {any[]} */ row) => row[0] },
    { title: 'ns, all', unit: 'ns', value: (/** @type {any[]} */ row) => row[1] },
  ];
  assert.equal(csv(columns, [['a"b', 1.5], ['=HYPERLINK("x")', -2], ['x\ny', null]]),
    'name,"ns, all (ns)"\r\n"a""b",1.5\r\n"\'=HYPERLINK(""x"")",-2\r\n"x\ny",\r\n');
});

test('absent values stand last however a column is sorted', () => {
  const column = { title: '', value: (/** @type {number|null} */ row) => row };
  assert.deepEqual(sorted([3, null, 10, 1], column, true), [10, 3, 1, null]);
  assert.deepEqual(sorted([3, null, 10, 1], column, false), [1, 3, 10, null]);
  const names = { title: '', value: (/** @type {string} */ row) => row };
  assert.deepEqual(sorted(['rank10', 'rank2'], names, false), ['rank2', 'rank10']);
});

test('ticks are round and inside', () => {
  assert.deepEqual(ticks(0, 187, 4), [0, 50, 100, 150]);
  assert.deepEqual(ticks(0, 3 * 2 ** 30, 4, true), [0, 2 ** 30, 2 * 2 ** 30, 3 * 2 ** 30]);
  assert.deepEqual(ticks(5, 5), [5]);
  assert.deepEqual(decades(0.2, 90), [0.1, 1, 10, 100]);
});

test('the bar under the pointer, also at the edges', () => {
  assert.deepEqual([-5, 0, 49, 50, 100, 400].map((x) => barAt(x, 100, 2)), [0, 0, 0, 1, 1, 1]);
});

test('keys move the range of steps, never beyond the steps', () => {
  assert.deepEqual(moved(0, 9, 1, false, 10), [0, 0]);
  assert.deepEqual(moved(0, 9, -1, false, 10), [9, 9]);
  assert.deepEqual(moved(2, 4, 1, false, 10), [3, 5]);
  assert.deepEqual(moved(7, 9, 1, false, 10), [7, 9]);
  assert.deepEqual(moved(2, 4, 1, true, 10), [2, 5]);
  assert.deepEqual(moved(4, 4, -1, true, 10), [4, 4]);
});

test('a tree of paths: what is not listed is as large as what it holds', () => {
  const root = treeOf([{ path: 'a/b', value: 3 }, { path: 'a/c/d', value: 5 }, { path: 'e', value: 1 }]);
  assert.deepEqual(root.children.map((one) => [one.name, one.value, one.listed]), [['a', 8, false], ['e', 1, true]]);
  assert.deepEqual(root.children[0].children.map((one) => one.path), ['a/c', 'a/b']);
  assert.equal(root.value, 9);
});

test('the last reading before a time', () => {
  assert.deepEqual([0, 10, 15, 20, 99].map((time) => lastAt([10, 20], time)), [0, 0, 0, 1, 1]);
});

test('one roof per peak', () => {
  const row = { precision: 'bf16', units: /** @type {const} */ ('matrix'),
    peak_flops_per_s: 9e14, peak_bytes_per_s: 3e12 };
  assert.deepEqual(roofsOf([row, { ...row }, { ...row, peak_flops_per_s: null }]).map((roof) => roof.name),
    ['bf16 matrix units']);
});

test('names of roofs do not lie over each other', () => {
  assert.deepEqual(spread([50, 90, 45], 14), [50, 90, 36]);
});

test('the roofline says what share of the kernels it shows', () => {
  const report = /** @type {any} */ ({ analyses: { kernels: [{ total_ns: 100, share: 0.5 }] } });
  const rows = [{ total_ns: 30 }, { total_ns: 40 }];
  assert.match(drawn(report, rows, rows.slice(1)), /^1 of 2 points drawn, 20.0 % of kernel time; /);
});

test('base64, with and without the newer way', () => {
  assert.deepEqual([...bytes('AAEC/w==')], [0, 1, 2, 255]);
});

test('instructions stand in rows by how far they are, operands above', () => {
  const nodes = [0, -1, -1, 1].map((distance) => ({ name: 'n', opcode: 'add', shape: 'f32[]', distance }));
  const at = placed(nodes);
  assert.deepEqual(at.map(({ y }) => y / (at[0].y || 1)), [1, 0, 0, 2]);
  assert.ok(at[1].x < at[0].x && at[0].x < at[2].x);
});

test('what is set apart is cut off, unless nothing else is there', () => {
  assert.equal(scaleOf([100, 90, 5000], [false, false, true]), 130);
  assert.equal(scaleOf([100, 110], [false, true]), 110);
  assert.equal(scaleOf([5000], [true]), 5000);
});

test('a kernel of several devices is one row with its own inside', () => {
  const row = (/** @type {string} */ name, /** @type {number} */ device, /** @type {number} */ total_ns) => ({
    name, op: null, device, precision: null, tensor_core: /** @type {const} */ ('unknown'), family: null,
    total_ns, count: 2, share: 0.1, mean_ns: total_ns / 2, min_ns: 1, max_ns: total_ns - 1 });
  const [first, second] = ofAllDevices([row('b', 0, 50), row('a', 0, 40), row('a', 1, 30)], (one) => [one.name]);
  assert.deepEqual([first.name, first.device, first.total_ns, first.count, first.mean_ns, first.max_ns],
    ['a', null, 70, 4, 18, 39]);
  assert.deepEqual([first.inner?.length, second.inner], [2, undefined]);
});

test('gaps are told by what the host was in, the most time first', () => {
  const gap = (/** @type {string|null} */ blocking, /** @type {number} */ dur_ns) => ({ blocking, launch: null,
    start_ns: 0, dur_ns, where: { file: 'a.py', line: 3, function: null, op: null, module: null, annotation: null } });
  const found = held([gap('sync', 5), gap('copy', 8), gap('sync', 6), gap(null, 99)]);
  assert.deepEqual(found.map(({ call, place, ns, count, longest }) => [call, place, ns, count, longest.dur_ns]),
    [['sync', 'a.py:3', 11, 2, 6], ['copy', 'a.py:3', 8, 1, 8]]);
});
