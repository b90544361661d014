/**
 * Levels of detail of a lane: blocks that stand for what starts within a power-of-four stretch of time, each with the
 * busy time inside, so that a pixel can show the true share of it that was busy.
 */

/** @typedef {{resolution: number, count: number, start: Float64Array, dur: Float64Array|Uint32Array|Float32Array,
 *   busy: Float32Array|null, name: Uint16Array|Uint32Array, items: Uint32Array|null}} Level `busy` and `items` are null
 *   in the level of the slices themselves */

const FINEST_NS = 1024;
const FACTOR = 4;
const FEWEST = 256;
const WORTH = 0.5;

/**
 * The slices of a lane themselves, as a level.
 * @param {import('./model.js').Model} model
 * @param {import('./model.js').Lane} lane
 * @returns {Level}
 */
export function finest(model, lane) {
  const end = lane.first + lane.count;
  return {
    resolution: 0, count: lane.count, start: model.start.subarray(lane.first, end),
    dur: model.dur.subarray(lane.first, end), busy: null, name: model.name.subarray(lane.first, end), items: null,
  };
}

/**
 * All levels of a lane, finest first. A level is kept where it at least halves the one before.
 * @param {import('./model.js').Model} model
 * @param {import('./model.js').Lane} lane
 * @returns {Level[]}
 */
export function levelsOf(model, lane) {
  let current = finest(model, lane);
  const levels = [current];
  const span = model.end - model.begin;
  for (let resolution = FINEST_NS; resolution < span && current.count > FEWEST; resolution *= FACTOR) {
    const blocks = countBlocks(current, resolution);
    if (blocks < current.count * WORTH) {
      current = merged(current, resolution, blocks);
      levels.push(current);
    }
  }
  return levels;
}

/**
 * How many blocks `merged` makes: most levels are not worth making.
 * @param {Level} from
 * @param {number} resolution
 */
function countBlocks({ start, dur, count }, resolution) {
  const per = 1 / resolution;
  let blocks = 0;
  let bucket = -1;
  for (let i = 0; i < count; i += 1) {
    const here = Math.floor(start[i] * per);
    const isShort = dur[i] < resolution;
    if (isShort && here === bucket) continue;
    blocks += 1;
    bucket = isShort ? here : -1;
  }
  return blocks;
}

/**
 * @param {Level} from
 * @param {number} resolution
 * @param {number} count of blocks
 * @returns {Level}
 */
function merged(from, resolution, count) {
  const start = new Float64Array(count);
  const dur = new Float64Array(count);
  const busy = new Float32Array(count);
  const items = new Uint32Array(count);
  const name = from.name instanceof Uint16Array ? new Uint16Array(count) : new Uint32Array(count);
  const per = 1 / resolution;
  let at = -1;
  let bucket = -1;
  let most = 0;
  for (let i = 0; i < from.count; i += 1) {
    const begin = from.start[i];
    const length = from.dur[i];
    const work = from.busy ? from.busy[i] : length;
    const held = from.items ? from.items[i] : 1;
    const here = Math.floor(begin * per);
    if (length < resolution && here === bucket) {
      dur[at] = begin + length - start[at];
      busy[at] += work;
      items[at] += held;
      if (work > most) {
        most = work;
        name[at] = from.name[i];
      }
    } else {
      at += 1;
      start[at] = begin;
      dur[at] = length;
      busy[at] = work;
      items[at] = held;
      name[at] = from.name[i];
      most = work;
      bucket = length < resolution ? here : -1;
    }
  }
  return { resolution, count, start, dur, busy, name, items };
}

/**
 * The coarsest level that is still finer than a pixel.
 * @param {Level[]} levels
 * @param {number} perPixel ns
 * @returns {Level}
 */
export function levelFor(levels, perPixel) {
  let fitting = levels[0];
  for (const level of levels) {
    if (level.resolution > perPixel) break;
    fitting = level;
  }
  return fitting;
}

/**
 * The first of `count` rising values that is no less than `wanted`.
 * @param {ArrayLike<number>} values
 * @param {number} wanted
 * @param {number} [low]
 * @param {number} [high]
 * @returns {number}
 */
export function lowerBound(values, wanted, low = 0, high = values.length) {
  let [from, to] = [low, high];
  while (from < to) {
    const middle = (from + to) >> 1;
    if (values[middle] < wanted) from = middle + 1;
    else to = middle;
  }
  return from;
}

/**
 * The first entry that ends after a time: entries are sorted and do not overlap.
 * @param {Pick<Level, 'count'|'start'|'dur'>} level
 * @param {number} time
 * @returns {number}
 */
export function firstAfter(level, time) {
  const at = lowerBound(level.start, time, 0, level.count);
  return at > 0 && level.start[at - 1] + level.dur[at - 1] > time ? at - 1 : at;
}
