"""Serving of language models in the report: ``analyses.serving`` and its tables."""

from __future__ import annotations

from typing import Any

from stepscope.analysis.serving import Latency, MemoryTraffic, PhaseUse, Serving
from stepscope.report import labels
from stepscope.report.section import ABSENT, Column, Section, number
from stepscope.units import format_bytes, format_count, format_ns, format_share

_PHASES = {
    "prefill": "prefill (prompts)",
    "decode": "decode (answers)",
    "mixed": "prefill and decode",
    "batch": "a batch of requests",
    "draft": "draft (guessing tokens)",
    "idle": "no request",
    "unknown": "not recorded",
}
_BASES = {
    "step": "times are the steps'",
    "host range": "times are of the ranges on the host, which may end before the device has",
    "module": "times are of the modules on one device",
}


def entry(found: Serving) -> dict[str, Any]:
    """What a server ran, by phase."""
    return {
        "server": found.server,
        "basis": found.basis,
        "iterations_recorded": found.recorded,
        "decode_tokens_per_s": found.decode_tokens_per_s,
        "exact": found.exact,
        "phases": [_use(use) for use in found.uses],
    }


def _use(use: PhaseUse) -> dict[str, Any]:
    limit = use.limit
    return {
        "phase": str(use.phase),
        "iterations": use.count,
        "ns": use.ns,
        "latency_ns": _latency(use.latency),
        "requests": use.requests,
        "padded_requests": use.padded,
        "prefill_tokens": use.prefill_tokens,
        "decode_requests": use.decode_requests,
        "decode_tokens": use.decode_tokens,
        "context_tokens": use.context_tokens,
        "exact": use.exact,
        "ns_per_token": use.ns_per_token,
        "prefill_tokens_per_s": use.prefill_tokens_per_s,
        "decode_tokens_per_s": use.decode_tokens_per_s,
        "device_busy_share": use.busy_share,
        "limit": None if limit is None else {"category": str(limit[0]), "share": limit[1]},
        "memory": None if use.traffic is None else _memory(use.traffic, use.count),
    }


def _latency(latency: Latency) -> dict[str, int | None]:
    return {"mean": latency.mean, "p50": latency.p50, "p90": latency.p90, "p99": latency.p99}


def _memory(traffic: MemoryTraffic, iterations: int) -> dict[str, Any]:
    return {
        "bytes_per_iteration": round(traffic.bytes / iterations),
        "known_share": traffic.known_share,
        "bandwidth_share": traffic.bandwidth_share,
        "binds": traffic.binds,
    }


def tables(given: dict[str, Any] | None) -> list[Section]:
    """The iterations by phase, and what limits how many tokens there are."""
    if given is None:
        return []
    of_tokens = any(use["phase"] != "batch" for use in given["phases"])
    return [_iterations(given), *([_tokens(given)] if of_tokens else [])]


def _iterations(given: dict[str, Any]) -> Section:
    rows = [
        (
            _PHASES[use["phase"]],
            format_count(use["iterations"]),
            _requests(use),
            _number(use["prefill_tokens"]),
            _number(use["decode_tokens"]),
            *(ABSENT if use["latency_ns"][key] is None else format_ns(use["latency_ns"][key])
              for key in ("p50", "p90", "p99")),
        )
        for use in given["phases"]
    ]  # fmt: skip
    columns = (
        Column("works on"),
        number("iterations"),
        number("requests"),
        number("prompt tokens"),
        number("answer tokens"),
        number("p50"),
        number("p90"),
        number("p99"),
    )
    note = f"requests and tokens per iteration, medians; {_BASES[given['basis']]}"
    return Section(f"Iterations of {given['server']}", columns, rows, note)


def _tokens(given: dict[str, Any]) -> Section:
    rows = [
        (
            _PHASES[use["phase"]],
            _bounded(use["ns_per_token"], "≤", use["exact"], format_ns),
            _rate(use["prefill_tokens_per_s"], exact=True),
            _rate(use["decode_tokens_per_s"], exact=use["exact"]),
            ABSENT if use["device_busy_share"] is None else format_share(use["device_busy_share"]),
            _limit(use),
        )
        for use in given["phases"]
    ]
    columns = (
        Column("works on"),
        number("per token"),
        number("prompt tokens/s"),
        number("answer tokens/s"),
        number("device busy"),
        Column("mostly"),
    )
    told = [] if given["decode_tokens_per_s"] is None else [
        f"{_rate(given['decode_tokens_per_s'], exact=given['exact'])} answer tokens a second over all iterations"
    ]  # fmt: skip
    told.append("per token: between two of one request")
    return Section("Tokens, and what limits them", columns, rows, "; ".join(told))


def _requests(use: dict[str, Any]) -> str:
    shown = _number(use["requests"])
    return shown if use["padded_requests"] is None else f"{shown} of {_number(use['padded_requests'])}"


def _number(value: float | None) -> str:
    return ABSENT if value is None else format_count(round(value))


def _rate(value: float | None, *, exact: bool) -> str:
    return _bounded(value, "≥", exact, lambda rate: format_count(round(rate)))


def _bounded(value: Any, sign: str, exact: bool, shown: Any) -> str:
    return ABSENT if value is None else shown(value) if exact else f"{sign} {shown(value)}"


def _limit(use: dict[str, Any]) -> str:
    limit, memory = use["limit"], use["memory"]
    if limit is None:
        return ABSENT
    told = f"{labels.CATEGORIES[limit['category']].words} {format_share(limit['share'])}"
    if limit["category"] != "compute" or memory is None or memory["bandwidth_share"] is None or not memory["binds"]:
        return told
    moved = format_bytes(memory["bytes_per_iteration"])
    return f"{told}: memory, {format_share(memory['bandwidth_share'])} of its bandwidth ({moved} an iteration)"
