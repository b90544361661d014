"""How PyTorch lays out pictures, and whether it looks for the fastest convolution."""

from __future__ import annotations

from typing import Any

from .cure import After, AfterImport, Applying, Cure
from .models import Made, before_first_call


def _into_channels_last(applying: Applying, torch: Any, recorder: Any) -> None:
    made = Made(torch, recorder)

    def lays_out(model: Any, _: Any) -> None:
        if not any(isinstance(each, torch.nn.Conv2d) for each in model.modules()):
            applying.refused("the model has no two-dimensional convolution")
            return
        model.to(memory_format=torch.channels_last)
        applying.applied(made.place(model))

    before_first_call(torch, recorder, lays_out)


CHANNELS_LAST = Cure(
    name="channels-last",
    title="convolutions with the channels last in memory",
    answers=("tensor_cores_unused", "memory_bound_chain"),
    sets="model.to(memory_format=torch.channels_last) for every model with convolutions",
    may_break="code that calls view() on activations; results within rounding",
    undone="leave the call out",
    module="torch",
    into=_into_channels_last,
    patch=lambda _: (After("{target}.to(memory_format=torch.channels_last)"),),
)


def _into_benchmark(applying: Applying, torch: Any, recorder: Any) -> None:
    if not torch.cuda.is_available():
        applying.refused("cuDNN is for NVIDIA's GPUs, and PyTorch sees none here")
    elif torch.backends.cudnn.benchmark:
        applying.refused("it is set already")
    else:
        torch.backends.cudnn.benchmark = True
        applying.applied()


CUDNN_BENCHMARK = Cure(
    name="cudnn-benchmark",
    title="the fastest convolution looked for",
    answers=("tensor_cores_unused",),
    sets="torch.backends.cudnn.benchmark = True",
    may_break="each new shape is tried out anew; runs differ within rounding",
    undone="leave the line out",
    module="torch",
    into=_into_benchmark,
    device_only=True,
    patch=lambda _: (AfterImport("torch", "torch.backends.cudnn.benchmark = True"),),
)
