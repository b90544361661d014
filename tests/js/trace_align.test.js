import assert from 'node:assert/strict';
import test from 'node:test';
import { alignedOp, besideAt } from '../../src/stepscope/web/static/pages/beside.js';
import { alignByOp, opOf } from '../../src/stepscope/web/static/trace/align.js';
import { model } from './made_model.js';

/** Two runs, a device each, whose second begins its ops later. */
function two() {
  const made = model([[[[0, 10, 'a'], [20, 5, 'b'], [40, 5, 'b']]], [[[5, 10, 'a'], [30, 5, 'b'], [70, 5, 'b']]]]);
  made.tracks[1].source = 1;
  made.sources = [0, 1].map((at) => ({ label: `run ${at}`, offset: 0, firstSlice: 3 * at, slices: 3,
    header: { extent_ns: [0, 100] } }));
  made.steps = [0, 1].map((source) => ({ name: 'step 4', start: 10, end: 100, hostStart: 0, source }));
  made.counters = [{ source: 1, time: Float64Array.from([1, 2]) }];
  return made;
}

test('the same occurrence of an op in the same step begins at the same time', () => {
  const made = two();
  const op = opOf(made, { start: 40, track: 0, source: 0, kind: 'host_op', name: 'b' });
  assert.deepEqual(op, { step: 0, nth: 1, onHost: false, kind: 'host_op', name: 'b' });
  assert.deepEqual(alignedOp(besideAt('1@7', op)), op);
  assert.deepEqual(alignByOp(made, op), []);
  assert.deepEqual([...made.start], [0, 20, 40, -25, 0, 40]);
  assert.deepEqual([made.steps[1].start, made.sources[1].offset, made.begin, made.end], [-20, -30, -30, 100]);
  assert.deepEqual([...made.counters[0].time], [-29, -28]);
});

test('a run without the op stays, and is named', () => {
  const made = two();
  assert.deepEqual(alignByOp(made, { step: 0, nth: 2, onHost: false, kind: 'host_op', name: 'b' }), ['run 1']);
  assert.deepEqual(alignByOp(made, { step: 0, nth: 0, onHost: true, kind: 'host_op', name: 'b' }), ['run 1']);
  assert.equal(made.start[3], 5);
  assert.equal(alignedOp('1@5'), null);
});
