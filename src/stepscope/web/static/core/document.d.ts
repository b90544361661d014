/** Made from src/stepscope/document/ by `make docs`; change it there. */

/** Why each step takes as long as it does. Times are integer nanoseconds, sizes are bytes, shares are fractions of one. An absent fact is null, never 0. Within major version 1 keys are only ever added: ignore the ones you do not know. */
export interface Report {
  schema: 'stepscope.report/1';
  tool: Tool;
  profile: Profile;
  steps: Step[];
  accounting: AccountingRow[];
  summary: Summary;
  findings: Finding[];
  plan: string[];
  whatif: WhatIf;
  analyses: Analyses;
}

/** What wrote a document. */
export interface Tool {
  name: 'stepscope';
  version: string;
}

/** What was read, and how whole it is. */
export interface Profile {
  format: string;
  framework: string | null;
  files: File[];
  ranks: (number | null)[];
  world_size?: number | null;
  accelerators?: number | null;
  devices: Device[];
  host: string | null;
  complete: boolean;
  notices: Notice[];
  epoch_ns?: number | null;
  events?: Record<string, number>;
  losses?: Loss[];
}

/** An input file. */
export interface File {
  path: string;
  bytes: number | null;
  events: number | null;
}

/** A device. */
export interface Device {
  id: number;
  name: string | null;
  kind: string | null;
  memory_bytes?: number | null;
}

/** Something to know about the profile itself. */
export interface Notice {
  code: string;
  text: string;
  count: number | null;
  says_count?: boolean;
}

/** Something of the input that could not become rows. */
export interface Loss {
  code: string;
  count: number;
  text: string;
  first_offset: number | null;
  lost_events: number;
  lost_bytes: number;
  damaged: boolean;
}

/** A step. */
export interface Step {
  number: number | null;
  rank: number | null;
  dur_ns: number;
  host_dur_ns: number | null;
  basis: 'device' | 'host';
  complete: boolean;
  index: number;
  start_ns: number;
  inferred: boolean;
  slow: boolean;
}

/** A device's time in one step, or before, between or after the steps. */
export interface AccountingRow {
  device: number | null;
  phase: 'step' | 'before' | 'after' | 'gap';
  start_ns: number;
  dur_ns: number;
  rank: number | null;
  step: number | null;
  parts: Record<string, number>;
}

/** The diagnosis, and the figures above everything else. */
export interface Summary {
  verdict: string;
  bottleneck: string;
  step_time_ns: StepTime;
  unrecorded_step_ns?: number | null;
  steps_used: number;
  steps_slow: number;
  step_basis: 'device' | 'host' | null;
  inferred: boolean;
  parts_ns_per_step: Record<string, number>;
  parts_share: Record<string, number>;
  device_busy_share: number | null;
  device_busy_share_without_collectives: number | null;
  device_ops_share: TwoShares;
  low_precision_share: TwoShares;
  precision_known_share?: number | null;
  launch_wait_share: number | null;
  idle_between_steps_ns: number | null;
  idle_within_steps_ns: number | null;
  phases_ns_per_step: Phases | null;
  step_source?: string;
  duty_cycle_share?: number | null;
}

/** Duration of the used steps. */
export interface StepTime {
  median: number | null;
  p95: number | null;
  mean?: number | null;
}

/** A share in two ways. */
export interface TwoShares {
  by_count: number | null;
  by_time: number | null;
}

/** Device time by what the program does. */
export interface Phases {
  forward: number;
  loss: number;
  backward: number;
  communication: number;
  optimizer: number;
  between_steps: number;
  unknown: number;
}

/** What costs time, why, and what to do about it. */
export interface Finding {
  title: string;
  cost_ns_per_step: number | null;
  saving_ns_per_step: number | null;
  saving_after_ns_per_step?: number | null;
  where: Where[];
  id: string;
  rule: string;
  basis: 'measured' | 'modelled' | 'heuristic';
  confidence: 'high' | 'medium' | 'low';
  rank: number | null;
  device: number | null;
  predicted_step_ns: number | null;
  best_step_ns?: number | null;
  options?: Option[];
  prediction_basis: 'first_order' | 'replay' | null;
  why: string;
  fix: string;
  fix_set: FixPart[];
  evidence: Evidence[];
  not_determined: string | null;
  provable?: boolean;
  seen_once?: boolean;
}

