import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Engine } from '../../src/stepscope/web/static/trace/engine.js';
import { sums } from '../../src/stepscope/web/static/trace/lists_tabs.js';
import { findSlices, parseQuery, unheard } from '../../src/stepscope/web/static/trace/query.js';
import { stepAt, windowAt } from '../../src/stepscope/web/static/trace/steps.js';
import { model } from './made_model.js';

/** A host that runs ahead of its device: at 150 it is in step 2, the device in step 1. */
function ahead() {
  const made = model([[[[0, 100, 'step 1'], [100, 100, 'step 2']]], [[[150, 10, 'aten::mm']]],
    [[[50, 130, 'step 1'], [180, 120, 'between the steps']]], [[[150, 20, 'gemm'], [190, 10, 'gemm']]]],
  { 'step 1': [4, 255], 'step 2': [4, 255], 'between the steps': [4, 255], gemm: [1, 0] });
  for (const at of [0, 2]) made.tracks[at].type = 'steps';
  for (const at of [0, 1]) made.tracks[at].device = null;
  return made;
}

test('a slice of the host is in the host\'s step, one of a device in that device\'s', () => {
  const made = ahead();
  const [, thread, , stream] = made.tracks;
  assert.deepEqual([windowAt(made, thread, 150), windowAt(made, stream, 150)], ['step 2', 'step 1']);
  assert.deepEqual([windowAt(made, stream, 190), windowAt(made, thread, 500)], ['between the steps', null]);
  assert.ok(Number.isNaN(stepAt(made, stream, 190)));
  const find = (/** @type {string} */ text) => [...findSlices(made, parseQuery(text))].map((i) => made.start[i]);
  assert.deepEqual(find('kind:host_op step:2'), [150]);
  assert.deepEqual(find('kind:host_op step:1'), []);
  assert.deepEqual(find('kind:kernel step:1'), [150]);
  assert.deepEqual(find('-kind:step_window step>=1'), [150, 150]);
  assert.match(String(parseQuery('step:two').error), /is a number/);
});

test('an annotation is found once, where the host was in it', () => {
  const made = model([[[[0, 100, 'load']]], [[[5, 90, 'load of the device']]]], { 'load of the device': [6, 255] });
  const find = (/** @type {string} */ text) => [...findSlices(made, parseQuery(text))].map((i) => made.start[i]);
  assert.deepEqual(find('load'), [0]);
  assert.deepEqual(find('load kind:annotated'), [5]);
});

test('a gap is counted once, whatever causes it has', () => {
  const made = model([[[[0, 100, 'input'], [200, 50, 'input']], [[0, 60, 'part'], [60, 40, 'launch']]]],
    { input: [2, 2], part: [3, 2], launch: [3, 255] });
  const engine = new Engine();
  engine.model = made;
  const { count, total } = engine.search({ text: 'cat:input' });
  assert.deepEqual([count, total], [2, 150]);
  assert.equal(engine.search({ text: 'kind:idle' }).total, 150);
  assert.equal(engine.search({ text: 'kind:cause' }).total, 100);
});

test('kinds that are not there and fields that are none are told', () => {
  const made = model([[[[0, 5, 'nccl:all_reduce'], [10, 5, 'gemm']]]], { gemm: [1, 0] });
  assert.match(String(unheard(made, parseQuery('kind:memcpy'))), /kind memcpy; there are host_op, kernel/);
  assert.match(String(unheard(made, parseQuery('cat:nothing'))), /compute, host_op, kernel/);
  assert.equal(unheard(made, parseQuery('kind:"host op" cat:computing')), null);
  assert.deepEqual(parseQuery('bogus:3 aten::mm').unknown, ['bogus']);
  const engine = new Engine();
  engine.model = made;
  assert.match(String(engine.search({ text: 'kind:memcpy' }).error), /memcpy/);
  assert.deepEqual(engine.search({ text: 'nccl:all_reduce' }).count, 1);
});

test('of several runs each is summed by itself', async () => {
  const made = model([[[[0, 5, 'train'], [10, 5, 'train']]], [[[0, 70, 'train']]]]);
  made.sources = [{ header: {}, label: 'before', firstSlice: 0, slices: 2 },
    { header: {}, label: 'after', firstSlice: 2, slices: 1 }];
  made.tracks[1].source = 1;
  const engine = new Engine();
  engine.model = made;
  const found = engine.search({ text: 'train' });
  assert.equal(sums(found), 'before: 2 slices, 10 ns; after: 1 slice, 70 ns');
  assert.deepEqual(found.names.map(({ run, total }) => [run, total]), [['after', 70], ['before', 10]]);
  assert.deepEqual([...engine.sameName(0)], [0, 1]);
  assert.deepEqual([...engine.sameName(2)], [2]);
  assert.equal(engine.search({ text: 'run:after' }).count, 1);
});
