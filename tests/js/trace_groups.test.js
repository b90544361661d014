import assert from 'node:assert/strict';
import test from 'node:test';
import { grouped, parseAsked } from '../../src/stepscope/web/static/trace/groups.js';
import { model } from './made_model.js';

const made = model([[[[0, 5, 'mm'], [10, 500, 'copy'], [1000, 50, 'mm']]], [[[0, 100, 'step 4'], [200, 7, 'mm']]]],
  { 'step 4': [4, 255], mm: [1, 0], copy: [1, 1] });

test('a query is a search, fields to group by and one to pivot', () => {
  assert.deepEqual(parseAsked('kind:kernel dur>2us GROUP BY name, track pivot cat'),
    { search: 'kind:kernel dur>2us', by: ['name', 'track'], pivot: 'cat', error: null });
  assert.deepEqual(parseAsked('group by kind').by, ['kind']);
  assert.match(String(grouped(made, 'group by colour').error), /colour is nothing to group by/);
  assert.match(String(grouped(made, 'kind:nonsense group by name').error), /nothing here is of the kind/);
});

test('groups hold the count, total, mean and longest, those that take most first', () => {
  const found = grouped(made, 'kind:kernel group by name');
  assert.deepEqual(found.columns.map(({ name }) => name), ['name', 'count', 'total_ns', 'mean_ns', 'max_ns']);
  assert.deepEqual(found.rows, [['copy', 1, 500, 500, 500], ['mm', 3, 62, 21, 50]]);
  const across = grouped(made, 'kind:kernel group by name pivot track');
  assert.deepEqual(across.columns.slice(5).map(({ name }) => name),
    ['track device 0 stream 0', 'track device 0 stream 1']);
  assert.deepEqual(across.rows[1].slice(5), [55, 7]);
});