/** A place in the user's program, as exactly as it was recorded. */
export interface Where {
  file: string | null;
  line: number | null;
  function: string | null;
  op: string | null;
  module: string | null;
  annotation: string | null;
  defined?: boolean;
  ns_per_step?: number | null;
}

/** One cure of several. */
export interface Option {
  title: string;
  predicted_step_ns: number;
  best_step_ns: number | null;
  workers?: number | null;
}

/** One of the places that must be fixed together. */
export interface FixPart {
  title: string;
  where: Where | null;
  fix: string;
  cost_ns_per_step: number;
  saving_alone_ns_per_step: number | null;
}

/** A slice of the trace that shows a finding. */
export interface Evidence {
  track: string | null;
  name: string;
  start_ns: number;
  dur_ns: number;
  device: number | null;
  step: number | null;
}

/** How far the replay can be trusted, and the step time with every finding of the plan fixed. */
export interface WhatIf {
  replay_error: number | null;
  residual_share: number | null;
  reason: string | null;
  combined_step_ns: number | null;
}

/** A value per analysis; one that had nothing to look at may be missing. */
export interface Analyses {
  breakdown?: Breakdown[];
  idle?: Idle;
  functions?: FunctionUse[];
  launch_delay?: LaunchDelay[];
  syncs?: Sync[];
  copies?: Copy[];
  overlap?: Overlap[];
  critical_path?: CriticalPath;
  kernels?: Kernel[];
  precision?: Precision;
  placement?: Placement;
  logged_placement?: LoggedOp[];
  minor_findings?: Finding[];
  xla?: Xla;
  lazy_metrics?: LazyMetrics;
  ops?: Ops;
  layers?: Layers[];
  annotations?: Annotations;
  counters?: CounterUse[];
  network?: NetworkUse[];
  serving?: Serving;
  memory?: Memory;
  program_memory?: ProgramMemory;
  roofline?: Roofline;
  mfu?: Utilisation[];
  op_tree?: Program[];
  input?: InputPipeline;
  ranks?: Ranks;
  over_ranks?: OverRanks;
  gradients?: Gradients;
  collectives?: Traffic[];
}

/** Mean over the used steps of one device. */
export interface Breakdown {
  unused?: boolean;
  rank: number | null;
  device: number | null;
  basis: 'device' | 'host';
  steps: number;
  step_ns: number;
  behind_ns?: number | null;
  parts: BreakdownPart[];
  ended_last?: number | null;
}

/** What one category takes of a step. */
export interface BreakdownPart {
  category: string;
  busy: boolean;
  ns_per_step: number;
  share: number;
  label: string;
}

/** When devices were idle. */
export interface Idle {
  per_device: DeviceIdle[];
  gaps: Gap[];
}

/** Idle time of one device. */
export interface DeviceIdle {
  device: number | null;
  total_ns: number;
  between_steps_ns: number | null;
  within_steps_ns: number | null;
}

/** A stretch in which a device had nothing to do. */
export interface Gap {
  device: number | null;
  step: number | null;
  start_ns: number;
  dur_ns: number;
  parts: Record<string, number>;
  op: string | null;
  where: Where | null;
  crosses_step: boolean;
  thread: string | null;
  launch: string | null;
  blocking: string | null;
}

/** A Python function. */
export interface FunctionUse {
  name: string;
  self_ns: number;
  count: number;
}

/** Launch call's start to device start. */
export interface LaunchDelay {
  device: number | null;
  count: number;
  median_ns: number | null;
  p95_ns: number | null;
  waiting_share: number | null;
}

