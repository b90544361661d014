"""Serving of language models in the report: ``analyses.serving``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.analysis.serving import Latency, MemoryTraffic, PhaseUse, Serving
from stepscope.report.entries import word

if TYPE_CHECKING:
    from stepscope.document import serving as told


def entry(serving: Serving) -> told.ServingEntry:
    """What a server ran, by phase."""
    return {
        "server": serving.server,
        "basis": serving.basis,
        "iterations_recorded": serving.recorded,
        "decode_tokens_per_s": serving.decode_tokens_per_s,
        "exact": serving.exact,
        "phases": [_use(use) for use in serving.uses],
    }


def _use(use: PhaseUse) -> told.ServedPhase:
    limit = use.limit
    return {
        "phase": word(use.phase),
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


def _latency(latency: Latency) -> told.LatencyEntry:
    return {"mean": latency.mean, "p50": latency.p50, "p90": latency.p90, "p99": latency.p99}


def _memory(traffic: MemoryTraffic, iterations: int) -> told.ServedMemory:
    return {
        "bytes_per_iteration": round(traffic.bytes / iterations),
        "known_share": traffic.known_share,
        "bandwidth_share": traffic.bandwidth_share,
        "binds": traffic.binds,
    }
