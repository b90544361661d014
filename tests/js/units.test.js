import assert from 'node:assert/strict';
import test from 'node:test';
import {
  fixed, formatBytes, formatNs, formatPerStep, formatRate, formatShare, orDash,
} from '../../src/stepscope/web/static/core/units.js';

test('times have three significant digits and the unit a person would choose', () => {
  assert.equal(formatNs(18_642_000), '18.6 ms');
  assert.equal(formatNs(950), '950 ns');
  assert.equal(formatNs(999_500), '1.00 ms');
  assert.equal(formatNs(-2_000), '-2.00 µs');
  assert.equal(formatNs(null), 'not recorded');
});

test('sizes are binary, rates decimal, shares never rounded to nothing', () => {
  assert.equal(formatBytes(19_267_584), '18.4 MiB');
  assert.equal(formatBytes(2 ** 50), '1024 TiB');
  assert.equal(formatRate(616_400_000_000_000, 'FLOP/s'), '616 TFLOP/s');
  assert.equal(formatShare(0.0004), '<0.1 %');
  assert.equal(formatShare(0), '0 %');
  assert.equal(formatShare(1), '100 %');
});

test('ties round to even, and what only looks like a tie does not', () => {
  assert.deepEqual([fixed(0.5, 0), fixed(1.5, 0), fixed(2.5, 0), fixed(12.25, 1), fixed(0.125, 2)],
    ['0', '2', '2', '12.2', '0.12']);
  assert.deepEqual([fixed(4.35, 1), fixed(1.005, 2), fixed(8.345, 2)], ['4.3', '1.00', '8.35']);
});

test('absent values are dashes', () => {
  assert.equal(orDash(null, String), '–');
  assert.equal(orDash(0, String), '0');
  assert.equal(formatPerStep(undefined), '–');
});
