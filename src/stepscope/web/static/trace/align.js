/** Runs that are brought together by an op: the same occurrence of it in the same step begins at the same time. */

/** @typedef {import('./model.js').Model} Model */
/** @typedef {{step: number, nth: number, onHost: boolean, kind: string, name: string}} ByOp `step`: its
 *   place among those of the first run; `nth`: how many of the name and kind begin before it in that step, on the host
 *   or on devices */

/**
 * What of all runs a slice stands for.
 * @param {Model} model
 * @param {{start: number, track: number, source: number, kind: string, name: string}} about
 * @returns {ByOp}
 */
export function opOf(model, { start, track, source, kind, name }) {
  const onHost = model.tracks[track].device === null;
  const steps = stepsOf(model, source);
  const at = Math.max(steps.findLastIndex((step) => begin(step, onHost) <= start), 0);
  const named = stepsOf(model, 0).findIndex((step) => step.name === steps[at]?.name);
  const starts = startsOf(model, source, { onHost, kind, name }, begin(steps[at], onHost));
  return { step: named >= 0 ? named : at, nth: starts.filter((time) => time < start).length, onHost, kind, name };
}

/**
 * Show the runs of the view anew, brought together at the selected op.
 * @param {import('./app.js').App} app
 */
export async function bringTogether(app) {
  const { selection, align } = app;
  if (!align) app.say('Put another run beside this one first: ranks stand on one clock');
  else if (!selection || selection.slice < 0) app.say('Nothing is selected: click a slice first');
  else align(await app.ask('op', { slice: selection.slice }));
}

/**
 * Move each further run so that its occurrence of an op begins with that of the first.
 * @param {Model} model whose runs are aligned by the op's step
 * @param {ByOp} op
 * @returns {string[]} the runs that have no such op, and stay
 */
export function alignByOp(model, op) {
  const [first, ...others] = model.sources.map((_, source) => startOf(model, source, op));
  const left = others.flatMap((start, at) => {
    if (start === null || first === null) return [model.sources[at + 1].label];
    moveBy(model, at + 1, first - start);
    return [];
  });
  const ends = model.sources.map(({ header, offset }) => header.extent_ns.map((time) => time + offset));
  model.begin = Math.min(...ends.map(([start]) => start));
  model.end = Math.max(...ends.map(([, end]) => end));
  return left;
}

/**
 * @param {Model} model
 * @param {number} source
 * @param {ByOp} op
 * @returns {number|null}
 */
function startOf(model, source, op) {
  const named = stepsOf(model, 0)[op.step]?.name;
  const steps = stepsOf(model, source);
  const step = steps.find((one) => one.name === named) ?? steps[Math.min(op.step, steps.length - 1)];
  return startsOf(model, source, op, begin(step, op.onHost))[op.nth] ?? null;
}

/**
 * When the slices of a name and kind begin, from some time on.
 * @param {Model} model
 * @param {number} source
 * @param {Omit<ByOp, 'step'|'nth'>} op
 * @param {number} from
 */
function startsOf(model, source, { onHost, kind, name }, from) {
  const names = new Set(model.texts.flatMap((text, at) => (
    text === name && model.kindNames[model.kinds[at]] === kind ? [at] : [])));
  /** @type {number[]} */
  const starts = [];
  for (const { track, first, count } of model.lanes) {
    const { source: of, device } = model.tracks[track];
    if (of !== source || (device === null) !== onHost) continue;
    for (let i = first; i < first + count; i += 1) {
      if (names.has(model.name[i]) && model.start[i] >= from) starts.push(model.start[i]);
    }
  }
  return starts.sort((a, b) => a - b);
}

/** @param {Model} model @param {number} source */
function stepsOf({ steps }, source) {
  return steps.filter((step) => step.source === source);
}

/** @param {import('./model.js').Step|undefined} step @param {boolean} onHost */
function begin(step, onHost) {
  return (onHost ? step?.hostStart : step?.start) ?? -Infinity;
}

/**
 * @param {Model} model
 * @param {number} at
 * @param {number} by
 */
function moveBy(model, at, by) {
  const source = model.sources[at];
  source.offset += by;
  for (let i = source.firstSlice; i < source.firstSlice + source.slices; i += 1) model.start[i] += by;
  for (const step of stepsOf(model, at)) {
    step.start += by;
    step.end += by;
    step.hostStart += by;
  }
  for (const { time } of model.counters.filter((counter) => counter.source === at)) {
    for (let i = 0; i < time.length; i += 1) time[i] += by;
  }
}
