"""Kernels, number formats, placement and the roofline."""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired, TypedDict

from stepscope.document.kinds import (
    ByteRate,
    Bytes,
    Count,
    Field,
    FlopRate,
    Index,
    Name,
    Ns,
    Percent,
    Rate,
    Ratio,
    Share,
    SignedNs,
)
from stepscope.document.steps import TwoSharesEntry


class KernelLaunch(TypedDict):
    """How a kernel was launched."""

    grid: NotRequired[Annotated[list[Count] | None, Field("Blocks along each axis.", "grid")]]
    block: NotRequired[Annotated[list[Count] | None, Field("Threads of a block along each axis.", "block")]]
    registers: NotRequired[Annotated[Count | None, Field("Per thread.", "registers")]]
    shared_memory: NotRequired[Annotated[Bytes | None, Field("Bytes per block.", "shared memory")]]
    occupancy_pct: NotRequired[Annotated[Percent | None, Field("What the profiler estimated.", "occupancy")]]
    blocks: NotRequired[Annotated[Count | None, Field("Blocks in all.")]]


class KernelEntry(TypedDict):
    """A kernel in the used steps."""

    name: Annotated[Name, Field("Its name.", "kernel")]
    device: NotRequired[Annotated[Index | None, Field("Index of the device; null for the host's time.", "device")]]
    op: NotRequired[Annotated[Name | None, Field("The innermost host op around its longest launch.", "from op")]]
    total_ns: Annotated[Ns, Field("Time of all of them.", "time")]
    share: Annotated[Share, Field("Share of all kernel time.", "share")]
    count: Annotated[Count, Field("How often it ran.", "count")]
    mean_ns: NotRequired[Annotated[Ns, Field("Mean of one.", "mean")]]
    max_ns: NotRequired[Annotated[Ns, Field("The longest.", "longest")]]
    precision: Annotated[str | None, Field("Number format it computes in.", "precision")]
    tensor_core: Annotated[
        Literal["yes", "no", "unknown"], Field("Whether it uses tensor (matrix) cores.", "tensor cores")
    ]
    tensor_core_eligible: NotRequired[
        Annotated[bool, Field("Whether the kernel computes matrix products.", "could use them")]
    ]
    family: Annotated[str | None, Field("What kind of kernel it is.")]
    precision_reason: NotRequired[Annotated[str, Field("How the number format is known.")]]
    tensor_core_reason: NotRequired[Annotated[str, Field("How the use of tensor cores is known.")]]
    min_ns: NotRequired[Annotated[Ns, Field("The shortest.")]]
    launch: NotRequired[Annotated[KernelLaunch, Field("How its longest launch was made, as recorded.")]]


class TensorCoreShare(TypedDict):
    """Kernel time by whether tensor (matrix) cores were used."""

    yes: Annotated[Share | None, Field("They are used.")]
    no: Annotated[Share | None, Field("They are not.")]
    unknown: Annotated[Share | None, Field("That is not known.")]


class PrecisionEntry(TypedDict):
    """Number formats and tensor cores."""

    low_precision_share: Annotated[TwoSharesEntry, Field("Kernels that compute in 16 bits or fewer.")]
    tensor_core_share: Annotated[TensorCoreShare, Field("Kernel time by whether tensor (matrix) cores were used.")]
    eligible_unused_ns_per_step: Annotated[Ns | None, Field("Time of kernels that could use tensor cores and do not.")]
    known_by_time: NotRequired[Annotated[Share | None, Field("Share of kernel time whose precision is known.")]]


class PlacementEntry(TypedDict):
    """Where ops ran."""

    host_ops: Annotated[Count | None, Field("Ops on the host.")]
    device_ops: Annotated[Count | None, Field("Ops on devices.")]
    host_ns: NotRequired[Annotated[Ns, Field("Their time on the host.")]]
    device_ns: NotRequired[Annotated[Ns, Field("Their time on devices.")]]


