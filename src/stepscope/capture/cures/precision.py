"""PyTorch models in lower precision."""

from __future__ import annotations

from typing import Any

from .cure import AfterImport, Applying, Around, Cure
from .models import before_first_call, cast
from .places import nearest_place


def _into_bf16(applying: Applying, torch: Any, recorder: Any) -> None:
    def casts(model: Any, caller: Any) -> None:
        device, why = cast(torch, model, torch.bfloat16)
        if why is not None:
            applying.refused(why)
            return
        place = nearest_place(caller)
        applying.applied(None if place is None else {**place, "device": device})

    before_first_call(torch, recorder, casts)


BF16 = Cure(
    name="bf16",
    title="the model's forward in bfloat16",
    answers=("tensor_cores_unused", "low_precision_share", "amp_partial", "tf32_off", "memory_bound_chain"),
    sets="torch.autocast(dtype=torch.bfloat16) around the call of every model",
    may_break="results have three digits where they had seven: watch the loss over a longer run",
    undone="leave the with statement out",
    module="torch",
    into=_into_bf16,
    changes_numbers=True,
    patch=lambda _: (Around("with torch.autocast({device!r}, dtype=torch.bfloat16):"),),
)


def _into_tf32(applying: Applying, torch: Any, recorder: Any) -> None:
    if not torch.cuda.is_available():
        applying.refused("TF32 is for NVIDIA's GPUs, and PyTorch sees none here")
    elif torch.get_float32_matmul_precision() != "highest":
        applying.refused(f"matrices are multiplied with precision {torch.get_float32_matmul_precision()!r} already")
    else:
        torch.set_float32_matmul_precision("high")
        applying.applied()


TF32 = Cure(
    name="tf32",
    title="matrices of float32 multiplied on tensor cores",
    answers=("tf32_off", "tensor_cores_unused"),
    promised=("tf32_off",),
    sets='torch.set_float32_matmul_precision("high")',
    may_break="products of float32 matrices have three digits where they had seven",
    undone="leave the call out",
    module="torch",
    into=_into_tf32,
    changes_numbers=True,
    device_only=True,
    patch=lambda _: (AfterImport("torch", 'torch.set_float32_matmul_precision("high")'),),
)
