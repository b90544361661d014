"""``docs/rules.md``: what each rule states, its limits, titles and remedies, and every notice."""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Iterator
from types import ModuleType

from generator import source
from generator.markdown import section, sentence, table
from stepscope import jobs, limits
from stepscope.cluster import notices as job_notices
from stepscope.cluster.rules import JOB_RULES
from stepscope.diagnosis import exchange_remedies, matrix_work, untold, verdict
from stepscope.diagnosis import remedies as remedies_module
from stepscope.diagnosis.finding import paragraphs
from stepscope.diagnosis.notices import NOTICES, recording
from stepscope.diagnosis.rules import RULES
from stepscope.names import sync_hints
from stepscope.readers import kineto, sorting, step_stats, tf_devices, tf_graph, timeline
from stepscope.readers.chrome import xla
from stepscope.readers.nsys import about, convert, export, host, nvtx
from stepscope.readers.scan import damage
from stepscope.readers.xplane import device_clock, fate, info, space
from stepscope.trace import select

INTRO = """\
# The rules

Made from the rule files in `src/stepscope/diagnosis/rules/` and from `src/stepscope/limits.py` by `make docs`.

A rule reads the facts of one profile and either says nothing or makes a *finding*: what costs time, where, how much a
fix saves, and the fix. Findings are ranked by what they save.

{general}

Savings come from a [replay](guides/what-if.md) of the profile without the cause; where nothing can be replayed they are
first-order: the booked time is taken off. The saving of one fix may be part of another's, so they are never added up.
`confidence` is lowered where the capture itself slows the host, where launches were not recorded, and where there are
no steps. In a sampled profile every cost is "not determined".

Below, … and ‹name› stand for what the profile fills in.
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
    nvtx, damage, select,
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


EXAMPLES = {"{dtype}": "bfloat16", "{optimizer}": "", "{device}": "cuda", "{name}": "AdamW"}
"""What stands for what a rule fills in."""


def page() -> str:
    """The rules in their order, hints for synchronisations, then the notices."""
    modules = [sys.modules[rule.__module__] for rule in RULES]
    of_jobs = [sys.modules[rule.__module__] for rule in JOB_RULES]
    texts = source.limit_texts()
    general = texts["FINDING_NS"].replace(
        "at least both of these",
        f"at least {source.limit_value('FINDING_SHARE')} and {source.limit_value('FINDING_NS')}",
    )
    return "\n".join(
        [
            INTRO.format(general=general),
            *(rule_section(module) for module in modules),
            JOBS_INTRO,
            *(rule_section(module) for module in of_jobs),
            section("What to write instead of a synchronising op", table(("op", "why it waits", "instead"), hints())),
            section("What no rule says, and why", NOT_TOLD),
            section("Notices", NOTICES_INTRO, table(("code", "exit status", "text"), notices())),
            section("What bounds the step", bottlenecks()),
            section(
                "Limits of the analysis and of notices",
                table(("limit", "value", "what it is"), other_limits([*modules, *of_jobs])),
            ),
        ]
    )


def rule_section(module: ModuleType) -> str:
    """One rule: its statement, limits, titles and remedies."""
    heading, _, rest = (inspect.getdoc(module) or "").partition(": ")
    first, _, statement = rest.partition("\n\n")
    limits = [limit_row(name) for name in limits_of(module)]
    titles = "\n".join(f"* {title}" for title in dict.fromkeys(titles_of(module)))
    own = [remedy(text) for _, text in source.constants(module, "_FIX")]
    remedies = "\n\n".join([*by_framework(module), *own])
    return section(
        heading,
        sentence(first),
        " ".join(statement.replace("``", "`").split()),
        f"**Titles**\n\n{titles}",
        f"**Limits**\n\n{table(('limit', 'value', 'what it is'), limits)}" if limits else "",
        f"**Remedies**, chosen by what the profile shows\n\n{remedies}" if remedies else "",
    )


def limits_of(module: ModuleType) -> list[str]:
    """The limits a rule applies itself, and those its statement names: what it rests on may apply them."""
    named = re.findall(r"``([A-Z_]+)``", module.__doc__ or "")
    return list(dict.fromkeys([*source.limits_of(module), *(name for name in named if name in vars(limits))]))


def titles_of(module: ModuleType) -> Iterator[str]:
    """The titles a rule can give."""
    for call in source.calls(module, "Finding", "_finding", "host_finding", "matrix_finding", "Cause", "_Sort"):
        title = source.keyword(call, "title")
        if isinstance(title, ast.Constant | ast.JoinedStr):  # else handed on from a caller, which says it
            yield source.text(title, module)


def limit_row(name: str) -> tuple[str, str, str]:
    """A limit, its value and what it is."""
    return f"`{name}`", source.limit_value(name), source.limit_texts().get(name, "")


def other_limits(modules: list[ModuleType]) -> list[tuple[str, str, str]]:
    """The limits that no rule of the list applies itself."""
    told = {name for module in modules for name in limits_of(module)}
    return [limit_row(name) for name in vars(limits) if name.isupper() and name not in told]


def remedy(raw: str) -> str:
    """A remedy as Markdown; lines indented by four spaces are code."""
    lines: list[str] = []
    code: list[str] = []
    for name, example in EXAMPLES.items():
        raw = raw.replace(name, example)
    for line in [*paragraphs(raw.strip("\n")).splitlines(), ""]:
        if line.startswith("    "):
            code.append(line[4:])
            continue
        if code:
            lines += ["", "```text", *code, "```", ""]
            code = []
        lines.append(line)
    return "\n".join(lines).strip()


def by_framework(module: ModuleType) -> Iterator[str]:
    """The remedies of a rule that each framework has its own words for."""
    known = remedies_module
    frameworks = {known.PYTORCH, known.JAX, known.TENSORFLOW, known.TORCH_XLA}
    # What the rules on matrix work share, and what one rule has much of, is in a module beside them.
    shared = vars(matrix_work) if "sixteen_bits" in vars(module) else {}
    shared = vars(exchange_remedies) if "cures" in vars(module) else shared
    for texts in [*vars(module).values(), *shared.values()]:
        if not isinstance(texts, dict) or None not in texts or not set(texts) - {None} <= frameworks:
            continue
        for framework, text in texts.items():
            parts = [part if isinstance(part, known.Part) else known.Part(part) for part in as_parts(text)]
            told = "\n\n".join(condition(part) + remedy(part.text) for part in parts if remedy(part.text))
            whose = f"*{framework or 'Others'}.* " if len(texts) > 1 else ""
            if told:
                yield whose + told


def as_parts(text: remedies_module.Text) -> tuple[str | remedies_module.Part, ...]:
    """The parts of a remedy, of which those side by side that hold everywhere are one."""
    made: list[str | remedies_module.Part] = []
    for part in (text,) if isinstance(text, str) else text:
        if isinstance(part, str) and made and isinstance(made[-1], str):
            made[-1] = f"{made[-1]}\n{part}"
        else:
            made.append(part)
    return tuple(made)


def condition(part: remedies_module.Part) -> str:
    """When a part of a remedy is given, in words before it."""
    since = f"from {part.since[0]}.{part.since[1]}" if part.since else ""
    before = f"before {part.before[0]}.{part.before[1]}" if part.before else ""
    purposes = "no training" if part.purposes == remedies_module.INFERS else " or ".join(part.purposes)
    given = f"where {' and '.join(part.given)} is in use" if part.given else ""
    unless = f"unless {' or '.join(part.unless)} is in use" if part.unless else ""
    told = ", ".join(filter(None, [since, before, purposes, " or ".join(part.vendors), given, unless]))
    return f"({told}){chr(10) * 2 if part.text.startswith('    ') else ' '}" if told else ""


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
