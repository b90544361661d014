"""``docs/rules.md``: what each rule states and its titles, and every notice; ``docs/limits.md``: thresholds."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from types import ModuleType

from generator import source
from generator.markdown import section, sentence, table
from stepscope import jobs
from stepscope.cluster import notices as job_notices
from stepscope.cluster.rules import DECLARED, JOB_RULES, JobRuleFile
from stepscope.diagnosis import untold, verdict
from stepscope.diagnosis.notices import NOTICES, recording
from stepscope.diagnosis.rule import SCOPES, Rule, flowing, with_unit
from stepscope.diagnosis.rules import RULES, RuleFile
from stepscope.formats.chrome import kineto, sorting, xla
from stepscope.formats.chrome.scan import damage
from stepscope.formats.nsys import about, convert, export, host, nvtx
from stepscope.formats.tf1 import devices as tf_devices
from stepscope.formats.tf1 import graph as tf_graph
from stepscope.formats.tf1 import step_stats, timeline
from stepscope.formats.xplane import device_clock, fate, info, space
from stepscope.names import sync_hints
from stepscope.trace import plausible, select

INTRO = """\
# The rules

When each finding is given. What to do about one is in the report itself, as it depends on the framework, its version,
the devices and the job. Made from what the rules in `src/stepscope/diagnosis/rules/` and `src/stepscope/cluster/rules/`
declare by `make docs`; names in capitals are [thresholds](limits.md). `stepscope rules` says the same.

A rule reads the facts of one profile and either says nothing or makes a *finding*: what costs time, where, how much a
fix saves, and the fix. Findings are ranked by what they save.

{general}

Savings come from a [replay](guides/what-if.md) of the profile without the cause; where nothing can be replayed they are
first-order: the booked time is taken off. The saving of one fix may be part of another's, so they are never added up.
`confidence` is lowered where the capture itself slows the host, where launches were not recorded, and where there are
no steps. In a sampled profile every cost is "not determined".

Below, … and ‹name› stand for what the profile fills in.
"""

LIMITS_INTRO = """\
# Thresholds

From which size on something is said: by [rules](rules.md), notices and analyses. Made by `make docs` from
`src/stepscope/limits.py` and the rules' declarations.
"""

JOBS_INTRO = """\
## Jobs of many ranks

Of a job, findings that its ranks have each for themselves are told once, with how many ranks have them. Beside those
stand the following, which only the ranks together show ([many ranks](guides/many-ranks.md)).
"""

NOTICES_INTRO = """\
Notices are about the profile, not about the job. `damaged_*` and those marked 3 make `profile.complete` false and the
exit status 3. [Formats and damaged files](formats.md) shows which file leads to which."""

READING: tuple[ModuleType, ...] = (
    sorting, kineto, timeline, xla, device_clock, fate, info, space, step_stats, tf_graph, tf_devices, about, convert,
    export, host,
    nvtx, damage, select, plausible,
)  # fmt: skip
"""The modules in which readers count what they lose or doubt, and which count what was cut out."""

NOT_TOLD = """\
**Independent work on one stream.** That two kernels one after another could have run side by side needs to be known of
their data: no profile records what a kernel reads and writes, and a kernel that fills the device gains nothing from
company. What a profile does record, waits between streams, is booked to `dependency`.