/** A place where the host waits for a device. */
export interface Sync {
  op: string | null;
  device?: number | null;
  per_step: number | null;
  blocked_ns_per_step: number | null;
  cost_ns_per_step: number | null;
  where: Where | null;
  call: string | null;
  count: number;
  cause?: string | null;
}

/** Copies at one place. */
export interface Copy {
  direction: string;
  source_memory: string;
  op: string | null;
  device?: number | null;
  per_step: number | null;
  bytes_per_step: number | null;
  exposed_ns_per_step: number | null;
  every_step: boolean | null;
  target_memory: string;
  count: number;
  bytes: number | null;
  launch_link: 'recorded' | 'heuristic';
  where: Where | null;
}

/** What other work hides. */
export interface Overlap {
  what: 'collectives' | 'copies';
  ns_per_step: number;
  hidden_ns_per_step: number;
  hidden_share: number;
}

/** The chain of ops, launches, waits and host work that sets the step time. */
export interface CriticalPath {
  why_not: string | null;
  steps: number | null;
  total_ns: number | null;
  parts: Record<string, number> | null;
  ops: CriticalElement[];
}

/** What is part of the critical path, all of one name and kind of time. */
export interface CriticalElement {
  name: string | null;
  category: string;
  total_ns: number;
  share: number;
  count: number;
  zero_ns_per_step: number | null;
}

/** A kernel in the used steps. */
export interface Kernel {
  name: string;
  device?: number | null;
  op?: string | null;
  total_ns: number;
  share: number;
  count: number;
  mean_ns?: number;
  max_ns?: number;
  precision: string | null;
  tensor_core: 'yes' | 'no' | 'unknown';
  tensor_core_eligible?: boolean;
  family: string | null;
  precision_reason?: string;
  tensor_core_reason?: string;
  min_ns?: number;
  launch?: KernelLaunch;
}

/** How a kernel was launched. */
export interface KernelLaunch {
  grid?: number[] | null;
  block?: number[] | null;
  registers?: number | null;
  shared_memory?: number | null;
  occupancy_pct?: number | null;
  blocks?: number | null;
}

/** Number formats and tensor cores. */
export interface Precision {
  low_precision_share: TwoShares;
  tensor_core_share: TensorCoreShare;
  eligible_unused_ns_per_step: number | null;
  known_by_time?: number | null;
}

/** Kernel time by whether tensor (matrix) cores were used. */
export interface TensorCoreShare {
  yes: number | null;
  no: number | null;
  unknown: number | null;
}

/** Where ops ran. */
export interface Placement {
  host_ops: number | null;
  device_ops: number | null;
  host_ns?: number;
  device_ns?: number;
}

/** An op on the CPU by a log of device placement. */
export interface LoggedOp {
  name: string;
  device: string;
  also_on: string | null;
  per_step: number;
  ns_per_step: number;
  op: string;
  count: number;
}

/** What XLA did in the used steps; absent from profiles without its ops. */
export interface Xla {
  duty_cycle: DutyCycle[];
  graph_building: GraphBuilding | null;
  compilations: Compilation[];
}

/** How busy compiled modules keep a device. */
export interface DutyCycle {
  device: number;
  executions: number | null;
  executing_ns_per_step: number | null;
  share: number | null;
  collective_share: number | null;
}

/** Time in which the host builds graphs. */
export interface GraphBuilding {
  ns_per_step: number;
  overlapped_share: number | null;
}

/** A compilation inside the profile. */
export interface Compilation {
  step: number | null;
  dur_ns: number;
  module: string | null;
  parameters: string | null;
  where: Where | null;
  start_ns: number;
  previous_parameters: string | null;
  again: boolean;
  changed: string | null;
}

/** What PyTorch/XLA counted of itself (metrics_report()) in the recorded window, of which the used steps are a part; absent where that was not kept with the profile. */
export interface LazyMetrics {
  steps: number | null;
  counted: Counted[];
}

/** A counter of PyTorch/XLA. */
export interface Counted {
  name: string;
  count: number;
  total: number | null;
  unit: 'ns' | 'bytes' | null;
  tells: boolean;
}

