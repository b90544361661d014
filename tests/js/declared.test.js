import assert from 'node:assert/strict';
import { test } from 'node:test';

import { COLUMNS } from '../../src/stepscope/web/static/core/declared.js';
import { declared } from '../../src/stepscope/web/static/widgets/declared.js';

const report = (/** @type {number} */ devices) => (
  /** @type {any} */ ({ profile: { devices: Array(devices).fill({}) } }));

test('every declared column can be shown, in its order', () => {
  for (const of of /** @type {(keyof typeof COLUMNS)[]} */ (Object.keys(COLUMNS))) {
    const titles = declared(of, report(2)).map(({ title }) => title);
    assert.deepEqual(titles, COLUMNS[of].map(({ title }) => title));
  }
});

test('a value is read by its key, in the object inside, or as told', () => {
  const kernel = /** @type {any} */ ({ name: 'gemm', max_ns: 5, launch: { grid: [2, 3] } });
  const longest = declared('Kernel', report(1)).find(({ title }) => title === 'longest');
  assert.equal(longest?.value(kernel), 5);
  const [grid, block] = declared('KernelLaunch', report(1), {}, (/** @type {any} */ row) => row.launch);
  assert.deepEqual([grid.value(kernel), block.value(kernel)], ['2×3', null]);
  assert.equal(grid.value(/** @type {any} */ ({})), null);
  const [op] = declared('Sync', report(1), { op: (row) => row.op ?? row.call });
  assert.equal(op.value(/** @type {any} */ ({ op: null, call: 'cudaStreamSynchronize' })), 'cudaStreamSynchronize');
});

test('devices stand in tables where the profile has several', () => {
  assert.ok(!declared('Kernel', report(1)).some(({ title }) => title === 'device'));
  assert.ok(declared('Kernel', report(2)).some(({ title }) => title === 'device'));
});
