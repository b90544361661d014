// Sums of a range as the viewer makes them: node trace_region.mjs PACK BEGIN END -> JSON.
import { readFileSync } from 'node:fs';
import { Engine } from '../../src/stepscope/web/static/trace/engine.js';

const [file, begin, end] = process.argv.slice(2);
const engine = new Engine();
const bytes = readFileSync(file);
const buffer = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength);
const progress = [];
const meta = await engine.load({ packs: [buffer], options: {} }, (done, of) => progress.push(done / of));
const range = { begin: Number(begin), end: Number(end), tracks: meta.tracks.map((track) => track.number) };
const { sums, devices } = engine.area(range);
const gaps = await engine.gaps({ begin: -Infinity, end: Infinity, device: null });
const first = engine.search({ text: 'kind:kernel|collective|copy|memset' });
const idle = engine.search({ text: 'kind:idle' });
const details = await engine.details[0].all();
const costs = Array.from(engine.model.id, (id, at) => [id, details(at).filter(({ table }) => table === 'cost')])
  .filter(([, found]) => found.length)
  .map(([id, found]) => [id, Object.fromEntries(found.map(({ name, value }) => [name, value]))]);
console.log(JSON.stringify({
  costs,
  slices: meta.slices, end: meta.end, steps: meta.steps.map((step) => step.name),
  progress, losses: meta.sources[0].header.losses, tracks: meta.tracks, devices: devices.map(({ group, parts }) => ({ group, parts })),
  sums: sums.map((sum) => ({ ...sum, track: meta.tracks[sum.track].id })),
  gaps: { count: gaps.count, total: gaps.total, listed: gaps.listed.slice(0, 30) },
  found: { count: first.count, total: first.total }, idle: { count: idle.count, total: idle.total },
  info: first.listed.length ? await engine.info({ slice: first.listed[0].slice }) : null,
  ids: Array.from(engine.model.id).filter((id) => id >= 0).length,
}));
