import assert from 'node:assert/strict';
import test from 'node:test';
import { Extremes, drawCounter, scaleOf, series } from '../../src/stepscope/web/static/trace/counter.js';
import { arrange, emptyArrangement, frameRows, keyOf } from '../../src/stepscope/web/static/trace/layout.js';

const range = (/** @type {number} */ size, /** @type {(i: number) => number} */ of) => (
  Float64Array.from({ length: size }, (_, i) => of(i)));

test('the extremes of any stretch are those of its samples', () => {
  const value = range(10_000, (i) => Math.sin(i * i) * 1000);
  const extremes = new Extremes(value);
  assert.ok(extremes.levels.length > 3);
  for (const [from, to] of [[0, 10_000], [1, 9_999], [16, 32], [15, 273], [4095, 4097], [7, 8]]) {
    const part = value.subarray(from, to);
    assert.deepEqual(extremes.over(from, to), [Math.min(...part), Math.max(...part)], `${from} ${to}`);
  }
  assert.deepEqual(extremes.over(5, 5), [Infinity, -Infinity]);
});

test('at any zoom a pixel shows the least, the greatest and the last of its samples', () => {
  const [time, value] = [range(100_000, (i) => i), range(100_000, (i) => (i === 55_555 ? 9 : i === 77_000 ? 0 : 3))];
  const made = series({ time, value }, 'value');
  for (const end of [100_000, 1_000_000]) {
    const target = { pixels: new Uint32Array(10 * 10), width: 10, height: 10, begin: 0, end };
    drawCounter(target, made, { y: 0, height: 10 }, { line: 1, area: 2 }, (v) => v / 9);
    const column = (/** @type {number} */ x) => Array.from({ length: 10 }, (_, y) => target.pixels[y * 10 + x]);
    const plain = [0, 0, 0, 0, 0, 0, 1, 2, 2, 2];
    const full = [1, 1, 1, 1, 1, 1, 1];
    assert.deepEqual(column(end === 100_000 ? 5 : 0).slice(0, 7), full, 'the greatest');
    assert.deepEqual(column(end === 100_000 ? 7 : 0).slice(6), [1, 1, 1, 1], 'the least');
    assert.deepEqual(column(end === 100_000 ? 4 : 5), plain, 'the last, which holds');
  }
});

test('changes, per sample and per second', () => {
  const counter = { time: Float64Array.of(0, 1e9, 1.5e9, 1.5e9), value: Float64Array.of(5, 7, 3, 4) };
  assert.deepEqual([...series(counter, 'delta').value], [NaN, 2, -4, 1]);
  const rate = series(counter, 'rate');
  assert.deepEqual([...rate.value], [NaN, 2, -8, NaN]);
  assert.deepEqual([rate.low, rate.high], [-8, 2]);
});

test('scales: shared, logarithmic from the least that was counted, and on both sides of 0', () => {
  const of = (/** @type {number[]} */ value) => series({ time: range(value.length, (i) => i),
    value: Float64Array.from(value) }, 'value');
  const [small, large] = [of([0.001, 0.1]), of([10, 50])];
  assert.deepEqual([scaleOf([small], false).high, scaleOf([small, large], false).high], [0.1, 50]);
  assert.equal(scaleOf([small, large], false).scaled(25), 0.5);
  const log = scaleOf([small], true).scaled;
  assert.ok(log(0.1) === 1 && log(0) === 0 && log(0.01) > 0.4 && log(0.01) < 0.6, `${log(0.01)}`);
  const both = scaleOf([of([-8, 8])], true);
  assert.deepEqual([both.low, both.scaled(-8), both.scaled(0), both.scaled(8)], [-8, 0, 0.5, 1]);
  assert.equal(scaleOf([of([0, 0])], true).scaled(0), 0);
});

test('a scale is shared by what is of one group, unit, run and way of showing', () => {
  const counter = (/** @type {number} */ number, /** @type {string} */ unit, group = 'device 0', source = 0) => (
    { number, label: `c${number}`, group, unit, source, low: 0, high: number });
  const counters = [counter(0, 'B'), counter(1, 'B'), counter(2, 'W'), counter(3, 'B', 'host'), counter(4, 'B'),
    counter(5, 'B', 'device 0', 1)];
  const wanted = { ...emptyArrangement(), shared: true, rate: [keyOf(counters[4])] };
  const layout = arrange([], counters, ['', ''], wanted);
  const { rows } = frameRows(layout, wanted, 0, 2000, 1);
  assert.deepEqual(rows.map(({ counter: at, shared }) => [at, shared]).sort((a, b) => Number(a[0]) - Number(b[0])),
    [[0, [0, 1]], [1, [0, 1]], [2, [2]], [3, [3]], [4, [4]], [5, [5]]]);
});
