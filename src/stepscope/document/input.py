"""The input pipeline."""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired, TypedDict

from stepscope.document.kinds import Count, Field, Name, Ns, Share


class InputStage(TypedDict):
    """A stage of the input pipeline."""

    name: Annotated[
        Literal[
            "read",
            "source",
            "decode",
            "transform",
            "collate",
            "pin",
            "wait for workers",
            "enqueue",
            "transfer",
            "infeed",
            "h2d",
            "other",
        ],
        Field("What it does.", "stage"),
    ]
    side: Annotated[Literal["training thread", "loader threads", "device"], Field("Who does it.", "by")]
    ns_per_step: Annotated[Ns, Field("All threads together.", "per step")]
    overlap_share: Annotated[
        Share | None, Field("Share in which a device worked on something else; null without a device.", "device works")
    ]


class ProducersEntry(TypedDict):
    """The threads that prepare batches, while one is waited for; null where none was recorded."""

    threads: Annotated[Count, Field("How many threads.")]
    busy_share: Annotated[Share, Field("Share of the waiting in which they worked, a mean over the threads.")]
    heaviest_stage: Annotated[str | None, Field("The stage that takes most of their time; null where no name tells.")]
    feeds_devices: NotRequired[
        Annotated[
            float | None,
            Field(
                "How many devices of this speed these threads keep up with, at their number and with "
                "cores for all; null without a device."
            ),
        ]
    ]
    devices: NotRequired[Annotated[Count, Field("How many devices work in this profile.")]]


class InputIterator(TypedDict):
    """An iterator of tf.data."""

    path: Annotated[list[Name], Field("The datasets from the root to its own.", "iterator")]
    dataset: Annotated[Name | None, Field("Node of the dataset's graph, or those that were made one.", "dataset")]
    calls_per_step: Annotated[float, Field("Elements it was asked for.", "calls per step")]
    ns_per_step: Annotated[Ns, Field("Time of all calls together.", "per step")]
    own_wait_ns_per_step: Annotated[Ns, Field("The part of the waiting for a batch that it takes itself.", "own wait")]
    parallelism: Annotated[
        int | None, Field("Calls or reads that run at once, as the last call says.", "calls at once")
    ]
    buffer_limit: Annotated[int | None, Field("Elements that it keeps ahead at most.", "buffer")]
    autotuned: Annotated[
        bool | None, Field("Whether its number of calls or elements is chosen while it runs.", "autotuned")
    ]


class IteratorsEntry(TypedDict):
    """Iterators of tf.data; null where none was recorded."""

    wait_ns_per_step: Annotated[Ns, Field("Time in which a batch was waited for in one of them.")]
    cpu_budget: Annotated[int | None, Field("Cores that autotuning may use.")]
    threadpool_size: Annotated[int | None, Field("Threads that run the pipeline's functions.")]
    each: Annotated[list[InputIterator], Field("What asks for elements comes before what it asks.")]


class InputQueue(TypedDict):
    """A queue of batches."""

    name: Annotated[str, Field("Its name.")]
    readings: Annotated[Count, Field("How many readings there are.")]
    mean: Annotated[Share, Field("Share of its capacity, over the readings.")]
    least: Annotated[Share, Field("The least that it was full.")]


class InputPipeline(TypedDict):
    """The input pipeline over the used steps; absent where nothing of it was recorded."""

    wait_ns_per_step: Annotated[Ns, Field("Time the training thread is in the loader, whatever it does there.")]
    taken_on: NotRequired[
        Annotated[
            str | None,
            Field("The thread that takes batches, where it has a name and is not the main one; null for that."),
        ]
    ]
    stages: Annotated[list[InputStage], Field("What is done for a batch.")]
    producers: Annotated[
        ProducersEntry | None,
        Field("The threads that prepare batches, while one is waited for; null where none was recorded."),
    ]
    iterators: NotRequired[
        Annotated[IteratorsEntry | None, Field("Iterators of tf.data; null where none was recorded.")]
    ]
    queues: NotRequired[
        Annotated[list[InputQueue], Field("Queues whose fill was recorded, in summaries beside the profile.")]
    ]
