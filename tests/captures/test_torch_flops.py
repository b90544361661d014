"""FLOPs worked out from the shapes of a real capture against PyTorch's own counter on the same model."""

from __future__ import annotations

import pytest

from stepscope.analysis.costs.attribute import KINDS, op_costs
from stepscope.analysis.costs.call import MATRIX_KINDS
from stepscope.analysis.hlo.programs import TracePrograms
from tests.captures.checks import opened
from tests.captures.jobs import Captures

pytestmark = pytest.mark.slow


def test_as_pytorch_counts(captures: Captures) -> None:
    capture = captures["torch_flops"]
    trace = opened(capture.file("trace.json.gz")).trace
    costs = op_costs(trace, TracePrograms(trace))
    kinds, flops = costs.kind.values[:-1], costs.flops.values[:-1]
    ours = {str(kind): int(flops[kinds == KINDS.index(kind)].sum()) for kind in MATRIX_KINDS}
    theirs = capture.truth["flops"]
    products = sum(theirs[f"aten.{op}"] for op in ("mm", "bmm", "addmm", "baddbmm"))
    convolutions = theirs["aten.convolution"] + theirs["aten.convolution_backward"]
    assert ours == {"gemm": products, "convolution": convolutions, "attention": theirs["attention"]}
