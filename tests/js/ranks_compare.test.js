import assert from 'node:assert/strict';
import test from 'node:test';
import { formatSigned } from '../../src/stepscope/web/static/core/units.js';
import { grid } from '../../src/stepscope/web/static/pages/job_steps.js';
import { extent } from '../../src/stepscope/web/static/widgets/dots.js';
import { levelOf } from '../../src/stepscope/web/static/widgets/heatmap.js';

/** @param {number} rank @param {number} index @param {number} number */
const step = (rank, index, number) => ({ rank, index, number });
/** @param {number} rank @param {number|null} index @param {string} [phase] */
const row = (rank, index, phase = 'step') => ({ rank, device: 0, step: index, phase, dur_ns: 10, parts: {} });

test('cells stand under the number of their step, wherever a rank began', () => {
  const report = /** @type {any} */ ({
    steps: [step(0, 0, 7), step(0, 1, 8), step(1, 0, 8)],
    accounting: [row(0, null, 'before'), row(0, 0), row(0, 1), row(1, 0)],
    analyses: { ranks: { steps: [
      { number: 8, rank: 1, device: 0, waited_ns: 5 }, { number: 9, rank: 1, device: 0, waited_ns: 6 },
    ] } },
  });
  const { lanes, columns } = grid(report);
  assert.deepEqual(columns, [7, 8]);
  assert.deepEqual(lanes.map(({ lane, cells }) => [lane.rank, [...cells].map(([at, cell]) => [at, cell.waited])]), [
    [0, [[7, 0], [8, 0]]],
    [1, [[8, 5]]],
  ]);
});

test('steps without numbers stand under their place', () => {
  const report = /** @type {any} */ ({
    steps: [{ rank: 0, index: 0, number: null }], accounting: [row(0, 0)], analyses: { ranks: { steps: [] } },
  });
  assert.deepEqual(grid(report).columns, [0]);
});

test('the largest value has the last level, nothing has none', () => {
  assert.deepEqual([0, null, -1, 1, 50, 100].map((value) => levelOf(value, 100)), [0, 0, 0, 1, 4, 8]);
  assert.equal(levelOf(0, 0), 0);
  // A scale that begins at the least value tells 603 from 631.
  assert.deepEqual([603, 617, 631].map((value) => levelOf(value, 631, 603)), [1, 4, 8]);
});

test('the axis of dots holds values, means and bands', () => {
  const [low, high] = extent([
    { label: 'a', values: [100, 120], mean: 110, band: null },
    { label: 'b', values: [90], mean: 90, band: [60, 140] },
  ]);
  assert.ok(low >= 0 && low < 60 && high > 140);
  assert.deepEqual(extent([{ label: 'a', values: [], mean: null, band: null }]), [0, 1]);
});

test('differences have their sign', () => {
  assert.deepEqual([1500, -1500, 0].map(formatSigned), ['+1.50 µs', '−1.50 µs', '0 ns']);
});
