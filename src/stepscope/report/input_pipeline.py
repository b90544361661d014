"""The input pipeline in the report: ``analyses.input``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.analysis.facts import Facts
from stepscope.analysis.input_stages import InputStages
from stepscope.analysis.iterators import PipelineIterators
from stepscope.analysis.summary import feeds_devices
from stepscope.report.entries import plain, word

if TYPE_CHECKING:
    from stepscope.document import input as told


def entry(facts: Facts, stages: InputStages) -> told.InputPipeline:
    """The pipeline per used step."""
    producers = stages.producers
    return {
        "wait_ns_per_step": facts.per_step(stages.wait_ns),
        "taken_on": stages.taken_on,
        "stages": [
            {
                "name": word(stage.name),
                "side": word(stage.side),
                "ns_per_step": facts.per_step(stage.ns),
                "overlap_share": None if stage.overlapped_ns is None else stage.overlapped_ns / stage.ns,
            }
            for stage in stages.stages
        ],
        "producers": None
        if producers is None
        else {
            "threads": producers.threads,
            "busy_share": producers.busy_share,
            "heaviest_stage": producers.heaviest,
            "feeds_devices": feeds_devices(facts),
            "devices": len(facts.working),
        },
        "queues": [plain(queue) for queue in stages.queues],
        "iterators": None if stages.iterators is None else _iterators(facts, stages.iterators),
    }


def _iterators(facts: Facts, iterators: PipelineIterators) -> told.IteratorsEntry:
    return {
        "wait_ns_per_step": facts.per_step(iterators.wait_ns),
        "cpu_budget": iterators.cpu_budget,
        "threadpool_size": iterators.threadpool_size,
        "each": [
            {
                "path": list(one.path),
                "dataset": one.dataset,
                "calls_per_step": one.calls / len(facts.used) if facts.used else 0.0,
                "ns_per_step": facts.per_step(one.total_ns),
                "own_wait_ns_per_step": facts.per_step(one.own_ns),
                "parallelism": one.parallelism,
                "buffer_limit": one.buffer_limit,
                "autotuned": one.autotuned,
            }
            for one in iterators.each
        ],
    }
