/**
 * What pages read: the report (`stepscope.report/1`, whose schema describes every key) and its sentences
 * (`stepscope.web.words`).
 *
 * @typedef {{file: string|null, line: number|null, function: string|null, op: string|null, module: string|null,
 *   annotation: string|null}} Where
 * @typedef {{name: string, start_ns: number, dur_ns: number, track: string|null, device: number|null,
 *   step: number|null}} Evidence
 * @typedef {{id: string, rank?: number|null, rule: string, title: string, why: string, fix: string|null,
 *   cost_ns_per_step: number|null, saving_ns_per_step: number|null, predicted_step_ns: number|null,
 *   confidence: string, basis: string,
 *   device: number|null, where: Where[], evidence: Evidence[], not_determined: string|null}} Finding
 * @typedef {{rank: number|null, index: number, number: number|null, start_ns: number, dur_ns: number,
 *   host_dur_ns: number, basis: string, inferred: boolean, complete: boolean, slow: boolean}} Step
 * @typedef {{rank: number|null, device: number|null, step: number|null, phase: string, start_ns: number,
 *   dur_ns: number, parts: Record<string, number>}} AccountRow
 * @typedef {{category: string, busy: boolean, ns_per_step: number, share: number}} BreakdownPart
 * @typedef {{rank: number|null, device: number|null, steps: number, unused: boolean, step_ns: number,
 *   parts: BreakdownPart[]}} Breakdown
 * @typedef {{id: number, name: string|null, kind: string|null, memory_bytes: number|null}} Device
 * @typedef {{
 *   schema: string,
 *   tool: {name: string, version: string},
 *   profile: {format: string, framework: string|null, files: {path: string, bytes: number|null,
 *     events: number|null}[], ranks: (number|null)[], world_size: number|null, accelerators?: number|null,
 *     devices: Device[], host: string|null,
 *     epoch_ns: number|null, complete: boolean, notices: {code: string, text: string, count: number|null}[]},
 *   steps: Step[],
 *   accounting: AccountRow[],
 *   summary: Record<string, any>,
 *   findings: Finding[],
 *   plan: string[],
 *   whatif: Record<string, any>,
 *   analyses: Record<string, any> & {breakdown?: Breakdown[]},
 * }} Report
 *
 * @typedef {{saving: string, trust: string, places: string[], sites: string[], pages: string[]}} FindingWords
 *   `pages`: those whose figures it is about.
 * @typedef {{
 *   header: string[], damage: string|null, step_time: string, headlines: [string, string][],
 *   gradients: string|null, partial: boolean,
 *   healthy: boolean, untimed: boolean, told: string[], without_findings: string|null,
 *   findings: Record<string, FindingWords>,
 *   plan: string, replayed: string, notices: string[], steps: Record<string, string>,
 *   categories: Record<string, {words: string, busy: boolean}>, phases: Record<string, string>,
 *   memory: Record<string, string>, spaces: Record<string, string>, uses: Record<string, string>,
 *   capture: [string, string][], files: string[],
 *   missing: Record<string, string>, input_note: string, causes: Record<string, string>,
 * }} Words
 *
 * @typedef {{title: string, report: Report, words: Words, no_pack: string|null,
 *   traces: Record<string, number>}} Run `traces`: of a job, which run holds a rank's trace.
 * @typedef {{sentence: string, scaling: string[], achieved: string|null, findings: string[]}} ComparisonWords
 * @typedef {{document: Record<string, any>, words: ComparisonWords}} Comparison `stepscope.comparison/1`.
 * @typedef {{running: string|null, cancelled: boolean, seconds: number, elapsed: number|null, captured: number,
 *   failure: string[], profiles: number}} CaptureState `profiles`: how many are served now; the last is the newest.
 * @typedef {{missing: string|null, start: (address: string, seconds: number) => Promise<CaptureState>,
 *   cancel: () => Promise<CaptureState>, state: () => Promise<CaptureState>}} Capture `missing`: what to install first.
 * @typedef {{
 *   titles: string[],
 *   run: (at: number) => Promise<Run>,
 *   pack: (at: number) => Promise<ArrayBuffer|null>,
 *   arguments: ((at: number, ids: number[]) => Promise<object[]>)|null,
 *   saved: (runs: number[], place: Place) => Promise<string[]>,
 *   compared: boolean,
 *   comparison: () => Promise<Comparison|null>,
 *   workerUrl: () => string|null,
 *   capture: Capture|null,
 * }} Source `saved`: a report of these runs, in pieces, that opens at a place.
 *
 * @typedef {{page: string, run: number, steps: [number, number]|null, params: Record<string, string>}} Place
 * @typedef {{
 *   run: Run, report: Report, words: Words, place: Place, comparison: Comparison|null,
 *   go: (page: string, params?: Record<string, string>) => void,
 *   hasTrace: (rank: number|null|undefined) => boolean,
 *   ofRank: (rank: number, params?: Record<string, string>) => void,
 *   trace: (rank: number|null|undefined, params: Record<string, string>) => void,
 *   inSteps: (step: number|null) => boolean,
 *   scope: () => string,
 *   announce: (text: string) => void,
 * }} Context
 * @typedef {{id: string, key: string, title: string, render: (context: Context) => Node,
 *   ofOneRank?: boolean, ofSteps?: boolean}} Page `ofOneRank`: a job's report has nothing for it; `ofSteps`: it has
 *   figures that the choice of steps could limit.
 */

/** Tables and columns of the report that pages name alike. */
export const REPORT_SCHEMA = 'stepscope.report/1';
