// Collectives across ranks as the viewer joins them: node trace_links.mjs JOB (its runs as JSON, packs as paths) -> JSON.
import { readFileSync } from 'node:fs';
import { together } from '../../src/stepscope/web/static/pages/beside.js';
import { Engine } from '../../src/stepscope/web/static/trace/engine.js';

const buffer = (path) => {
  const bytes = readFileSync(path);
  return bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength);
};
const { job, ranks, links } = JSON.parse(readFileSync(process.argv[2], 'utf8'));
const shown = ranks.map(({ at, run }) => ({ at, run }));
const joint = together({ job, at: 0, choices: [] }, shown);
const engine = new Engine();
const { align, labels, moves } = joint;
await engine.load({ packs: ranks.map(({ pack }) => buffer(pack)), options: { align, labels, moves,
  links: { pack: buffer(links), ranks: joint.ranks } } }, () => {});
await engine.finish();
const { model } = engine;
const groups = [...new Set(model.peers.values())].map((slices) => slices.map((slice) => ({
  name: model.texts[model.name[slice]], start: model.start[slice], end: model.start[slice] + model.dur[slice],
  source: model.tracks[model.lanes.find(({ first, count }) => slice >= first && slice < first + count).track].source,
})));
console.log(JSON.stringify({ groups, clocks: joint.clocks }));