/** Ops of the framework that began in the used steps; times and counts are sums over those. */
export interface Ops {
  launch_cost_ns: number | null;
  device_ns: number;
  outside_ns: number;
  types: number;
  places: number;
  by_type: OpUse[];
  by_place: OpUse[];
}

/** Ops of one type, or of one type and place. */
export interface OpUse {
  op: string;
  side: 'host' | 'device';
  count: number;
  total_ns: number;
  mean_ns: number;
  self_ns: number;
  device_self_ns: number;
  share: number;
  launch_sized: boolean | null;
  where: Where | null;
  name: string | null;
  device_ops: number;
  device_ns: number;
}

/** The layers on one device. */
export interface Layers {
  device: number | null;
  total_ns_per_step: number;
  outside_ns_per_step: number;
  count: number;
  layers: Layer[];
  alike?: AlikeLayers[];
}

/** A layer of the model. */
export interface Layer {
  path: string;
  forward_ns_per_step: number;
  backward_ns_per_step: number;
  share: number;
  kernels_per_step: number;
  whole_ns_per_step: number;
}

/** Layers that are alike. */
export interface AlikeLayers {
  whole: Layer;
  layers: number;
  each: Layer[];
}

/** Time per annotation: the ranges that the program or its framework named (record_function, TraceAnnotation, xp.Trace, tf.profiler.experimental.Trace), over the used steps. Steps are none. Absent where there is none. */
export interface Annotations {
  steps: number;
  devices: number;
  count: number;
  outside: AnnotationTimes;
  annotations: Annotation[];
}

/** Sums over the used steps, of all threads and of all used devices. */
export interface AnnotationTimes {
  host_ns: number;
  device_ns: number | null;
  idle_ns: number | null;
  per_step: AnnotationMeans;
}

/** The mean per step, of devices also per device. */
export interface AnnotationMeans {
  host_ns: number;
  device_ns: number | null;
  idle_ns: number | null;
}

/** A range that the program names. */
export interface Annotation {
  name: string;
  count: number;
  per_step: number;
  whole: AnnotationTimes;
  own: AnnotationTimes;
}

/** A value that a device counted. */
export interface CounterUse {
  name: string;
  device: number;
  count: number;
  least: number;
  mean: number;
  most: number;
}

/** Exchanges of one kind over the network. */
export interface NetworkUse {
  name: string;
  count: number;
  ns: number;
  median_ns: number;
  longest_ns: number;
}

/** Iterations of a server of language models, as the names of its ranges tell them. Absent where none does. */
export interface Serving {
  server: string;
  basis: 'step' | 'host range' | 'module';
  iterations_recorded: number;
  decode_tokens_per_s: number | null;
  exact: boolean;
  phases: ServedPhase[];
}

/** Iterations that do the same kind of work. */
export interface ServedPhase {
  phase: 'prefill' | 'decode' | 'mixed' | 'batch' | 'draft' | 'idle' | 'unknown';
  iterations: number;
  requests: number | null;
  prefill_tokens: number | null;
  decode_tokens: number | null;
  latency_ns: Latency;
  ns_per_token: number | null;
  prefill_tokens_per_s: number | null;
  decode_tokens_per_s: number | null;
  device_busy_share: number | null;
  limit: ServedLimit | null;
  ns: number;
  padded_requests: number | null;
  decode_requests: number | null;
  context_tokens: number | null;
  exact: boolean;
  memory: ServedMemory | null;
}

/** How long one takes; a percentile is null where too few were recorded. */
export interface Latency {
  p50: number;
  p90: number | null;
  p99: number | null;
  mean: number;
}

/** What takes most of the time; null where it is not booked by iteration. */
export interface ServedLimit {
  category: string;
  share: number;
}

/** What the kernels whose bytes are known read and write at least. */
export interface ServedMemory {
  bytes_per_iteration: number;
  known_share: number;
  bandwidth_share: number | null;
  binds: boolean;
}

/** Memory that allocators of the framework, or the driver, gave out. */
export interface Memory {
  not_recorded: string | null;
  pools: MemoryPool[];
  allocator_calls: AllocatorCall | null;
}

