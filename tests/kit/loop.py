"""The script of a training loop, run on the simulated machine.

A step is: take a batch, copy it, forward, backward on the autograd thread, optimizer, and what comes between
steps.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace

from tests.kit.drawing import LOADER
from tests.kit.events import US, FlowEnd, Stream
from tests.kit.machine import DeviceEvent, Machine, Work
from tests.kit.plan import COMM, COMPUTE, PREFETCH, USER_FRAMES, Part, Plan
from tests.kit.truth import Mark


@dataclass(frozen=True, slots=True)
class Run:
    """A finished simulation."""

    machine: Machine
    marks: tuple[Mark, ...]


def run(plan: Plan) -> Run:
    """Simulate the plan."""
    return _Loop(plan).run()


class _Loop:
    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.m = Machine(plan.costs, plan.seed, plan.jitter)
        self.marks: list[Mark] = []
        self.flow = 0
        self.sequence = 0
        self.batch_ready: DeviceEvent | None = None
        self.next_ready: DeviceEvent | None = None

    def run(self) -> Run:
        plan = self.plan
        for number in range(plan.earlier):
            self.m.earlier_work(Work(f"warm_up_kernel_{number}", plan.kernel_us * US, stream=Stream(0, COMPUTE)))
        for cycle in range(plan.cycles):
            with self.frame("train.py(120): <module>"), self.frame(USER_FRAMES["main"]):
                for index in range(plan.steps):
                    self.step(plan.first_number + 20 * cycle + index, index == plan.steps - 1)
            if cycle + 1 < plan.cycles:
                self.pause()
        return Run(self.m, tuple(self.marks))

    def pause(self) -> None:
        """The profiler is off and the devices drain."""
        self.m.step = None
        with self.m.unrecorded():
            self.m.spend(max(self.m.drained_ns() - self.m.now, 0) + self.plan.pause_us * US, "unknown_host")
        last = self.marks[-1]
        self.marks[-1] = replace(last, pause_ns=self.m.now - last.end)

    # The step

    def step(self, number: int, is_last: bool) -> None:
        plan, m = self.plan, self.m
        m.step, start = number, m.now
        share = plan.last_share if is_last else 1.0
        with ExitStack() as marker:
            if plan.markers:
                marker.enter_context(m.range("user_annotation", f"ProfilerStep#{number}"))
            self.take_batch()
            self.copy_batch()
            with self.frame(USER_FRAMES["step"]):
                self.train(share)
            if plan.marker_ends_early:
                marker.close()
                self.marks.append(Mark(number, start, m.now))
            if share == 1.0:
                self.between_steps()
        if not plan.marker_ends_early:
            self.marks.append(Mark(number, start, m.now))

    def train(self, share: float) -> None:
        plan = self.plan
        self.prepare()
        if plan.graph:
            self.launch_graph()
            return
        self.wait_for_batch()
        self.forward(round(plan.forward * share))
        if share < 1.0:
            return
        self.sync("forward")
        self.hand_over(0, 1)
        self.backward()
        self.sync("backward")
        self.hand_over(1, 0)
        self.optimize()
        self.sync("optimizer")

    def take_batch(self) -> None:
        plan, m = self.plan, self.m
        workers = plan.loader == "workers"
        name = LOADER if workers else LOADER.replace("MultiProcessing", "SingleProcess")
        duration = m.vary(plan.input_us * US, "input")
        with (
            self.frame("torch/utils/data/dataloader.py(720): __next__"),
            m.doing("input"),
            m.range("user_annotation", name),
        ):
            if workers:
                m.spend(duration)
                return
            read = duration * 7 // 10 // US * US
            with self.frame(USER_FRAMES["data"]), m.range("cpu_op", "aten::div"):
                m.spend(read)
            with (
                self.frame("torch/utils/data/_utils/collate.py(398): default_collate"),
                m.range("cpu_op", "aten::stack"),
                m.range("cpu_op", "aten::cat"),
            ):
                m.spend(duration - read)

    def copy_batch(self) -> None:
        plan, m = self.plan, self.m
        if not plan.copy:
            return
        memory = "Pageable" if plan.copy == "pageable" else "Pinned"
        size = m.vary(plan.copy_us * US, "copy")
        work = Work(
            "copy",
            size,
            "gpu_memcpy",
            "copy_h2d",
            Stream(0, COMPUTE),
            {"direction": "HtoD", "memory": memory, "bytes": size * 12},
        )
        with (
            self.frame(USER_FRAMES["batch"]),
            m.range("cpu_op", "aten::to"),
            m.range("cpu_op", "aten::_to_copy"),
            m.range("cpu_op", "aten::copy_"),
        ):
            if plan.copy == "pageable":
                m.blocking_copy(work, plan.staging_us * US)
                m.synchronize(stream=work.stream)
            else:
                # The batch of the next step, on a stream of its own; the first one was there before the loop.
                m.launch(replace(work, stream=Stream(0, PREFETCH)), call="cudaMemcpyAsync")
                self.batch_ready, self.next_ready = self.next_ready, m.record_event(Stream(0, PREFETCH))
        if plan.copy_then_input_us:
            with (
                m.doing("input"),
                m.range("user_annotation", LOADER),
            ):
                m.spend(plan.copy_then_input_us * US)

    def wait_for_batch(self) -> None:
        if self.batch_ready is not None:
            self.m.wait_event(Stream(0, COMPUTE), self.batch_ready)

    def prepare(self) -> None:
        """What happens before the first launch, without a launch of its own."""
        plan, m = self.plan, self.m
        if plan.allocator_us:
            with m.range("cpu_op", "aten::empty"), m.doing("allocator"):
                m.call("cudaFree", plan.allocator_us * US // 2)
                m.call("cudaMalloc", plan.allocator_us * US - plan.allocator_us * US // 2)
        if plan.compile_us and self.strikes(plan.compile_every):
            with m.range("user_annotation", "_compile.compile_inner (dynamo_timed)"), m.doing("compile"):
                m.spend(plan.compile_us * US)
            with m.range("cpu_op", "aten::empty"):
                m.spend(1 * US)
        if plan.profiler_us and self.strikes(plan.profiler_every):
            with m.range("cpu_op", "aten::empty"):
                m.overhead("Activity Buffer Request", plan.profiler_us * US, "cudaFuncGetAttributes")

    def strikes(self, every: int) -> bool:
        assert self.m.step is not None
        return (self.m.step - self.plan.first_number) % every == every - 1

    def forward(self, count: int) -> None:
        with self.frame("torch/nn/modules/module.py(1773): _call_impl"), self.frame("nn.Module: Net_0"):
            for index in range(count):
                self.flow += 1
                self.sequence += 1
                self.op(
                    ("aten::linear", "aten::addmm"),
                    f"forward_gemm_{index}",
                    (FlowEnd(self.flow, True),),
                    {"Sequence number": self.sequence, "Fwd thread id": 0},
                )

    def backward(self) -> None:
        plan, m = self.plan, self.m
        bucket = max(plan.backward // plan.buckets, 1) if plan.buckets else 0
        with (
            self.frame("torch/_tensor.py(566): backward"),
            self.frame("torch/autograd/graph.py(966): _engine_run_backward"),
            self.frame("<built-in method run_backward of torch._C._EngineBase object at 0x7f0000001000>"),
        ):
            m.spend(10 * US if plan.devices else 0)
            with m.on("autograd") if plan.devices else nullcontext():
                for index in range(plan.backward):
                    self.backward_op(index)
                    if bucket and (index + 1) % bucket == 0:
                        self.reduce_bucket()
            if bucket:
                m.wait_event(Stream(0, COMPUTE), m.record_event(Stream(0, COMM)))

    def backward_op(self, index: int) -> None:
        """Backward ops go through the forward ones from the last to the first.

        The first of each takes the arrow.
        """
        plan = self.plan
        behind = index * plan.forward // plan.backward
        first = index == 0 or behind != (index - 1) * plan.forward // plan.backward
        flows = (FlowEnd(self.flow - behind, False),) if first else ()
        numbers = {"Sequence number": self.sequence - behind, "Fwd thread id": 1}
        with self.m.range("cpu_op", "autograd::engine::evaluate_function: AddmmBackward0", args=numbers):
            self.op(
                ("AddmmBackward0", "aten::mm"),
                f"backward_gemm_{index}",
                flows,
                numbers,
                device=1 if plan.layout == "pipeline" else None,
            )

    def reduce_bucket(self) -> None:
        m, comm = self.m, Stream(0, COMM)
        args = {
            "Collective name": "allreduce",
            "In msg nelems": 1 << 20,
            "Out msg nelems": 1 << 20,
            "Group size": 8,
            "dtype": "Float",
            "Process Group Name": "0",
            "Process Group Description": "default_pg",
        }
        m.wait_event(comm, m.record_event(Stream(0, COMPUTE)))
        duration = m.vary(self.plan.collective_us * US, "collective")
        with (
            m.range("cpu_op", "c10d::allreduce_"),
            m.range("cpu_op", "record_param_comms", args=args),
            m.range("user_annotation", "nccl:all_reduce"),
        ):
            m.launch(
                Work(
                    "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
                    duration,
                    category="collective",
                    stream=comm,
                    args=args,
                )
            )

    def optimize(self) -> None:
        with self.m.range("user_annotation", "Optimizer.step#SGD.step"):
            for index in range(self.plan.optimizer):
                self.op(("aten::_foreach_add_",), f"multi_tensor_apply_{index}")

    def op(
        self,
        names: tuple[str, ...],
        kernel: str,
        flows: tuple[FlowEnd, ...] = (),
        args: dict[str, int] | None = None,
        device: int | None = None,
    ) -> None:
        """One op.

        A quarter of the dispatch time each before, in the outer op, in the inner one and after the launch.
        """
        plan, m = self.plan, self.m
        dispatch = m.vary(plan.dispatch_us * US, "dispatch") if plan.devices else 0
        quarter = dispatch // 4 // US * US
        m.spend(dispatch - 3 * quarter)
        with ExitStack() as ranges:
            ranges.enter_context(m.range("cpu_op", names[0], flows, args))
            m.spend(quarter)
            for name in names[1:]:
                ranges.enter_context(m.range("cpu_op", name))
            m.spend(quarter)
            self.kernels(kernel, device)
            m.spend(quarter)

    def kernels(self, name: str, device: int | None) -> None:
        """One kernel on each device the op runs on; without a device the host does the work."""
        plan, m = self.plan, self.m
        duration = m.vary(plan.kernel_us * US, "kernel")
        if not plan.devices:
            m.spend(duration, "host_compute")
        elif plan.layout == "pipeline":
            m.launch(Work(name, duration, stream=Stream(device or 0, COMPUTE)))
        else:
            for number in range(plan.devices):
                m.launch(Work(name, duration, stream=Stream(number, COMPUTE)))

    def launch_graph(self) -> None:
        plan, m = self.plan, self.m
        count = plan.forward + plan.backward + plan.optimizer
        m.spend(plan.dispatch_us * US)
        durations = [m.vary(plan.kernel_us * US, "kernel") for _ in range(count)]
        m.launch(
            *(
                Work(
                    f"graph_kernel_{i}",
                    ns,
                    stream=Stream(0, COMPUTE),
                    args={"graph id": 1, "graph node id": i + 1},
                )
                for i, ns in enumerate(durations)
            ),
            call="cudaGraphLaunch",
        )

    def hand_over(self, source: int, target: int) -> None:
        """In a pipeline the target's stream waits for what the source was given."""
        if self.plan.layout == "pipeline":
            self.m.wait_event(Stream(target, COMPUTE), self.m.record_event(Stream(source, COMPUTE)))

    # Causes

    def sync(self, after: Part) -> None:
        """Reads of a value and host work that follow a part of the step."""
        plan, m = self.plan, self.m
        with self.frame(USER_FRAMES["item"]) if after in (*plan.syncs, *plan.work_after) else nullcontext():
            for _ in range(plan.syncs.count(after)):
                if plan.plain_sync:
                    m.synchronize("cudaDeviceSynchronize")
                else:
                    self.item()
            if after in plan.work_after:
                m.spend(m.vary(plan.work_us * US, "work"))

    def item(self) -> None:
        """``Tensor.item()``: a copy of four bytes to pinned memory, then a wait for the stream."""
        m, stream = self.m, Stream(0, COMPUTE)
        with (
            self.frame("<built-in method item of Tensor object at 0x7f0000002000>"),
            m.range("cpu_op", "aten::item"),
            m.range("cpu_op", "aten::_local_scalar_dense"),
        ):
            m.spend(3 * US)
            m.launch(
                Work(
                    "copy",
                    2 * US,
                    "gpu_memcpy",
                    "copy_d2h",
                    stream,
                    {"direction": "DtoH", "memory": "Pinned", "bytes": 4},
                ),
                call="cudaMemcpyAsync",
            )
            m.spend(1 * US)
            m.synchronize(stream=stream)

    def between_steps(self) -> None:
        plan, m = self.plan, self.m
        if plan.python_us and self.strikes(plan.python_every):
            with self.cover(), m.doing("python"):
                m.spend(m.vary(plan.python_us * US, "python"))
        if plan.gc_us and self.strikes(plan.gc_every):
            with (
                self.frame("<built-in function collect>"),
                m.range("python_function", "Python GC"),
                m.doing("gc"),
            ):
                m.spend(m.vary(plan.gc_us * US, "gc"))
        if plan.checkpoint_us and self.strikes(plan.checkpoint_every):
            with (
                self.frame(USER_FRAMES["save"]),
                self.frame("torch/serialization.py(944): save"),
                m.doing("checkpoint_io"),
            ):
                m.spend(m.vary(plan.checkpoint_us * US, "checkpoint"))

    @contextmanager
    def cover(self) -> Iterator[None]:
        with self.frame(USER_FRAMES["log"]), ExitStack() as stack:
            if self.plan.annotated:
                stack.enter_context(self.m.range("user_annotation", "log_metrics"))
            yield

    def frame(self, name: str) -> AbstractContextManager[None]:
        """A Python frame, where the plan records stacks."""
        return self.m.range("python_function", name) if self.plan.stacks else nullcontext()
