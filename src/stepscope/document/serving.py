"""Servers of language models, counters of devices, and exchanges over the network."""

from __future__ import annotations

from typing import Annotated, Literal, TypedDict

from stepscope.document.kinds import Bytes, Field, Name, Ns, Positive, Rate, Ratio, Share


class LatencyEntry(TypedDict):
    """How long one takes; a percentile is null where too few were recorded."""

    p50: Annotated[Ns, Field("The median.", "p50")]
    p90: Annotated[Ns | None, Field("9 of 10 take no longer.", "p90")]
    p99: Annotated[Ns | None, Field("99 of 100 take no longer.", "p99")]
    mean: Annotated[Ns, Field("The mean.")]


class ServedLimit(TypedDict):
    """What takes most of the time; null where it is not booked by iteration."""

    category: Annotated[str, Field("A category of the accounting.")]
    share: Annotated[Share, Field("Share of the whole.")]


class ServedMemory(TypedDict):
    """What the kernels whose bytes are known read and write at least."""

    bytes_per_iteration: Annotated[Bytes, Field("Bytes an iteration moves.")]
    known_share: Annotated[Share, Field("Share of kernel time whose bytes are known.")]
    bandwidth_share: Annotated[
        Ratio | None, Field("Their bytes per second as a share of what the memory delivers at most.")
    ]
    binds: Annotated[
        bool, Field("Whether memory is known to set the pace: enough is known, and it is near its bandwidth.")
    ]


class ServedPhase(TypedDict):
    """Iterations that do the same kind of work."""

    phase: Annotated[
        Literal["prefill", "decode", "mixed", "batch", "draft", "idle", "unknown"],
        Field(
            "What the iterations work on: prompts, the next token of answers, both, a smaller model's "
            "guesses, or nothing.",
            "works on",
            view="iterations tokens",
        ),
    ]
    iterations: Annotated[Positive, Field("How many.", "iterations", view="iterations")]
    requests: Annotated[
        Rate | None, Field("Requests per iteration, the median; so are the following.", "requests", view="iterations")
    ]
    prefill_tokens: Annotated[Rate | None, Field("Tokens of prompts.", "prompt tokens", view="iterations")]
    decode_tokens: Annotated[
        Rate | None,
        Field(
            "Tokens that run for them: more than requests where some are guesses.", "answer tokens", view="iterations"
        ),
    ]
    latency_ns: Annotated[
        LatencyEntry,
        Field("How long one takes; a percentile is null where too few were recorded.", "", view="iterations"),
    ]
    ns_per_token: Annotated[
        Ns | None,
        Field(
            "Between two tokens of one request, the median; at most that where not exact.", "per token", view="tokens"
        ),
    ]
    prefill_tokens_per_s: Annotated[
        Rate | None, Field("Tokens of prompts per second of these iterations.", "prompt tokens/s", view="tokens")
    ]
    decode_tokens_per_s: Annotated[
        Rate | None,
        Field(
            "Tokens of answers per second of these iterations; at least that many where not exact.",
            "answer tokens/s",
            view="tokens",
        ),
    ]
    device_busy_share: Annotated[
        Share | None, Field("Share of the time in which a device works.", "device busy", view="tokens")
    ]
    limit: Annotated[
        ServedLimit | None,
        Field("What takes most of the time; null where it is not booked by iteration.", "mostly", view="tokens"),
    ]
    ns: Annotated[Ns, Field("All of them together.")]
    padded_requests: Annotated[Rate | None, Field("Requests that the iteration was made for, some of them empty.")]
    decode_requests: Annotated[Rate | None, Field("Requests that get their next token.")]
    context_tokens: Annotated[Rate | None, Field("Tokens that these requests look back on.")]
    exact: Annotated[
        bool,
        Field("Whether each request that decodes is known to get one token per iteration; else it gets one or more."),
    ]
    memory: Annotated[ServedMemory | None, Field("What the kernels whose bytes are known read and write at least.")]


class ServingEntry(TypedDict):
    """Iterations of a server of language models, as the names of its ranges tell them. Absent where none does."""

    server: Annotated[str, Field("The server's name.")]
    basis: Annotated[Literal["step", "host range", "module"], Field("What the times are of.")]
    iterations_recorded: Annotated[Positive, Field("All in the profile; those cut off at its ends are in no phase.")]
    decode_tokens_per_s: Annotated[
        Rate | None, Field("Tokens of answers per second over all iterations; at least that many where not exact.")
    ]
    exact: Annotated[bool, Field("Whether an iteration gives each request one token.")]
    phases: Annotated[list[ServedPhase], Field("By what they work on, those with most time first.")]


class CounterUseEntry(TypedDict):
    """A value that a device counted."""

    name: Annotated[Name, Field("As recorded.", "counter")]
    device: Annotated[int, Field("Index of the device.", "device")]
    count: Annotated[Positive, Field("Values.", "values")]
    least: Annotated[float, Field("The least.", "least")]
    mean: Annotated[float, Field("The mean.", "mean")]
    most: Annotated[float, Field("The most.", "most")]


class NetworkUseEntry(TypedDict):
    """Exchanges of one kind over the network."""

    name: Annotated[
        Name, Field("Of the action, or of the exchange without the number of the device.", "action or exchange")
    ]
    count: Annotated[Positive, Field("How many there were.", "count")]
    ns: Annotated[Ns, Field("Of all together; several run at a time.", "time")]
    median_ns: Annotated[Ns, Field("The median.", "median")]
    longest_ns: Annotated[Ns, Field("The longest.", "longest")]