/** Memory of one allocator. */
export interface MemoryPool {
  device: number | null;
  on_host: boolean;
  allocator: string | null;
  basis: 'recorded' | 'at_least';
  events: number;
  blocks: number | null;
  peak: MemoryPeak;
  reserved_bytes: number | null;
  timeline: MemoryTimeline;
  fragmentation: Fragmentation | null;
  growth: MemoryGrowth | null;
  headroom: Headroom | null;
}

/** The moment at which most was in use. */
export interface MemoryPeak {
  time_ns: number;
  step: number | null;
  allocated_bytes: number;
  reserved_bytes: number | null;
  by_category: MemoryByCategory | null;
  fragmentation: number | null;
  places: MemoryPlace[];
}

/** What was in use by what it is for; adds up to `allocated_bytes`. Null where blocks cannot be followed. */
export interface MemoryByCategory {
  before_profile: number;
  activation: number;
  gradient: number;
  optimizer_state: number;
  temporary: number;
  unknown: number;
}

/** Blocks of one kind allocated in one place. */
export interface MemoryPlace {
  category: 'before_profile' | 'activation' | 'gradient' | 'optimizer_state' | 'temporary' | 'unknown';
  bytes: number;
  blocks: number;
  dtype: string | null;
  shape: string | null;
  where: Where | null;
  region: string | null;
}

/** Values after events: of each of 200 equal stretches of time the event with most in use and the last one, whose values hold until the next. */
export interface MemoryTimeline {
  time_ns: number[];
  allocated_bytes: number[];
  reserved_bytes: (number | null)[] | null;
  by_category: MemoryOverTime | null;
}

/** Null where blocks cannot be followed. */
export interface MemoryOverTime {
  before_profile: number[];
  activation: number[];
  gradient: number[];
  optimizer_state: number[];
  temporary: number[];
  unknown: number[];
}

/** What is reserved and not in use. */
export interface Fragmentation {
  free_bytes: number;
  share: number;
  taken_beside_free: number;
}

/** Memory in use at the end of each used step against that of the one before. */
export interface MemoryGrowth {
  per_step_bytes: number[];
  steps: number[];
  mean_bytes: number;
  grows: boolean;
  places: MemoryPlace[];
}

/** What the allocator has left of its limit, else the device; null where neither was recorded. */
export interface Headroom {
  capacity_bytes: number;
  of_allocator: boolean;
  free_bytes: number;
  batch_factor: number | null;
}

/** Calls in the used steps that take memory from the driver and give it back; null where there were none. */
export interface AllocatorCall {
  taken: number;
  freed: number;
  retries: number | null;
  dur_ns: number;
}

/** What compiled programs need of memory, as XLA assigned it. */
export interface ProgramMemory {
  not_recorded: string | null;
  without: number;
  left_out: number;
  capacity_bytes: number | null;
  programs: ProgramUse[];
  ways: Record<string, string>;
}

/** What a program needs of one memory space. */
export interface ProgramUse {
  module: string;
  on_host: boolean;
  space: number;
  peak_bytes: number;
  unpadded_bytes: number;
  allocated_bytes: number;
  by_use: Record<string, number>;
  program: string | null;
  buffers: ProgramBuffer[];
  others: OtherBuffers;
}

/** A buffer that is in memory at a program's peak. */
export interface ProgramBuffer {
  name: string;
  use: 'parameter' | 'output' | 'thread_local' | 'constant' | 'temporary';
  shape: string;
  bytes: number;
  unpadded_bytes: number;
  peak_without_bytes: number;
  way: string | null;
  source: string | null;
  opcode: string | null;
  scope: string | null;
  until: string | null;
  donor: string | null;
}

/** Buffers that are not listed. */
export interface OtherBuffers {
  buffers: number;
  bytes: number;
}

/** Where ops and kernels whose cost is known stand under the device's roofline. */
export interface Roofline {
  ops: Roof[];
  kernels: Roof[];
}

