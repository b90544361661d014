"""``stepscope rules``: what is looked for, and when exactly it is said."""

from __future__ import annotations

import json
import sys
import textwrap
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from stepscope.cli.streams import stdout_width

if TYPE_CHECKING:
    from stepscope.diagnosis.rule import Rule


@click.command()
@click.argument("rule_id", metavar="[ID]", required=False)
@click.option(
    "--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True,
    help="How to write it.",
)  # fmt: skip
def rules(rule_id: str | None, form: str) -> int:
    """List the rules that find what costs time, in the order in which one should work, or explain one.

    Of one rule: when it speaks, what it looks at and needs recorded, its thresholds, what its prediction leaves out of
    the step, and an example. A finding's ID (`input_bound.1`) names its rule.
    """
    from stepscope.cluster.rules import DECLARED  # What rules need is not loaded for --help and --version.

    if rule_id is None:
        sys.stdout.write(_json(list(DECLARED.values())) if form == "json" else _list(DECLARED))
        return 0
    rule = DECLARED.get(rule_id.partition(".")[0])
    if rule is None:
        raise click.BadParameter(f"there is no rule {rule_id!r}; `stepscope rules` lists them", param_hint="ID")
    sys.stdout.write(_json([rule]) if form == "json" else _explained(rule))
    return 0


def _list(declared: Mapping[str, Rule]) -> str:
    from stepscope.diagnosis.rule import flowing

    width = max(map(len, declared)) + 2
    return "".join(_wrapped(rule.id.ljust(width), flowing(rule.finds), width) for rule in declared.values())


def _explained(rule: Rule) -> str:
    from stepscope.cluster.rules import SHARED_LIMITS
    from stepscope.diagnosis.rule import SCOPES, flowing, with_unit

    own = [(limit.name, with_unit(limit.name, limit.value), f": {flowing(limit.source)}") for limit in rule.limits]
    shared = [(name, with_unit(name, SHARED_LIMITS[name]), "") for name in rule.shared_limits]
    facts = [
        ("says", flowing(rule.statement)),
        ("looks at", SCOPES[rule.scope]),
        ("needs", flowing(rule.needs)),
        *(("limit", f"{name} = {value}{source}") for name, value, source in (*own, *shared)),
        ("predicted", flowing(rule.cure)),
        ("example", flowing(rule.example)),
        ("page", ", ".join(rule.pages)),
    ]
    width = max(len(name) for name, _ in facts) + 2
    title = textwrap.fill(f"{rule.id}: {flowing(rule.finds)}", stdout_width())
    return f"{title}\n\n" + "".join(_wrapped(name.ljust(width), text, width) for name, text in facts)


def _wrapped(name: str, text: str, width: int) -> str:
    return textwrap.fill(
        text, max(stdout_width(), width + 30), initial_indent=name, subsequent_indent=" " * width,
        break_long_words=False,
    ) + "\n"  # fmt: skip


def _json(chosen: list[Rule]) -> str:
    return json.dumps([asdict(rule) for rule in chosen], indent=2, ensure_ascii=False) + "\n"
