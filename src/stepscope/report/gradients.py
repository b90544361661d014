"""The quick estimate of what reducing gradients takes, as a sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.units import format_bytes, format_count, format_ns, format_rate

if TYPE_CHECKING:
    from stepscope.document.report import Report as Document


def headlines(document: Document, *, verbose: bool = True) -> list[tuple[str, str]]:
    """The estimate as a line below the step time; none without, and in short reports only where it was asked for."""
    told = sentence(document)
    estimate = document["analyses"].get("gradients")
    if estimate is None or told is None:
        return []
    asked = verbose or "given" in (estimate["source"], estimate["link_source"])
    return [("gradients", told)] if asked else []


def sentence(document: Document) -> str | None:
    """Both formulas with their figures, or what is missing for them; None where nothing is reduced."""
    estimate = document["analyses"].get("gradients")
    if estimate is None:
        return None
    what = format_bytes(estimate["bytes_per_step"])
    if estimate["source"] == "given":
        what = f"{format_count(estimate['parameters'])} parameters × {estimate['bytes_per_parameter']} B = {what}"
    if estimate["estimate_ns"] is None or estimate["link_bandwidth"] is None:
        why = "the ranks are on several hosts" if estimate["one_host"] is False else "the device's link is not known"
        return f"{what} per step; {why}: no estimate (`--bandwidth 25GB/s` makes one)"
    link = "the link's peak in one direction" + ("" if estimate["one_host"] else ", if all ranks share a host")
    link = "the bandwidth as given" if estimate["link_source"] == "given" else link
    rate, took = format_rate(estimate["link_bandwidth"], "B/s"), format_ns(estimate["estimate_ns"])
    told = f"{what} per step / {rate} = {took} ({link})"
    if estimate["ring_estimate_ns"] is not None:
        told += f"; corrected for a ring of {estimate['ranks']}: {format_ns(estimate['ring_estimate_ns'])}"
    if estimate["measured_ns"] is not None:
        told += f"; measured, waiting included: {format_ns(estimate['measured_ns'])}"
    return told