/** Some work and the device's roofs over it; null where not known. */
export interface Roof {
  op?: string;
  kernel?: string;
  dims?: string | null;
  total_ns: number;
  count: number;
  precision?: string | null;
  flops_per_s?: number | null;
  flops_share?: number | null;
  bytes_per_s?: number | null;
  bandwidth_share?: number | null;
  bound: 'compute' | 'memory' | 'neither' | null;
  device: number | null;
  kind?: 'gemm' | 'convolution' | 'attention' | 'normalization' | 'softmax' | 'elementwise' | 'reduction' | 'embedding' | 'optimizer' | 'copy' | 'compiled';
  flops: number | null;
  bytes: number | null;
  units?: 'matrix' | 'vector';
  peak_flops_per_s?: number | null;
  peak_bytes_per_s?: number | null;
  intensity?: number | null;
  ridge?: number | null;
  doubt?: string | null;
}

/** Model FLOPs utilisation of a device. */
export interface Utilisation {
  device: number | null;
  flops_per_step: number;
  counted_share: number;
  share: number | null;
  reason: string | null;
}

/** A compiled program on one device. */
export interface Program {
  module: string;
  device: number;
  total_ns: number;
  flops_per_s: number | null;
  bytes_per_s: number | null;
  utilisation: number | null;
  rematerialised_ns: number;
  outside_compilation_ns: number;
  waiting_ns: number;
  unknown: UnknownWork[];
  program: string | null;
  count: number;
  flops: number | null;
  bytes: number | null;
  count_of_nodes: number;
  nodes: ProgramNode[];
}

/** Time of ops whose operations are not known. */
export interface UnknownWork {
  name: string;
  ns: number;
}

/** A scope of the framework, or an op; or all those that differ in their numbers alone. */
export interface ProgramNode {
  name: string;
  total_ns: number;
  count: number;
  flops_per_s: number | null;
  bytes_per_s: number | null;
  op: ProgramOp | null;
  depth: number;
  flops: number | null;
  bytes: number | null;
  times?: number;
}

/** An instruction of a program. */
export interface ProgramOp {
  category: string;
  opcode: string;
  kind: string;
  kernel: string;
  bound: 'compute' | 'memory' | 'neither' | null;
  flops_share: number | null;
  bandwidth_share: number | null;
  intensity: number | null;
  rematerialised: boolean;
  outside_compilation: boolean;
  unknown: string | null;
  hlo: string | null;
  graph: ProgramGraph | null;
}

/** Instructions within two edges of one, which stands first. */
export interface ProgramGraph {
  nodes: GraphNode[];
  edges: number[][];
  cut: boolean;
}

/** An instruction. */
export interface GraphNode {
  name: string;
  opcode: string;
  shape: string;
  distance: number;
}

/** The input pipeline over the used steps; absent where nothing of it was recorded. */
export interface InputPipeline {
  wait_ns_per_step: number;
  taken_on?: string | null;
  stages: InputStage[];
  producers: Producers | null;
  iterators?: Iterators | null;
  queues?: InputQueue[];
}

/** A stage of the input pipeline. */
export interface InputStage {
  name: 'read' | 'source' | 'decode' | 'transform' | 'collate' | 'pin' | 'wait for workers' | 'enqueue' | 'transfer' | 'infeed' | 'h2d' | 'other';
  side: 'training thread' | 'loader threads' | 'device';
  ns_per_step: number;
  overlap_share: number | null;
}

/** The threads that prepare batches, while one is waited for; null where none was recorded. */
export interface Producers {
  threads: number;
  busy_share: number;
  heaviest_stage: string | null;
  feeds_devices?: number | null;
  devices?: number;
}

/** Iterators of tf.data; null where none was recorded. */
export interface Iterators {
  wait_ns_per_step: number;
  cpu_budget: number | null;
  threadpool_size: number | null;
  each: InputIterator[];
}

