import assert from 'node:assert/strict';
import test from 'node:test';
import { locator, shorten, toldApart, visible, withoutNoise } from '../../src/stepscope/web/static/core/text.js';

test('what acts on the text around it is written out', () => {
  assert.equal(visible('\u001b[31mred\u0007\n'), '\\x1b[31mred\\x07\\n');
  assert.equal(visible('a\u202eb\u200bc\ufeff\u2028'), 'a\\u202eb\\u200bc\\ufeff\\u2028');
  assert.equal(visible('\ud800x\u{e0001}'), '\\ud800x\\U000e0001');
  assert.equal(visible('שלום <b>"&\' مرحبا 矩陣 😀'), 'שלום <b>"&\' مرحبا 矩陣 😀');
});

test('a long name loses its middle, and is not looked at further', () => {
  const name = `start${'x'.repeat(1_000_000)}end`;
  assert.equal(shorten(name, 100).length, 100);
  assert.ok(shorten(name, 100).startsWith('startxx'));
  assert.equal(shorten('short'), 'short');
});

test('a C++ name loses what says nothing', () => {
  assert.equal(withoutNoise('void at::(anonymous namespace)::f<std::array<int> >(int)'), 'at::f<std::array<int>>(int)');
});

test('the most exact part of a place', () => {
  const nothing = { file: null, line: null, function: null, op: null, module: null, annotation: null };
  assert.equal(locator({ ...nothing, file: 'a.py', line: 3, op: 'x' }), 'a.py:3');
  assert.equal(locator({ ...nothing, op: 'aten::add', module: 'm' }), 'aten::add');
  assert.equal(locator(null), null);
});

test('long names that begin alike are shown up to where they differ', () => {
  const kernel = (/** @type {string} */ functor) => (
    `void at::native::vectorized_elementwise_kernel<4, at::native::${functor}<float>, at::detail::Array<char*, 3>>`);
  const names = [...['CUDAFunctor_add', 'FillFunctor', 'FillFunctor'].map(kernel), 'volta_sgemm_128x32_nt',
    `other_${'kernel_'.repeat(20)}`];
  const shown = toldApart(names);
  assert.deepEqual([...shown.keys()].sort(), [kernel('CUDAFunctor_add'), kernel('FillFunctor')]);
  assert.ok(shown.get(kernel('FillFunctor'))?.startsWith('at::native::vect…tive::FillFunctor<float>'));
  const deep = [1, 2, 13].map((at) => `${'model/'.repeat(12)}layer_${at}/${'inner/'.repeat(12)}linear_${at % 2}`);
  const starts = [...toldApart([...deep, deep[0].replace('linear_1', 'linear_2')]).values()]
    .map((one) => one.slice(0, 60));
  assert.equal(new Set(starts).size, 4);
});
