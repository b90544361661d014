"""Predicted step times: the measured one, less what a replay with the change is shorter than one without."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

from stepscope.analysis.contradictions import contradictions
from stepscope.analysis.facts import Facts
from stepscope.record import record
from stepscope.trace import intervals as iv
from stepscope.trace.shared import shared
from stepscope.units import format_share
from stepscope.whatif.change import Change
from stepscope.whatif.graph import Graph, dependency_graph
from stepscope.whatif.limits import MATCHED_LAUNCHES_SHARE, REPLAY_ERROR, REPLAY_RESIDUAL_SHARE
from stepscope.whatif.recording import Overhead, overhead, told_step_ns
from stepscope.whatif.records import ReplayedOps
from stepscope.whatif.replay import replay


@record
class Predictor:
    """The replay of one profile and how well it does unchanged."""

    facts: Facts
    graph: Graph
    unchanged_ns: float
    """Mean replayed duration of the used steps."""
    residual_share: float
    """Idle time of the used steps that the replay keeps as measured, as a share of them."""
    recording: Overhead | None = None
    """What recording took of the steps; what is predicted is about steps without it."""

    @property
    def error(self) -> float:
        """How far the unchanged replay is off the measured mean step, as a share of it."""
        measured = float(self.facts.step_ns[list(self.facts.used)].mean())
        return abs(self.unchanged_ns / measured - 1) if measured else 0.0

    @cached_property
    def begun_ns(self) -> float:
        """Mean replayed duration of the used steps with nothing changed, unrecorded where that is known."""
        return self.unchanged_ns if self.recording is None else self._unrecorded(Change())

    @property
    def scale(self) -> float:
        """Of a step that recording makes longer than its calls explain all shrinks alike."""
        return 1.0 if self.recording is None else self.recording.scale

    def saving_ns(self, change: Change) -> int:
        """What a change gains per used step; never negative."""
        left = max(self._unrecorded(change), change.least_ns)
        saved = max(round((self.begun_ns - left) * self.scale), 0)
        return saved if change.most_ns is None else min(saved, change.most_ns)

    def step_ns(self, change: Change) -> int:
        """The mean used step under a change, which may be longer than the measured one."""
        longer = (self._unrecorded(change) - self.begun_ns) * self.scale
        return max(round((told_step_ns(self.facts) or 0) + longer), 0)

    def _unrecorded(self, change: Change) -> float:
        both = change if self.recording is None else change | self.recording.change
        return _mean(self.facts, self.graph, both)

    @property
    def why_not(self) -> str | None:
        """Why this replay is no basis for predictions; None where it is one."""
        if self.error > REPLAY_ERROR:
            return f"simulated as it is, a step comes out {format_share(self.error)} off what was measured"
        if self.residual_share > REPLAY_RESIDUAL_SHARE:
            return f"for {format_share(self.residual_share)} of the step time nothing recorded says what ops waited for"
        return None


@shared
def predictor(facts: Facts) -> Predictor | str:
    """The replay of a profile, else why there is none, in words that follow "because"."""
    reason = _cannot(facts)
    if reason is not None:
        return reason
    graph = dependency_graph(facts)
    made = Predictor(facts, graph, _mean(facts, graph, Change()), _residual_share(facts, graph.ops))
    if made.why_not:
        return made.why_not
    return replace(made, recording=overhead(facts, lambda change: _mean(facts, graph, change)))


def _cannot(facts: Facts) -> str | None:
    if not facts.used_ns:
        return "no complete step was recorded"
    if facts.device_lost:
        return "part of the file is missing"
    if not facts.activities:
        return "no device was recorded"
    if contradictions(facts).withholds:
        return "the profile is not what the job did"
    if facts.sampling.sampled:
        return "events are missing inside the profile"
    late = [(~a.before_profile).sum() for a in facts.activities]
    launched = sum(int(a.launched.sum()) for a in facts.activities) / max(int(sum(late)), 1)
    if launched < MATCHED_LAUNCHES_SHARE:
        return f"the launches of only {format_share(launched)} of the device's ops were recorded"
    return None


def _mean(facts: Facts, graph: Graph, change: Change) -> float:
    return float(replay(facts, graph, change)[list(facts.used)].mean())


def _residual_share(facts: Facts, ops: ReplayedOps) -> float:
    """Residual delays that lie in idle time of the used steps, over all devices that hold steps."""
    kept = total = at = 0
    for activity, account in facts.devices:
        mine = slice(at, at + len(activity))
        at += len(activity)
        if account.rows.device in facts.unused:
            continue
        start, residual = ops.start[mine], ops.residual[mine]
        late = iv.union((start - residual)[residual > 0], start[residual > 0])
        windows = facts.used_windows(account)
        kept += iv.measure(iv.intersect(iv.subtract(late, activity.occupied), iv.union(*windows)))
        total += int((windows[1] - windows[0]).sum())
    return kept / total if total else 0.0
