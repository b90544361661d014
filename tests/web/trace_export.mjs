// A range as the viewer exports it: node trace_export.mjs PACK BEGIN END OUT, both null for everything.
import { readFileSync, writeFileSync } from 'node:fs';
import { Engine } from '../../src/stepscope/web/static/trace/engine.js';

const [file, begin, end, out] = process.argv.slice(2);
const engine = new Engine();
const bytes = readFileSync(file);
const buffer = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength);
const meta = await engine.load({ packs: [buffer], options: {} }, () => {});
const { text, left } = await engine.events({ begin: begin === 'null' ? meta.begin : Number(begin),
  end: end === 'null' ? meta.end + 1 : Number(end), tracks: meta.tracks.map((track) => track.number) });
writeFileSync(out, text);
console.log(JSON.stringify({ left }));
