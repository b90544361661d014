"""The tables of a server of language models."""

from __future__ import annotations

from typing import Any

from stepscope.document.serving import ServedPhase, ServingEntry
from stepscope.report import labels
from stepscope.report.section import ABSENT, Section
from stepscope.report.tables import Look, table
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


def tables(given: ServingEntry | None) -> list[Section]:
    """The iterations by phase, and what limits how many tokens there are."""
    if given is None:
        return []
    of_tokens = any(use["phase"] != "batch" for use in given["phases"])
    return [_iterations(given), *([_tokens(given)] if of_tokens else [])]


def _iterations(given: ServingEntry) -> Section:
    look = Look(
        "iterations",
        {
            "phase": _phase,
            "requests": _requests,
            "prefill_tokens": lambda use: _number(use["prefill_tokens"]),
            "decode_tokens": lambda use: _number(use["decode_tokens"]),
        },
    )
    note = f"requests and tokens per iteration, medians; {_BASES[given['basis']]}"
    return table(f"Iterations of {given['server']}", ServedPhase, given["phases"], note, look)


def _phase(use: ServedPhase) -> str:
    return _PHASES[use["phase"]]


def _tokens(given: ServingEntry) -> Section:
    look = Look(
        "tokens",
        {
            "phase": _phase,
            "ns_per_token": lambda use: _bounded(use["ns_per_token"], "≤", use["exact"], format_ns),
            "prefill_tokens_per_s": lambda use: _rate(use["prefill_tokens_per_s"], exact=True),
            "decode_tokens_per_s": lambda use: _rate(use["decode_tokens_per_s"], exact=use["exact"]),
            "limit": _limit,
        },
    )
    told = [] if given["decode_tokens_per_s"] is None else [
        f"{_rate(given['decode_tokens_per_s'], exact=given['exact'])} answer tokens a second over all iterations"
    ]  # fmt: skip
    told.append("per token: between two of one request")
    return table("Tokens, and what limits them", ServedPhase, given["phases"], "; ".join(told), look)


def _requests(use: ServedPhase) -> str:
    shown = _number(use["requests"])
    return shown if use["padded_requests"] is None else f"{shown} of {_number(use['padded_requests'])}"


def _number(value: float | None) -> str:
    return ABSENT if value is None else format_count(round(value))


def _rate(value: float | None, *, exact: bool) -> str:
    return _bounded(value, "≥", exact, lambda rate: format_count(round(rate)))


def _bounded(value: Any, sign: str, exact: bool, shown: Any) -> str:
    return ABSENT if value is None else shown(value) if exact else f"{sign} {shown(value)}"


def _limit(use: ServedPhase) -> str:
    limit, memory = use["limit"], use["memory"]
    if limit is None:
        return ABSENT
    told = f"{labels.CATEGORIES[limit['category']].words} {format_share(limit['share'])}"
    if limit["category"] != "compute" or memory is None or memory["bandwidth_share"] is None or not memory["binds"]:
        return told
    moved = format_bytes(memory["bytes_per_iteration"])
    return f"{told}: memory, {format_share(memory['bandwidth_share'])} of its bandwidth ({moved} an iteration)"