class LoggedOpEntry(TypedDict):
    """An op on the CPU by a log of device placement."""

    name: Annotated[Name, Field("Its name.", "op")]
    device: Annotated[str, Field("Where it was placed.", "placed on")]
    also_on: Annotated[
        str | None, Field("A device other than the CPU on which the log has ops of this type.", "others of its type on")
    ]
    per_step: Annotated[Rate, Field("How many per step.", "per step")]
    ns_per_step: Annotated[SignedNs, Field("Time per step.", "time, per step")]
    op: Annotated[str, Field("Its type.")]
    count: Annotated[int, Field("How many there were.")]


class RoofEntry(TypedDict):
    """Some work and the device's roofs over it; null where not known."""

    op: NotRequired[Annotated[Name, Field("Type of the op.", "op", view="ops")]]
    kernel: NotRequired[Annotated[Name, Field("The kernel, of an op its main one.", "kernel", view="kernels")]]
    dims: NotRequired[Annotated[Name | None, Field("Shapes of the inputs as recorded.", "shapes", view="ops")]]
    total_ns: Annotated[Ns, Field("Time of the device ops, summed.", "time")]
    count: Annotated[Count, Field("How many there were.", "count")]
    precision: NotRequired[Annotated[str | None, Field("Number format it computes in.", "precision")]]
    flops_per_s: NotRequired[Annotated[FlopRate | None, Field("Operations per second.", "rate")]]
    flops_share: NotRequired[
        Annotated[Ratio | None, Field("Of the peak rate; above one only with a doubt.", "of peak")]
    ]
    bytes_per_s: NotRequired[Annotated[ByteRate | None, Field("Bytes per second.", "bytes")]]
    bandwidth_share: NotRequired[
        Annotated[Ratio | None, Field("Of the memory's bandwidth; above one only with a doubt.", "of bandwidth")]
    ]
    bound: Annotated[
        Literal["compute", "memory", "neither"] | None,
        Field("The roof it comes near to; neither where it is far from both.", "bound by"),
    ]
    device: Annotated[Index | None, Field("Index of the device; null for the host's time.")]
    kind: NotRequired[
        Annotated[
            Literal[
                "gemm",
                "convolution",
                "attention",
                "normalization",
                "softmax",
                "elementwise",
                "reduction",
                "embedding",
                "optimizer",
                "copy",
                "compiled",
            ],
            Field("What kind of work it is."),
        ]
    ]
    flops: Annotated[Count | None, Field("Operations of all of it, a multiply-add counting two.")]
    bytes: Annotated[Bytes | None, Field("Bytes it has to move at least.")]
    units: NotRequired[Annotated[Literal["matrix", "vector"], Field("The units whose peak it is held against.")]]
    peak_flops_per_s: NotRequired[Annotated[FlopRate | None, Field("The device's peak.")]]
    peak_bytes_per_s: NotRequired[Annotated[ByteRate | None, Field("The memory's bandwidth.")]]
    intensity: NotRequired[Annotated[Rate | None, Field("Operations per byte.")]]
    ridge: NotRequired[Annotated[Rate | None, Field("Operations per byte from which on the peak rate is the limit.")]]
    doubt: NotRequired[Annotated[str | None, Field("Why a share above one cannot be taken as it stands.")]]


class Roofline(TypedDict):
    """Where ops and kernels whose cost is known stand under the device's roofline."""

    ops: Annotated[list[RoofEntry], Field("Ops by shapes.", most=50)]
    kernels: Annotated[list[RoofEntry], Field("Kernels that did all of their op's work.", most=50)]


class UtilisationEntry(TypedDict):
    """Model FLOPs utilisation of a device."""

    device: Annotated[Index | None, Field("Index of the device; null for the host's time.", "device")]
    flops_per_step: Annotated[Count, Field("Operations of matrix products that were counted.", "FLOPs per step")]
    counted_share: Annotated[
        Share,
        Field(
            "Share of kernel time whose operations were counted, or that has no matrix products.", "kernel time counted"
        ),
    ]
    share: Annotated[
        Ratio | None,
        Field("Time the products take at the peak of their format, over the time of the steps."),
    ]
    reason: Annotated[str | None, Field("Why there is no share.", "of the peak")]
