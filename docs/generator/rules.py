"""``docs/rules.md``: the rules, a line each, and what notices are; ``docs/limits.md``: every threshold."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import stepscope
from generator.markdown import section, table
from stepscope import compiled
from stepscope.analysis import limits as analysis_limits
from stepscope.cluster.rules import DECLARED, JOB_RULES
from stepscope.diagnosis import verdict
from stepscope.diagnosis.rule import Rule, flowing, with_unit
from stepscope.diagnosis.rules import RULES
from stepscope.names import sync_hints

PACKAGE = Path(stepscope.__file__).parent
LIMITS: tuple[ModuleType, ...] = (
    *(
        import_module(".".join(("stepscope", *path.relative_to(PACKAGE).with_suffix("").parts)))
        for path in sorted(PACKAGE.rglob("limits.py"))
    ),
    compiled,
)
"""The modules that hold the rooms' thresholds."""

INTRO = """\
# The rules

`stepscope rules ID` tells a rule whole: when exactly it speaks, what it predicts, its [thresholds](limits.md), an
example. So does the head of its file, to which its name leads. Made from those declarations by `make docs`.

A rule reads the facts of one profile and either says nothing or makes a *finding*: what costs time, where, how much a
fix saves, and the fix, which depends on the framework, its version, the devices and the job. Findings are ranked by
what they save.

{general}

Savings come from a [replay](guides/what-if.md) of the profile without the cause; where nothing can be replayed the
booked time is taken off. The saving of one fix may be part of another's, so they are never added up. `confidence` is
lowered where the capture itself slows the host, where launches were not recorded, and where there are no steps. In a
sampled profile every cost is "not determined".
"""

LIMITS_INTRO = """\
# Thresholds

From which size on something is said: by [rules](rules.md), notices and analyses. Why each has its value, and what was
measured for it, stands below it in `limits.py` of its room in `src/stepscope/`. Made from there by `make docs`.
"""

WITHIN = """\
What analyses tell one thing from another by; explained in [their file](../src/stepscope/analysis/limits.py)."""

JOBS = """\
Of a job, findings that its ranks have each for themselves are told once, with how many ranks have them. Beside those
stand the following, which only the ranks together show ([many ranks](guides/many-ranks.md))."""

NOTICES = """\
Notices are about the profile, not about the job: each says in a sentence what is missing or doubtful, and what to do.
`damaged_*`, and those that tell of something lost, make `profile.complete` false and the exit status 3.
[Formats and damaged files](formats.md) shows which file leads to which. Those whose code has no such prefix
(`host_ran_ahead`, `memory_growth`, `wait_costs_nothing` …) tell what is worth knowing and costs no time."""

NOT_TOLD = """\
**Independent work on one stream.** That two kernels one after another could have run side by side needs to be known of
their data: no profile records what a kernel reads and writes, and a kernel that fills the device gains nothing from
company. What a profile does record, waits between streams, is booked to `dependency`.

**What the host did where it shows nothing** (`unknown_host`). A notice says what would record it."""


def page() -> str:
    """The rules in their order, hints for synchronisations, then the notices."""
    general = limit_texts(analysis_limits)["FINDING_NS"].replace(
        "at least both of these", f"at least {limit_value('FINDING_SHARE')} and {limit_value('FINDING_NS')}"
    )
    titles = ("rule", "what it finds", "what has to be recorded")
    return "\n".join(
        [
            INTRO.format(general=general),
            section("Profiles", table(titles, (summary(module.RULE, "diagnosis") for module in RULES))),
            section("Jobs of many ranks", JOBS, table(titles, (summary(each.RULE, "cluster") for each in JOB_RULES))),
            section("What to write instead of a synchronising op", table(("op", "instead"), hints())),
            section("What no rule says, and why", NOT_TOLD),
            section("Notices", NOTICES),
            section("What bounds the step", bottlenecks()),
        ]
    )


def limits_page() -> str:
    """Every threshold with its value and what it is."""
    texts = {name: text for room in LIMITS if room is not analysis_limits for name, text in limit_texts(room).items()}
    told_at = {text: name for name, text in reversed(texts.items())}
    rows = (
        (f"`{name}`", limit_value(name), brief(text) if told_at[text] == name else f"With `{told_at[text]}`.")
        for name, text in texts.items()
    )
    own = (
        (f"`{limit.name}`", with_unit(limit.name, limit.value), f"`{rule.id}`")
        for rule in DECLARED.values()
        for limit in rule.limits
    )
    within = ((f"`{name}`", limit_value(name)) for name in limit_texts(analysis_limits))
    return "\n".join(
        [
            LIMITS_INTRO,
            table(("limit", "value", "what it is"), rows),
            section("Of one rule alone", "`stepscope rules ID` says why.", table(("limit", "value", "rule"), own)),
            section("Of analyses", WITHIN, table(("limit", "value"), within)),
        ]
    )


def brief(text: str) -> str:
    """A reason's beginning: what the limit is, without where it comes from."""
    ends = (text[: found.start()] for found in re.finditer(r"(?<=\w{3}[\w)`])(?:[:;] |\. |\.$)", text))
    return next((end for end in ends if end.count("(") == end.count(")")), text.rstrip(".")) + "."


def summary(rule: Rule, room: str) -> tuple[str, str, str]:
    """A rule in a line; its file begins with what it declares."""
    return f"[{rule.id}](../src/stepscope/{room}/rules/{rule.id}.py)", rule.finds, flowing(rule.needs)


def hints() -> Iterator[tuple[str, str]]:
    """Ops that make the host wait, by what to write instead."""
    by_hint: dict[tuple[str, ...], list[str]] = {}
    for op, hint in sync_hints._OPS.items():
        by_hint.setdefault(tuple(map(str, hint.alternatives)), []).append(f"`{op.removeprefix('aten::')}`")
    for alternatives, ops in by_hint.items():
        yield ", ".join(ops), "; ".join(alternatives)


def limit_texts(room: ModuleType) -> dict[str, str]:
    """What a room says below each threshold; those of one kind that stand together share the text."""
    found: dict[str, str] = {}
    open_names: list[str] = []
    for node in ast.parse(inspect.getsource(room)).body:
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.annotation) == "Final":
            open_names.append(ast.unparse(node.target))
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            said = " ".join(str(node.value.value).replace("``", "`").split())
            kind = open_names[-1].split("_")[0] if open_names else ""
            found |= {name: said if name.startswith(kind) else "" for name in open_names}
            open_names = []
    return found


def limit_value(name: str) -> str:
    """A threshold with its unit."""
    return with_unit(name, next(getattr(room, name) for room in LIMITS if hasattr(room, name)))


def bottlenecks() -> str:
    """When a cause is named in the verdict."""
    named = ", ".join(f"`{name}`" for name in verdict.GROUPS)
    return (
        f"`summary.bottleneck` names what bounds the step: the largest of {named}, if it takes at least "
        f"{limit_value('BOTTLENECK_SHARE')} of the step; otherwise `device`, or `host` where there is none. "
        "It is named even where no rule has a remedy for it."
    )
