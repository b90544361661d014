"""Ops, layers, functions and annotations."""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired, TypedDict

from stepscope.document.findings import WhereEntry
from stepscope.document.kinds import Count, Field, Name, Ns, Positive, Rate, Share


class OpUseEntry(TypedDict):
    """Ops of one type, or of one type and place."""

    op: Annotated[Name, Field("The type.", "op")]
    side: Annotated[
        Literal["host", "device"], Field("Whether the calls gave a device work, or are its own.", "side", view="types")
    ]
    count: Annotated[Positive, Field("How many there were.", "count")]
    total_ns: Annotated[
        Ns,
        Field(
            "Time in the ops; inside calls of the same type it counts once. Of an op of the host that "
            "launches, it is the time launching took.",
            "total",
        ),
    ]
    mean_ns: Annotated[Ns, Field("Time per call.", "mean")]
    self_ns: Annotated[Ns, Field("The part in which no other op ran inside.", "own")]
    device_self_ns: Annotated[Ns, Field("Its time as far as no op further inside launched it.", "on device")]
    share: Annotated[Share, Field("`self_ns` of that of all ops of this side.", "share", view="types")]
    launch_sized: Annotated[
        bool | None,
        Field(
            "Whether what ran on devices took, on average, no longer than a launch costs; null where "
            "nothing did or that cost is not known.",
            "tiny",
            view="types",
        ),
    ]
    where: Annotated[WhereEntry | None, Field("The place in the user's program.", "where", view="places")]
    name: Annotated[
        str | None, Field("Node of a graph or instruction of a compiled module, where all calls are of one.")
    ]
    device_ops: Annotated[
        Count, Field("What ran on devices because of these ops, however deep inside it was launched.")
    ]
    device_ns: Annotated[Ns, Field("Its time.")]


class OpsEntry(TypedDict):
    """Ops of the framework that began in the used steps; times and counts are sums over those."""

    launch_cost_ns: Annotated[
        Ns | None,
        Field("From the start of a launching call to that of what it launched, where nothing was queued: the median."),
    ]
    device_ns: Annotated[
        Ns, Field("Time of what ran on devices because of these ops: the sum of all `device_self_ns`.")
    ]
    outside_ns: Annotated[Ns, Field("Time of what was launched in the same steps outside any op.")]
    types: Annotated[Count, Field("How many types there are.")]
    places: Annotated[Count, Field("How many ops by place there are.")]
    by_type: Annotated[list[OpUseEntry], Field("By type, most device time first.", most=50)]
    by_place: Annotated[
        list[OpUseEntry], Field("By type, node and place in the program, most device time first.", most=50)
    ]


class LayerEntry(TypedDict):
    """A layer of the model."""

    path: Annotated[
        Name, Field("The scopes around the layer and its own, outermost first, with slashes between.", "layer")
    ]
    forward_ns_per_step: Annotated[Ns, Field("Its own kernels, in no layer further inside.", "forward")]
    backward_ns_per_step: Annotated[Ns, Field("The kernels that differentiate those.", "backward")]
    share: Annotated[Share, Field("Forward and backward, of all kernels.", "share")]
    kernels_per_step: Annotated[Rate, Field("Kernels of its own.", "kernels")]
    whole_ns_per_step: Annotated[Ns, Field("Forward and backward with all layers inside it.", "with layers inside")]


class AlikeLayers(TypedDict):
    """Layers that are alike."""

    whole: Annotated[LayerEntry, Field("Their sums; `*` where their numbers differ.")]
    layers: Annotated[Positive, Field("How many.")]
    each: Annotated[list[LayerEntry], Field("The dearest; none of one alone.", most=16)]


class LayersEntry(TypedDict):
    """The layers on one device."""

    device: Annotated[int | None, Field("null where the times are those of the host's ops.")]
    total_ns_per_step: Annotated[Ns, Field("Time of all kernels (or ops).")]
    outside_ns_per_step: Annotated[Ns, Field("The part in no layer.")]
    count: Annotated[Count, Field("How many layers there are.")]
    layers: Annotated[list[LayerEntry], Field("Dearest first.", most=50)]
    alike: NotRequired[
        Annotated[
            list[AlikeLayers],
            Field("Layers that differ in their numbers alone as one; absent where there are none.", most=50),
        ]
    ]


class FunctionUseEntry(TypedDict):
    """A Python function."""

    name: Annotated[Name, Field("Its name.", "function")]
    self_ns: Annotated[
        Ns, Field("Time in which nothing recorded ran inside, over all threads of the whole profile.", "own time")
    ]
    count: Annotated[Count, Field("Calls.", "calls")]


class AnnotationMeans(TypedDict):
    """The mean per step, of devices also per device."""

    host_ns: Annotated[Ns, Field("Time of the host inside.")]
    device_ns: Annotated[Ns | None, Field("Time of what was launched inside.")]
    idle_ns: Annotated[Ns | None, Field("Idle time of devices while the host was inside.")]


class AnnotationTimes(TypedDict):
    """Sums over the used steps, of all threads and of all used devices."""

    host_ns: Annotated[Ns, Field("Time of host threads in it.")]
    device_ns: Annotated[
        Ns | None, Field("Busy time of what was launched in it; null where no device, or no op's launch, was recorded.")
    ]
    idle_ns: Annotated[
        Ns | None,
        Field(
            "Idle time of devices while the host was in it, and after launches in it until the op "
            "began; null where no device was recorded."
        ),
    ]
    per_step: Annotated[AnnotationMeans, Field("The mean per step, of devices also per device.")]


class Annotation(TypedDict):
    """A range that the program names."""

    name: Annotated[str, Field("As recorded; ranges of steps that count on have one name without the number.")]
    count: Annotated[Count, Field("How often it begins in the used steps.")]
    per_step: Annotated[Rate, Field("How many per step.")]
    whole: Annotated[
        AnnotationTimes, Field("With the annotations inside it; inside another one of its name it counts once.")
    ]
    own: Annotated[AnnotationTimes, Field("In no annotation further inside.")]


class AnnotationsEntry(TypedDict):
    """Time per annotation: the ranges that the program or its framework named (record_function, TraceAnnotation,
    xp.Trace, tf.profiler.experimental.Trace), over the used steps. Steps are none. Absent where there is none."""

    steps: Annotated[Positive, Field("How many steps the sums are of.")]
    devices: Annotated[Count, Field("How many devices the sums of devices are of.")]
    count: Annotated[Positive, Field("How many names there are.")]
    outside: Annotated[
        AnnotationTimes,
        Field(
            "What is in none: with the own times it sums to the steps. Of the host its main thread's; "
            "of devices also what no launch was recorded of."
        ),
    ]
    annotations: Annotated[list[Annotation], Field("Those with most time on the host first.", most=500)]
