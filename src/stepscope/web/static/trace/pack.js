/**
 * Reads a pack (src/stepscope/web/columns.py writes it): a plain header and sections gzipped one by one, each inflated
 * when it is first asked for.
 */

/** @typedef {{type: string, count: number, width: number, offset: number, bytes: number, raw: number,
 *   delta?: boolean, zigzag?: boolean, nullable?: boolean}} Section */
/** @typedef {Float64Array|Uint32Array} Ints */
/** @typedef {{name: string, start_ns: number, end_ns: number, track: number|null}} Piece `track`: its place
 *   in its run */
/** @typedef {{id: string, title: string, evidence: Piece[]}} Finding */
/** @typedef {{id: string, label: string, type: string, group: string, device: number|null, holds: string|null,
 *   lanes: [number, number][]}} PackedTrack `lanes`: of each the start of its first slice, and how many it has */
/** @typedef {{id: string, label: string, group: string, unit: string|null}} PackedCounter */
/** @typedef {{name: string, label: string, busy: boolean}} Category */
/** @typedef {{slices: number, extent_ns: [number, number], rank: number|null, epoch_ns: string|null, host: string|null,
 *   framework: string|null, files: string[], kinds: string[], flow_kinds: string[], categories: Category[],
 *   groups: {id: string, about: string|null}[], tracks: PackedTrack[], counters: PackedCounter[],
 *   steps: {name: string, start_ns: number, end_ns: number, host_start_ns: number}[], findings: Finding[],
 *   losses: string[]}} Header what stands in the section of that name (src/stepscope/web/pack.py) */

const MAGIC = 'SSPACK01';

export class Pack {
  /** @param {ArrayBuffer} buffer */
  constructor(buffer) {
    const bytes = new Uint8Array(buffer);
    const magic = String.fromCharCode(...bytes.subarray(0, MAGIC.length));
    if (bytes.length < 12 || magic !== MAGIC) throw new Error('this is not a pack of a trace');
    const length = new DataView(buffer).getUint32(MAGIC.length, true);
    const begin = MAGIC.length + 4;
    const header = JSON.parse(new TextDecoder().decode(bytes.subarray(begin, begin + length)));
    /** @type {Record<string, Section>} */
    this.sections = header.sections;
    /** @type {number} */
    this.slices = header.slices;
    this.version = header.version;
    if (this.version !== 1) throw new Error(`this page cannot show packs of version ${this.version}`);
    this.bytes = bytes;
    this.begin = begin + length;
  }

  /** @param {string} name */
  has(name) {
    return name in this.sections;
  }

  /** @returns {Promise<Header>} */
  header() {
    return this.json('header');
  }

  /**
   * What a section of JSON holds: the caller knows its type.
   * @template T
   * @param {string} name
   * @returns {Promise<T>}
   */
  async json(name) {
    return JSON.parse(new TextDecoder().decode(await this.raw(name)));
  }

  /**
   * All values of a column: Uint32Array where they fit, else Float64Array; absent ones are NaN.
   * @param {string} name
   * @returns {Promise<Ints>}
   */
  async ints(name) {
    return decodeInts(await this.raw(name), this.sections[name]);
  }

  /**
   * @param {string} name
   * @returns {Promise<Float64Array>}
   */
  async floats(name) {
    const planes = await this.raw(name);
    const count = this.sections[name].count;
    const joined = new Uint8Array(count * 8);
    for (let plane = 0; plane < 8; plane += 1) {
      for (let i = 0; i < count; i += 1) joined[i * 8 + plane] = planes[plane * count + i];
    }
    return new Float64Array(joined.buffer);
  }

  /**
   * The inflated bytes of a section.
   * @param {string} name
   * @returns {Promise<Uint8Array>}
   */
  async raw(name) {
    const about = this.sections[name];
    if (!about) throw new Error(`the pack has no section ${name}`);
    const part = this.bytes.subarray(this.begin + about.offset, this.begin + about.offset + about.bytes);
    return inflate(part, about.raw);
  }
}

/**
 * @param {Uint8Array} part
 * @param {number} size bytes that must come out
 * @returns {Promise<Uint8Array>}
 */
export async function inflate(part, size) {
  if (typeof DecompressionStream === 'undefined') {
    throw new Error('this browser is too old to open the trace: it has no DecompressionStream');
  }
  const stream = new Blob([/** @type {BlobPart} */ (part)]).stream().pipeThrough(new DecompressionStream('gzip'));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  if (bytes.length !== size) throw new Error('the pack is damaged');
  return bytes;
}

/**
 * @param {Uint8Array} planes
 * @param {Section} about
 * @returns {Ints}
 */
export function decodeInts(planes, about) {
  const { count, width } = about;
  if (width <= 4 && !about.nullable) {
    const small = joinedPlanes(planes, count, width);
    return about.zigzag || about.delta ? summed(small, Boolean(about.zigzag), Boolean(about.delta)) : small;
  }
  const values = widePlanes(planes, count, width);
  if (about.nullable) for (let i = 0; i < count; i += 1) values[i] = values[i] === 0 ? NaN : values[i] - 1;
  if (about.zigzag) signed(values);
  if (about.delta) for (let i = 1; i < count; i += 1) values[i] += values[i - 1];
  return values;
}

/**
 * @param {Uint8Array} planes
 * @param {number} count
 * @param {number} width 1 to 8
 */
function widePlanes(planes, count, width) {
  const values = new Float64Array(count);
  for (let plane = width - 1; plane >= 0; plane -= 1) {
    const base = plane * count;
    for (let i = 0; i < count; i += 1) values[i] = values[i] * 256 + planes[base + i];
  }
  return values;
}

/**
 * Even codes are what is not negative: 0, 1, 2 of 0, 2, 4, and -1, -2 of 1, 3.
 * @param {Float64Array} values changed in place
 */
function signed(values) {
  for (let i = 0; i < values.length; i += 1) {
    const v = values[i];
    values[i] = v % 2 === 0 ? v / 2 : -(v + 1) / 2;
  }
}

/**
 * @param {Uint8Array} planes
 * @param {number} count
 * @param {number} width 1 to 4
 */
function joinedPlanes(planes, count, width) {
  const values = new Uint32Array(planes.subarray(0, count));
  const [second, third, fourth] = [1, 2, 3].map((plane) => planes.subarray(plane * count, (plane + 1) * count));
  if (width === 2) {
    for (let i = 0; i < count; i += 1) values[i] |= second[i] << 8;
  } else if (width === 3) {
    for (let i = 0; i < count; i += 1) values[i] |= (second[i] << 8) | (third[i] << 16);
  } else if (width === 4) {
    for (let i = 0; i < count; i += 1) values[i] |= (second[i] << 8) | (third[i] << 16) | (fourth[i] << 24);
  }
  return values;
}

/**
 * @param {Uint32Array} coded
 * @param {boolean} zigzag
 * @param {boolean} delta
 * @returns {Float64Array}
 */
function summed(coded, zigzag, delta) {
  const values = new Float64Array(coded.length);
  let sum = 0;
  for (let i = 0; i < coded.length; i += 1) {
    const value = zigzag ? (coded[i] >>> 1) ^ -(coded[i] & 1) : coded[i];
    sum = delta ? sum + value : value;
    values[i] = sum;
  }
  return values;
}
