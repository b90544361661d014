"""``docs/rules.md``: the rules, a line each, and what notices are; ``docs/limits.md``: their thresholds."""

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
from stepscope import compiled, kept_code
from stepscope.analysis import limits as analysis_limits
from stepscope.cluster.rules import JOB_RULES
from stepscope.diagnosis.rule import Rule, with_unit
from stepscope.diagnosis.rules import RULES
from stepscope.names import sync_hints

PACKAGE = Path(stepscope.__file__).parent
TOLD = ("diagnosis", "whatif")
"""Rooms whose thresholds decide what is said of a profile; those of others are in guides, or bound what is read, held
and shown."""
BOUNDS = re.compile(r"DRIFT_|^HOST_(?:LEFT|GONE)_")
"""Within those rooms thresholds of watched runs, which a guide tells, and what a model takes for granted."""
LIMITS: tuple[ModuleType, ...] = (
    *(
        import_module(".".join(("stepscope", *path.relative_to(PACKAGE).with_suffix("").parts)))
        for path in sorted(PACKAGE.rglob("limits.py"))
    ),
    compiled,
    kept_code,
)
"""The modules that hold the rooms' thresholds."""

INTRO = """\
# The rules

`stepscope rules ID` tells a rule whole: when exactly it speaks, what must be recorded for it, what it predicts, its
[thresholds](limits.md), an example. So does its file, to which its name leads. `make docs` makes the page of those
declarations.

A rule says nothing, or makes a *finding*: what costs time, where, what a fix saves, and the fix for this framework,
device and job. Findings are ranked by [saving](guides/what-if.md). {general} In a sampled profile every cost is "not
determined".
"""

LIMITS_INTRO = """\
# Thresholds

From which size on something is said by [rules](rules.md) and notices. `stepscope rules ID` tells the thresholds that
one rule alone has, guides those of [comparisons](guides/compare.md#can-i-trust-the-answer), [jobs of many
ranks](guides/many-ranks.md#who-is-to-blame) and [watched runs](guides/run.md#all-through-a-run). Why each has its
value stands in `limits.py` of its room in `src/stepscope/`.
"""

JOBS = """\
Findings that ranks have each for themselves are told once, with how many have them. These only the ranks together
show ([many ranks](guides/many-ranks.md))."""

NOTICES = """\
Notices say in a sentence what is missing or doubtful in a profile, and what to do. `damaged_*`, and those that tell of
something lost, make `profile.complete` false and the exit status 3 ([which file leads to
which](formats.md#damaged-and-odd-files)). Those without a prefix (`host_ran_ahead`, `memory_growth`,
`wait_costs_nothing` …) tell what is worth knowing and costs no time."""

NOT_TOLD = """\
* **That kernels of one stream could run side by side**: no profile records what a kernel reads and writes. Waits
  between streams are booked to `dependency`.
* **What the host did where nothing shows it** (`unknown_host`): a notice says what would record it."""


def page() -> str:
    """The rules in their order, hints for synchronisations, then the notices."""
    general = limit_texts(analysis_limits)["FINDING_NS"].replace(
        "at least both of these", f"at least {limit_value('FINDING_SHARE')} and {limit_value('FINDING_NS')}"
    )
    titles = ("rule", "finds")
    return "\n".join(
        [
            INTRO.format(general=general),
            section("Profiles", table(titles, (summary(module.RULE, "diagnosis") for module in RULES))),
            section("Jobs of many ranks", JOBS, table(titles, (summary(each.RULE, "cluster") for each in JOB_RULES))),
            section("What to write instead of a synchronising op", table(("op", "instead"), hints())),
            section("What no rule says, and why", NOT_TOLD),
            section("Notices", NOTICES),
        ]
    )


def limits_page() -> str:
    """Thresholds of what is said, with their values and what they are."""
    texts = {name: text for room in told_rooms() for name, text in limit_texts(room).items() if not BOUNDS.search(name)}
    told_at = {text: name for name, text in reversed(texts.items())}
    rows = (
        (f"`{name}`", limit_value(name), brief(text) if told_at[text] == name else f"With `{told_at[text]}`.")
        for name, text in texts.items()
    )
    return "\n".join([LIMITS_INTRO, table(("limit", "value", "is"), rows)])


def told_rooms() -> list[ModuleType]:
    """The rooms that the page tells of."""
    return [room for room in LIMITS if room.__name__.split(".")[1] in TOLD]


def brief(text: str) -> str:
    """A reason's beginning: what the limit is, without where it comes from."""
    ends = (text[: found.start()] for found in re.finditer(r"(?<=\w{3}[\w)`])(?:[:;] |\. |\.$)", text))
    return next((end for end in ends if end.count("(") == end.count(")")), text.rstrip(".")) + "."


def summary(rule: Rule, room: str) -> tuple[str, str]:
    """A rule in a line; its file begins with what it declares."""
    return f"[{rule.id}](../src/stepscope/{room}/rules/{rule.id}.py)", rule.finds


def hints() -> Iterator[tuple[str, str]]:
    """Ops that make the host wait, by what to write instead; of those that do the same, the ones that programs call."""
    by_hint: dict[tuple[str, ...], list[str]] = {}
    for op, hint in sync_hints._OPS.items():
        by_hint.setdefault(tuple(map(str, hint.alternatives)), []).append(op.removeprefix("aten::"))
    for alternatives, ops in by_hint.items():
        called = [op for op in ops if not op.startswith("_")] or ops
        yield ", ".join(f"`{op}`" for op in called), "; ".join(alternatives)


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