/** An iterator of tf.data. */
export interface InputIterator {
  path: string[];
  dataset: string | null;
  calls_per_step: number;
  ns_per_step: number;
  own_wait_ns_per_step: number;
  parallelism: number | null;
  buffer_limit: number | null;
  autotuned: boolean | null;
}

/** A queue of batches. */
export interface InputQueue {
  name: string;
  readings: number;
  mean: number;
  least: number;
}

/** What the ranks of a job say together. */
export interface Ranks {
  world_size: number | null;
  present: number;
  missing: number[];
  unreadable: UnreadableRank[];
  clocks: RankClock[];
  determined: boolean;
  stragglers: Straggler[];
  steps: LateStep[];
  per_rank: RankRow[];
  critical_path?: JobPath;
}

/** A file that could not be read. */
export interface UnreadableRank {
  rank?: number | null;
  path: string;
  reason: string;
}

/** How a rank's clock relates to the first rank's. */
export interface RankClock {
  rank: number;
  offset_ns: number | null;
  drift: number | null;
  uncertainty_ns: number | null;
  collectives: number;
  at_ns: number | null;
}

/** A rank that is late step after step. */
export interface Straggler {
  rank: number;
  device: number | null;
  host: string | null;
  waited_ns_per_step: number;
  saving_ns_per_step: number;
  steps: number;
  p_value: number;
  cause: 'input' | 'slow_device' | 'uneven_work' | 'host' | 'link' | 'unknown';
  category: string | null;
  excess_ns_per_step: Record<string, number>;
  kernels: StragglerKernel[];
}

/** A kernel that takes longer than on others. */
export interface StragglerKernel {
  name: string;
  times: number;
}

/** Whom a step waited for. */
export interface LateStep {
  number: number;
  dur_ns: number | null;
  rank: number;
  waited_ns: number;
  cause: 'input' | 'slow_device' | 'uneven_work' | 'host' | 'link' | 'unknown';
  chain: number[];
  used?: boolean;
  device: number | null;
}

/** A rank, or one device of it. */
export interface RankRow {
  rank: number;
  host: string | null;
  step_ns: number;
  parts_ns_per_step: Record<string, number>;
  made_wait_ns_per_step: number | null;
  late_steps: number | null;
  device: number | null;
  bottleneck: string;
  findings: string[];
  pipeline_wait_ns_per_step: number | null;
  p_value: number | null;
}

/** The critical path over all ranks: at each collective it goes on along the rank that arrived last. */
export interface JobPath {
  why_not: string | null;
  steps: number | null;
  ns_per_step: number | null;
  longer_ns_per_step: number | null;
  hops_per_step: number | null;
  undivided_per_step: number | null;
  parts_ns_per_step: Record<string, number> | null;
  ranks: RankOnPath[];
}

/** How much of the step time a rank sets. */
export interface RankOnPath {
  rank: number;
  ns_per_step: number;
  share: number;
  parts_ns_per_step: Record<string, number>;
}

/** Time and memory of the ranks of a job by name, means of their used steps. */
export interface OverRanks {
  kernels: UseOverRanks[];
  ops: UseOverRanks[];
  layers: UseOverRanks[];
  stages: UseOverRanks[];
  memory: MemoryOverRanks[];
}

/** What takes time under one name. */
export interface UseOverRanks {
  name: string;
  of: string | null;
  ranks: number;
  mean_ns_per_step: number;
  count_per_step: number | null;
  each: RankUse[];
}

/** One rank's. */
export interface RankUse {
  rank: number;
  ns_per_step: number;
  count_per_step: number | null;
}

/** Memory of one kind. */
export interface MemoryOverRanks {
  what: string;
  on_host: boolean;
  ranks: number;
  mean_bytes: number;
  each: RankMemory[];
}

/** One rank's. */
export interface RankMemory {
  rank: number;
  bytes: number;
}

/** The quick estimate of what reducing gradients takes. */
export interface Gradients {
  source: 'trace' | 'given';
  parameters: number;
  bytes_per_parameter: number;
  bytes_per_step: number;
  ranks: number | null;
  link_bandwidth: number | null;
  link_source: 'device' | 'given' | null;
  one_host: boolean | null;
  estimate_ns: number | null;
  ring_estimate_ns: number | null;
  measured_ns: number | null;
}

