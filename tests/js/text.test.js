import assert from 'node:assert/strict';
import test from 'node:test';
import { locator, shorten, visible, withoutNoise } from '../../src/stepscope/web/static/core/text.js';

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
