"""The run of ``examples/masked_loss`` on a simulated GPU: three waits in the loss, in three places of the program.

The profiles of its four variants under ``examples/profiles`` are made by this file:

    python -m tests.kit.masked_loss examples/profiles
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.kit.events import US, Event, Stream
from tests.kit.kineto_form import Form
from tests.kit.kineto_writer import write_kineto
from tests.kit.machine import Machine, Work
from tests.kit.plan import COMPUTE
from tests.kit.traces import REPOSITORY
from tests.kit.truth import Mark, Truth, account

SCRIPT = REPOSITORY / "examples" / "masked_loss" / "train.py"
VARIANTS = {
    "before": frozenset({0, 1, 2}),
    "one": frozenset({1, 2}),
    "two": frozenset({2}),
    "after": frozenset[int](),
}
"""Which of the three waits are left in each."""
PIXELS = [8, 512, 512]
STEPS = 8
NONZERO_US, WHERE_US = 16, 9


class MaskedLoss:
    """The loop: forward, the loss in three parts, backward, optimizer. Times in µs are those of a device that takes
    some 12 ms a step; between the parts of the loss the host does 0.5 ms of Python, behind it 1.2 ms."""

    def __init__(self, waits: frozenset[int], between_us: int = 500, behind_us: int = 1_200) -> None:
        self.waits, self.between_us, self.behind_us = waits, between_us, behind_us
        self.pixels, self.unique_kernels = PIXELS, 5
        self.m = Machine(seed=1, jitter=0.03)
        self.marks: list[Mark] = []
        tree = ast.parse(SCRIPT.read_text(encoding="utf-8"))
        functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
        self.frames = {node.name: f"train.py({node.lineno}): {node.name}" for node in functions}

    def run(self) -> tuple[list[Event], Truth]:
        """What a profiler records of it, and the truth."""
        with self.frame("main"):
            for number in range(STEPS):
                start, self.m.step = self.m.now, number
                with self.m.range("user_annotation", f"ProfilerStep#{number}"), self.frame("train_step"):
                    self.step()
                self.marks.append(Mark(number, start, self.m.now))
        return self.m.events(), account(self.m, self.marks)

    def step(self) -> None:
        """One step."""
        for layer in range(8):
            self.op("aten::conv2d", f"implicit_gemm_{layer}", 500)
        with self.frame("loss_of"):
            self.op("aten::log_softmax", "softmax_warp_forward", 120)
            self.uncertainty()
            self.python(self.between_us)
            self.weights()
            self.python(self.between_us)
            self.cross_entropy()
            self.python(self.behind_us)
        with self.m.on("autograd"):
            for layer in range(8):
                self.op("ConvolutionBackward0", f"dgrad_wgrad_{layer}", 800)
        with self.m.range("user_annotation", "Optimizer.step#SGD.step"):
            self.op("aten::_foreach_add_", "multi_tensor_apply", 60)

    def uncertainty(self) -> None:
        """The first wait."""
        if 0 in self.waits:
            with self.frame("uncertainty_selected"):
                self.select("aten::nonzero", 3)
                self.op("aten::index", "index_elementwise", 10)
        else:
            with self.frame("uncertainty_whole"):
                self.op("aten::where", "where_kernel", WHERE_US)

    def weights(self) -> None:
        """The second wait."""
        if 1 in self.waits:
            with self.frame("weights_of_present"):
                self.select("aten::_unique2", self.unique_kernels)
        else:
            with self.frame("weights_of_all"):
                self.op("aten::scatter_add_", "scatter_add_kernel", 5 * NONZERO_US)

    def cross_entropy(self) -> None:
        """The third wait."""
        if 2 in self.waits:
            masked = {"Input Dims": [self.pixels, [self.pixels]], "Input type": ["long int", "TensorList"]}
            with self.frame("cross_entropy_selected"), self.m.range("cpu_op", "aten::index", args=masked):
                self.select("aten::nonzero", 3)
            self.op("aten::cross_entropy_loss", "nll_loss_forward", 70)
        else:
            with self.frame("cross_entropy_ignoring"):
                self.op("aten::where", "where_kernel", WHERE_US)
                self.op("aten::cross_entropy_loss", "nll_loss_forward", 80)

    def select(self, name: str, kernels: int) -> None:
        """Kernels that count, the copy of the number, and the wait for it."""
        m, stream = self.m, Stream(0, COMPUTE)
        shape = {"Input Dims": [self.pixels], "Input type": ["bool" if "nonzero" in name else "long int"]}
        with m.range("cpu_op", name, args=shape):
            for number in range(kernels):
                m.spend(4 * US)
                m.launch(Work(f"{name[6:]}_kernel_{number}", m.vary(NONZERO_US * US, "select"), stream=stream))
            copy = {"direction": "DtoH", "memory": "Pageable", "bytes": 8}
            m.launch(Work("copy", 2 * US, "gpu_memcpy", "copy_d2h", stream, copy), call="cudaMemcpyAsync")
            m.synchronize(stream=stream)

    def op(self, name: str, kernel: str, device_us: int) -> None:
        """An op of one kernel."""
        m = self.m
        m.spend(m.vary(6 * US, "dispatch"))
        with m.range("cpu_op", name):
            m.spend(4 * US)
            m.launch(Work(kernel, m.vary(device_us * US, kernel), stream=Stream(0, COMPUTE)))
            m.spend(2 * US)

    def python(self, us: int) -> None:
        """Host work that launches nothing."""
        self.m.spend(self.m.vary(us * US, "python"))

    @contextmanager
    def frame(self, function: str) -> Iterator[None]:
        """A function of the script."""
        with self.m.range("python_function", self.frames[function]):
            yield


def profile(variant: str) -> bytes:
    """The profile of a variant as a file holds it."""
    return write_kineto(MaskedLoss(VARIANTS[variant]).run()[0], Form(gz=True))


if __name__ == "__main__":
    for name in VARIANTS:
        (Path(sys.argv[1]) / f"simulated_masked_loss_{name}.json.gz").write_bytes(profile(name))
