"""Nsight Systems exports: the SQLite file that ``nsys export --type sqlite`` makes of a report, plain or gzip.

Supported: kernels, copies, memsets and whole CUDA graphs; runtime and driver calls; waits between streams; NVTX ranges
and marks, among them the ops that PyTorch writes; cuBLAS, cuDNN and MPI calls; OS runtime calls and the profiler's own
work on tracks of their own; allocations of device memory; devices, host, thread names and MPI ranks. Tables and columns
that a schema version lacks are absent facts. Samples and hardware metrics are not used, which a notice says.

A trace is one process: of several in a file the one with most device ops is read, and a notice counts the others.

Written after NVIDIA's schema reference and tried on files made after it; no file of the tool itself was at hand.
"""
