/** Columns of the report's tables, by object. Made from src/stepscope/document/ by `make docs`; change it there. */

export const COLUMNS = {
  Kernel: [
    { key: 'name', title: 'kernel', kind: 'name' },
    { key: 'device', title: 'device', kind: 'index' },
    { key: 'op', title: 'from op', kind: 'name' },
    { key: 'total_ns', title: 'time', kind: 'ns' },
    { key: 'share', title: 'share', kind: 'share' },
    { key: 'count', title: 'count', kind: 'count' },
    { key: 'mean_ns', title: 'mean', kind: 'ns' },
    { key: 'max_ns', title: 'longest', kind: 'ns' },
    { key: 'precision', title: 'precision', kind: 'text' },
    { key: 'tensor_core', title: 'tensor cores', kind: 'words' },
    { key: 'tensor_core_eligible', title: 'could use them', kind: 'flag' },
  ],
  KernelLaunch: [
    { key: 'grid', title: 'grid', kind: 'list' },
    { key: 'block', title: 'block', kind: 'list' },
    { key: 'registers', title: 'registers', kind: 'count' },
    { key: 'shared_memory', title: 'shared memory', kind: 'bytes' },
    { key: 'occupancy_pct', title: 'occupancy', kind: 'percent' },
  ],
  Copy: [
    { key: 'direction', title: 'copy', kind: 'text' },
    { key: 'source_memory', title: 'memory', kind: 'text' },
    { key: 'op', title: 'from op', kind: 'name' },
    { key: 'device', title: 'device', kind: 'index' },
    { key: 'per_step', title: 'per step', kind: 'rate' },
    { key: 'bytes_per_step', title: 'bytes', kind: 'bytes' },
    { key: 'exposed_ns_per_step', title: 'exposed', kind: 'ns' },
    { key: 'every_step', title: 'every step', kind: 'flag' },
  ],
  Sync: [
    { key: 'op', title: 'host waits in', kind: 'name' },
    { key: 'device', title: 'device', kind: 'index' },
    { key: 'per_step', title: 'per step', kind: 'rate' },
    { key: 'blocked_ns_per_step', title: 'host blocked', kind: 'ns' },
    { key: 'cost_ns_per_step', title: 'device idle for it', kind: 'ns' },
    { key: 'where', title: 'where', kind: 'Where' },
  ],
  LaunchDelay: [
    { key: 'device', title: 'device', kind: 'index' },
    { key: 'count', title: 'launches', kind: 'count' },
    { key: 'median_ns', title: 'median', kind: 'ns' },
    { key: 'p95_ns', title: 'p95', kind: 'ns' },
    { key: 'waiting_share', title: 'step time spent waiting', kind: 'share' },
  ],
};