**What the host did where it shows nothing** (`unknown_host`). A notice says what would record it."""

UNSAID = frozenset(("flow_open",))
"""Losses that are counted and shown to nobody: they say nothing about the profile."""
HOW_READ = ("How the file had to be read, where that is slower: without numba, or without a folder for compiled code",)
"""Stands for a text that is made elsewhere."""


def page() -> str:
    """The rules in their order, hints for synchronisations, then the notices."""
    texts = source.limit_texts()
    general = texts["FINDING_NS"].replace(
        "at least both of these",
        f"at least {source.limit_value('FINDING_SHARE')} and {source.limit_value('FINDING_NS')}",
    )
    return "\n".join(
        [
            INTRO.format(general=general),
            table(("rule", "what it finds"), map(summary, DECLARED.values())),
            *map(rule_section, RULES),
            JOBS_INTRO,
            *map(rule_section, JOB_RULES),
            section("What to write instead of a synchronising op", table(("op", "why it waits", "instead"), hints())),
            section("What no rule says, and why", NOT_TOLD),
            section("Notices", NOTICES_INTRO, table(("code", "exit status", "text"), notices())),
            section("What bounds the step", bottlenecks()),
        ]
    )


def limits_page() -> str:
    """Every threshold with its value and its reason."""
    texts = source.limit_texts()
    told_at = {text: name for name, text in reversed(texts.items())}
    rows = (
        (f"`{name}`", source.limit_value(name), text if told_at[text] == name else f"With `{told_at[text]}`.")
        for name, text in texts.items()
    )
    own = (
        (f"`{limit.name}`", with_unit(limit.name, limit.value), f"[{rule.id}](rules.md#{rule.id}): {limit.source}")
        for rule in DECLARED.values()
        for limit in rule.limits
    )
    titles = ("limit", "value", "what it is")
    return "\n".join([LIMITS_INTRO, table(titles, rows), section("Of one rule alone", table(titles, own))])


def summary(rule: Rule) -> tuple[str, str]:
    """A rule in a line."""
    return f"[{rule.id}](#{rule.id})", rule.finds


def rule_section(module: RuleFile | JobRuleFile) -> str:
    """One rule: its titles and what it declares; what it finds, in a sentence, is in the table on top of the page."""
    rule = module.RULE
    titles = "\n".join(f"* {title}" for title in dict.fromkeys(titles_of(sys.modules[module.find.__module__])))
    facts = {"Looks at": SCOPES[rule.scope], "Needs": rule.needs, "Predicted": rule.cure, "Example": rule.example}
    told = "\n".join(f"* *{name}:* {flowing(text)}" for name, text in facts.items())
    return section(rule.id, titles, flowing(rule.statement), told)


def titles_of(module: ModuleType) -> Iterator[str]:
    """The titles a rule can give."""
    for call in source.calls(module, "Finding", "_finding", "host_finding", "matrix_finding", "Cause", "_Sort"):
        title = source.keyword(call, "title")
        if isinstance(title, ast.Constant | ast.JoinedStr):  # else handed on from a caller, which says it
            yield source.text(title, module)


def hints() -> Iterator[tuple[str, str, str]]:
    """Ops that make the host wait, by the reason they share."""
    by_hint: dict[sync_hints.SyncHint, list[str]] = {}
    for op, hint in sync_hints._OPS.items():
        by_hint.setdefault(hint, []).append(f"`{op.removeprefix('aten::')}`")
    for hint, ops in by_hint.items():
        yield ", ".join(ops), sentence(hint.cause), "; ".join(map(str, hint.alternatives))


def notices() -> Iterator[tuple[str, str, str]]:
    """Every notice: about the profile, about its events, about the file."""
    of_profiles = [sys.modules[notice.__module__] for notice in (*NOTICES, *recording.NOTICES)]
    for module in dict.fromkeys((*of_profiles, untold, job_notices, jobs)):
        for call in source.calls(module, "Notice"):
            code, text = call.args[:2]
            if isinstance(code, ast.Constant):
                yield f"`{code.value}`", "0", source.text(_text_of(text, module), module)
    found: dict[str, tuple[str, list[str]]] = {}
    for code, status, text in [row for module in READING for row in losses(module)]:
        texts = found.setdefault(f"`{code}`", (status, []))[1]
        if text not in texts:
            texts.append(text)
    for code, (status, texts) in found.items():
        yield code, status, " / ".join(texts)


def losses(module: ModuleType) -> Iterator[tuple[str, str, str]]:
    """The notices about events, or about the file, that a reader makes: code, exit status, text."""
    if module is damage:
        yield from ((f"damaged_{code}", "3", sentence(text)) for code, text in damage.TEXTS.items())
    for code, text, damaged in getattr(module, "_UNUSABLE", {}).values():
        yield f"{'damaged' if damaged else 'profile'}_{code}", "3", sentence(text)
    for call in source.calls(module, "lose", "_lose", "_lost", "rows", "Loss"):
        given = [_text_of(argument, module) for argument in call.args]
        texts = [source.text(node, module) for node in given if _is_text(node)]
        if (len(texts) < 2 and texts != ["reader"]) or texts[0] in UNSAID or not re.fullmatch("[a-z_]+", texts[0]):
            continue
        damaged = source.keyword(call, "damaged") is not None
        says_lost = "lost" if not ast.unparse(call.func).endswith("Loss") else "lost_events"
        is_lost = (source.keyword(call, says_lost) is None) == (says_lost == "lost")
        code = f"{'damaged' if damaged else 'profile'}_{texts[0]}"
        yield code, "3" if is_lost or damaged else "0", sentence((*texts, *HOW_READ)[1])


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _text_of(node: ast.expr, module: ModuleType) -> ast.expr:
    """What a name was last given above, if that is a text."""
    if isinstance(node, ast.Name):
        above = [one for one in source.assignments(module, node.id) if one.lineno < node.lineno]
        if above and _is_text(last := max(above, key=lambda one: one.lineno).value):
            return last
    return node


def bottlenecks() -> str:
    """When a cause is named in the verdict."""
    named = ", ".join(f"`{name}`" for name in verdict.GROUPS)
    return (
        f"`summary.bottleneck` names what bounds the step: the largest of {named}, if it takes at least "
        f"{source.limit_value('BOTTLENECK_SHARE')} of the step; otherwise `device`, or `host` where there is none. "
        "It is named even where no rule has a remedy for it."
    )
