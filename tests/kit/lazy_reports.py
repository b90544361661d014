"""What ``torch_xla.debug.metrics.metrics_report()`` of PyTorch/XLA 2.9.0 wrote on a CPU, after two steps of a
loop and after six; some metrics, and all percentiles, are left out. Each step asks for ``nonzero`` and the eigenvalues
of a matrix, which it cannot compile, and reads a value; the fifth has another batch."""

BEFORE = """\
Metric: DeviceLockWait
  TotalSamples: 24
  Accumulator: 137.746us
  ValueRate: 138.033us / second
  Rate: 24.05 / second
Metric: InputOutputAliasCount
  TotalSamples: 8
  Accumulator: 1.00
  ValueRate: 0.77 / second
  Rate: 6.13726 / second
Metric: LazyTracing
  TotalSamples: 142
  Accumulator: 01s363ms004.600us
  ValueRate: 946ms064.076us / second
  Rate: 98.5625 / second
Counter: CachedCompile
  Value: 2
Counter: UncachedCompile
  Value: 8
Counter: xla::mm
  Value: 4
Counter: xla::nonzero
  Value: 2
Metric: CompileTime
  TotalSamples: 8
  Accumulator: 01s360ms230.398us
  ValueRate: 01s366ms837.998us / second
  Rate: 8.03298 / second
Metric: ExecuteTime
  TotalSamples: 10
  Accumulator: 040ms924.051us
  ValueRate: 042ms693.320us / second
  Rate: 10.4432 / second
Metric: InboundData
  TotalSamples: 10
  Accumulator: 18.51KB
  ValueRate: 19.27KB / second
  Rate: 10.4092 / second
Metric: OutboundData
  TotalSamples: 15
  Accumulator: 52.34KB
  ValueRate: 40.15KB / second
  Rate: 11.5063 / second
Metric: TransferFromDeviceTime
  TotalSamples: 10
  Accumulator: 034ms215.834us
  ValueRate: 036ms616.036us / second
  Rate: 10.4092 / second
Metric: TransferToDeviceTime
  TotalSamples: 15
  Accumulator: 163.505us
  ValueRate: 125.423us / second
  Rate: 11.5063 / second
Counter: MarkStep
  Value: 2
Counter: aten::_linalg_solve_ex
  Value: 2
Counter: aten::_local_scalar_dense
  Value: 4
Counter: aten::linalg_eig
  Value: 2
Counter: aten::nonzero
  Value: 2
"""

AFTER = """\
Metric: DeviceLockWait
  TotalSamples: 72
  Accumulator: 412.330us
  ValueRate: 291.049us / second
  Rate: 50.8222 / second
Metric: InputOutputAliasCount
  TotalSamples: 11
  Accumulator: 2.00
  ValueRate: 1.25 / second
  Rate: 6.85381 / second
Metric: LazyTracing
  TotalSamples: 422
  Accumulator: 02s619ms101.155us
  ValueRate: 871ms732.762us / second
  Rate: 226.946 / second
Counter: CachedCompile
  Value: 19
Counter: UncachedCompile
  Value: 11
Counter: xla::mm
  Value: 12
Counter: xla::nonzero
  Value: 6
Metric: CompileTime
  TotalSamples: 11
  Accumulator: 02s739ms832.684us
  ValueRate: 01s239ms024.223us / second
  Rate: 7.83817 / second
Metric: ExecuteTime
  TotalSamples: 30
  Accumulator: 042ms020.945us
  ValueRate: 030ms494.749us / second
  Rate: 21.7711 / second
Metric: InboundData
  TotalSamples: 30
  Accumulator: 51.53KB
  ValueRate: 37.35KB / second
  Rate: 21.7476 / second
Metric: OutboundData
  TotalSamples: 43
  Accumulator: 142.79KB
  ValueRate: 77.21KB / second
  Rate: 23.2509 / second
Metric: TransferFromDeviceTime
  TotalSamples: 30
  Accumulator: 036ms893.578us
  ValueRate: 026ms019.947us / second
  Rate: 21.7476 / second
Metric: TransferToDeviceTime
  TotalSamples: 43
  Accumulator: 387.739us
  ValueRate: 209.658us / second
  Rate: 23.251 / second
Counter: MarkStep
  Value: 6
Counter: aten::_linalg_solve_ex
  Value: 6
Counter: aten::_local_scalar_dense
  Value: 12
Counter: aten::linalg_eig
  Value: 6
Counter: aten::nonzero
  Value: 6
"""

STEPS = 4
