/**
 * What pages read: the report (`stepscope.report/1`, whose schema describes every key) and its sentences
 * (`stepscope.web.words`).
 *
 * @typedef {import('./document.js').Where} Where
 * @typedef {import('./document.js').Evidence} Evidence
 * @typedef {import('./document.js').Finding} Finding
 * @typedef {import('./document.js').Step} Step
 * @typedef {import('./document.js').AccountingRow} AccountRow
 * @typedef {import('./document.js').BreakdownPart} BreakdownPart
 * @typedef {import('./document.js').Breakdown} Breakdown
 * @typedef {import('./document.js').Device} Device
 * @typedef {import('./document.js').Report} Report
 *
 * @typedef {{untold: string}} Untold why there is no value, in its place
 * @typedef {[string, string|Untold, string]} Headline
 * @typedef {{saving: string, trust: string, places: string[], sites: string[], pages: string[], panel: 'fusion'|null,
 *   source: {first: number, line: number, lines: string[]}|null, proof: string|null}} FindingWords `pages`: those whose
 *   figures it is about; `panel`: what shows it whole on its page; `source`: the user's lines at its first place;
 *   `proof`: the command that tries its cures.
 * @typedef {{
 *   header: string[], damage: string|null, step_time: Headline, narrow: Headline|null, headlines: Headline[],
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
 * @typedef {{title: string, side: string|null, report: Report, words: Words, no_pack: string|null,
 *   traces: Record<string, number>}} Run `traces`: of a job, which run holds a rank's trace.
 * @typedef {{sentence: string, scaling: string[], achieved: string|null, findings: string[]}} ComparisonWords
 * @typedef {{document: import('./document.js').ComparisonDocument, words: ComparisonWords}} Comparison
 * @typedef {{running: string|null, cancelled: boolean, seconds: number, elapsed: number|null, captured: number,
 *   failure: string[], profiles: number}} CaptureState `profiles`: how many are served now; the last is the newest.
 * @typedef {{missing: string|null, start: (address: string, seconds: number) => Promise<CaptureState>,
 *   cancel: () => Promise<CaptureState>, state: () => Promise<CaptureState>}} Capture `missing`: what to install first.
 * @typedef {{
 *   titles: string[],
 *   run: (at: number) => Promise<Run>,
 *   progress: ((at: number) => Promise<{stage: string, done: number, total: number}>)|null,
 *   pack: (at: number) => Promise<ArrayBuffer|null>,
 *   arguments: ((at: number, ids: number[]) => Promise<object[]>)|null,
 *   sql: ((at: number) => import('../trace/app.js').Sql)|null,
 *   saved: (runs: number[], place: Place) => Promise<string[]>,
 *   compared: boolean,
 *   picks: boolean,
 *   comparison: (before: number, after: number) => Promise<Comparison|null>,
 *   workerUrl: () => string|null,
 *   capture: Capture|null,
 * }} Source `saved`: a report of these runs, in pieces, that opens at a place; `picks`: any two can be compared.
 *
 * @typedef {{page: string, run: number, steps: [number, number]|null, params: Record<string, string>,
 *   queries?: import('./queries.js').Query[]}} Place `queries`: those that the reader has named; absent: as before.
 * @typedef {{
 *   run: Run, report: Report, words: Words, place: Place, comparison: Comparison|null, titles: string[],
 *   picks: boolean,
 *   go: (page: string, params?: Record<string, string>) => void,
 *   hasTrace: (rank: number|null|undefined) => boolean,
 *   ofRank: (rank: number, params?: Record<string, string>) => void,
 *   trace: (rank: number|null|undefined, params: Record<string, string>) => void,
 *   inSteps: (step: number|null) => boolean,
 *   scope: () => string,
 *   announce: (text: string) => void,
 * }} Context
 * @typedef {{id: string, key: string, title: string, render: (context: Context) => Node,
 *   ofJob?: (context: Context) => Node, ofSteps?: boolean, has?: (report: Report) => boolean}} Page `ofJob`: what it
 *   shows of a job; `ofSteps`: it has figures that the choice of steps could limit; `has`: whether it has anything.
 */

/**
 * An analysis of the report, on a page that is only shown where there is one.
 * @template T
 * @param {T|undefined} value
 * @returns {T}
 */
export function there(value) {
  if (value === undefined) throw new Error('The report does not hold what this page shows.');
  return value;
}