/** Collectives of one kind and size in one group. */
export interface Traffic {
  kind: string;
  group: string;
  size: number | null;
  bytes: number | null;
  per_step: number;
  duration_ns: number;
  transfer_ns: number;
  wait_ns: number | null;
  exposed_ns_per_step: number;
  imbalance: number | null;
  algorithm_bandwidth: number | null;
  bus_bandwidth: number | null;
  link_share: number | null;
  ranks: number[];
  count: number;
  bound: boolean;
  formula: string | null;
  link_bandwidth: number | null;
  estimate_ns_per_step: number | null;
  corrected_estimate_ns_per_step: number | null;
}

/** What stepscope compare writes. Times are integer nanoseconds, null where not determined; keys are only added. */
export interface ComparisonDocument {
  schema: 'stepscope.comparison/1';
  tool: Tool;
  changed: boolean | null;
  not_determined: string | null;
  before: ComparedSide;
  after: ComparedSide;
  step_time: Difference;
  differences: string[];
  parts: PartDifference[];
  kernels: ComparedItem[];
  ops: ComparedItem[];
  layers: ComparedItem[];
  work?: ComparedBox[];
  calls?: ComparedCall[];
  findings: FindingChange[];
  achieved: Achieved | null;
  budgets: Budget[];
  scaling: Scaling | null;
}

/** One of the runs. */
export interface ComparedSide {
  path: string;
  steps_used: number;
  step_ns: number[];
  mean_step_ns: number | null;
  median_step_ns: number | null;
  verdict: string;
  runs: number;
  damaged: string | null;
  steps_apart_ns: number[];
}

/** A change of a duration. */
export interface Difference {
  before_ns: number;
  after_ns: number;
  difference_ns: number;
  share: number | null;
  low_ns: number | null;
  high_ns: number | null;
}

/** How a category changed. */
export interface PartDifference {
  before_ns: number;
  after_ns: number;
  difference_ns: number;
  share: number | null;
  low_ns: number | null;
  high_ns: number | null;
  category: string;
  label: string;
  told: boolean;
}

/** A kernel, op or layer that changed. */
export interface ComparedItem {
  before_ns: number;
  after_ns: number;
  difference_ns: number;
  share: number | null;
  low_ns: number | null;
  high_ns: number | null;
  name: string;
  renamed: string | null;
  op: string | null;
  count_before: number;
  count_after: number;
}

/** Work in one place. */
export interface ComparedBox {
  path: string[];
  before_ns: number;
  after_ns: number;
}

/** A Python function where it is called. */
export interface ComparedCall {
  name: string;
  caller: number;
  before_ns: number;
  after_ns: number;
}

/** How a finding changed. */
export interface FindingChange {
  state: 'gone' | 'less' | 'stays' | 'more' | 'new';
  rule: string;
  title: string;
  before: ComparedCost | null;
  after: ComparedCost | null;
  title_after: string | null;
}

/** Null where the run has no such finding. */
export interface ComparedCost {
  id: string;
  cost_ns_per_step: number | null;
  saving_ns_per_step: number | null;
}

/** What was promised against what was measured. */
export interface Achieved {
  gone: string[];
  less: string[];
  predicted_step_ns: number;
  best_step_ns: number | null;
  unrecorded: boolean;
  measured_step_ns: number;
  off_share: number;
}

/** A condition and whether it holds. */
export interface Budget {
  condition: string;
  fired: boolean;
  text: string;
}

/** Where the second run has more devices (without any, processes): how well the job scales if each has the same batch. */
export interface Scaling {
  unit: 'devices' | 'processes';
  devices_before: number;
  devices_after: number;
  efficiency: number;
  speedup: number;
  negative: boolean;
  losses: ScalingLoss[];
}

/** What a step takes longer by. */
export interface ScalingLoss {
  cause: string;
  ns_per_step: number;
}
