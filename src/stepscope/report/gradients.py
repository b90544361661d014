"""The quick estimate of what reducing gradients takes, as a sentence."""

from __future__ import annotations

from typing import Any

from stepscope.units import format_bytes, format_count, format_ns, format_rate


def headlines(document: dict[str, Any], *, verbose: bool = True) -> list[tuple[str, str]]:
    """The estimate as a line below the step time; none without, and in short reports only where it was asked for."""
    told = sentence(document)
    found = document["analyses"].get("gradients") or {}
    asked = verbose or "given" in (found.get("source"), found.get("link_source"))
    return [("gradients", told)] if told and asked else []


def sentence(document: dict[str, Any]) -> str | None:
    """Both formulas with their figures, or what is missing for them; None where nothing is reduced."""
    found = document["analyses"].get("gradients")
    if found is None:
        return None
    what = format_bytes(found["bytes_per_step"])
    if found["source"] == "given":
        what = f"{format_count(found['parameters'])} parameters × {found['bytes_per_parameter']} B = {what}"
    if found["estimate_ns"] is None:
        why = "the ranks are on several hosts" if found["one_host"] is False else "the device's link is not known"
        return f"{what} per step; {why}: no estimate (`--bandwidth 25GB/s` makes one)"
    link = "the link's peak in one direction" + ("" if found["one_host"] else ", if all ranks share a host")
    link = "the bandwidth as given" if found["link_source"] == "given" else link
    rate, took = format_rate(found["link_bandwidth"], "B/s"), format_ns(found["estimate_ns"])
    told = f"{what} per step / {rate} = {took} ({link})"
    if found["ring_estimate_ns"] is not None:
        told += f"; corrected for a ring of {found['ranks']}: {format_ns(found['ring_estimate_ns'])}"
    if found["measured_ns"] is not None:
        told += f"; measured, waiting included: {format_ns(found['measured_ns'])}"
    return told
