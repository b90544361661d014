"""``docs/cli.md``: the commands, from their declarations."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

import click

from generator.markdown import section, sentence, table
from stepscope.cli import COMMANDS, stepscope
from stepscope.errors import Exit

INTRO = """\
# The command line

`-h` after any command shows its part of this page. Data goes to standard output, everything else (progress, errors) to
standard error. Options with … may be given several times; `--format html` and the like are also chosen by FILE's ending
(.html, .json, .md). Made from the commands in `src/stepscope/cli/` by `make docs`.
"""

USUAL = ("Exit status: 0 done, 1 a profile", "Exit status: 0 done, 1 the profile")
"""How help tells of exit statuses that the table tells of for all."""

SEVERAL = " May be given several times."
BY_ENDING = " Default: by FILE's ending (.html, .json, .md), else text."
"""What is said once for all."""
EXIT_STATUSES: dict[Exit, str] = {
    Exit.OK: "Done. A slow step is not an error.",
    Exit.UNREADABLE: "A profile could not be read, or is none: a sentence on standard error says why.",
    Exit.USAGE: "Wrong usage, or nothing left to cut out or predict.",
    Exit.PARTIAL: "A profile was damaged. The report covers the rest, `profile.complete` is false, and "
    "[notices](formats.md#damaged-and-odd-files) say what was lost or repaired, and where.",
    Exit.FAIL_IF: "A `--fail-if`, of the command line or of pyproject.toml, holds: standard error says which.",
}

ENVIRONMENT = {
    "NO_COLOR": "Set: no colour.",
    "COLUMNS": "Width of the text where standard output is no terminal; 100 without it.",
    "STEPSCOPE_CACHE": "Folder for compiled code; without it the user's cache folder.",
    "STEPSCOPE_BACKGROUND": "`0`: no first run leaves a process behind that makes compiled code.",
    "STEPSCOPE_TOKEN": "The token of `stepscope capture`, which then no list of processes shows.",
    "STEPSCOPE_DEBUG": "`1`: a traceback after the sentence of an error.",
    "NUMBA_DISABLE_JIT": "`1`: read without compiled code, some forty times slower; a notice says so.",
}


def page() -> str:
    """Every command, then what holds for all of them."""
    with click.Context(stepscope, info_name="stepscope", **stepscope.context_settings) as root:
        rows = [row for command in COMMANDS for row in option_rows(command)]
        shared = {row: None for row in rows if rows.count(row) > 1}
        parts = [command_section(command, root, shared) for command in COMMANDS]
    statuses = ((f"{status.value}", meaning) for status, meaning in EXIT_STATUSES.items())
    environment = ((f"`{name}`", meaning) for name, meaning in ENVIRONMENT.items())
    several = "Of commands that do not say their own. With several PATHs it is the lowest that is not 0."
    return "\n".join(
        [
            INTRO,
            *parts,
            section("Options of several commands", table(("option", "effect"), shared)),
            section("Exit statuses", table(("status", "meaning"), statuses), several),
            section("Environment", table(("variable", "effect"), environment)),
        ]
    )


def command_section(command: click.Command, root: click.Context, shared: Collection[tuple[str, str]]) -> str:
    """Usage, help and options of a command; of those that others have too the names."""
    with click.Context(command, info_name=command.name, parent=root) as context:
        usage = " ".join([context.command_path, *command.collect_usage_pieces(context)]).replace(" [OPTIONS]", "")
    paragraphs = (" ".join(part.split()) for part in (command.help or "").split("\n\n"))
    text = "\n\n".join(part for part in paragraphs if not part.startswith(USUAL))
    rows = option_rows(command)
    own = [row for row in rows if row not in shared]
    others = ", ".join(re.sub(r" [^`]+`", "`", row[0]) for row in rows if row in shared)
    told = f"{'And' if own else 'Options'} [as others](#options-of-several-commands): {others}." if others else ""
    parts = (f"`{usage}`", text, table(("option", "effect"), own) if own else "", told)
    return section(f"`stepscope {command.name}`", *filter(None, parts))


def option_rows(command: click.Command) -> list[tuple[str, str]]:
    """Its options; without -h, which each has: it is none of the command's own parameters."""
    return [option_row(parameter) for parameter in command.params if parameter.param_type_name == "option"]


def option_row(option: Any) -> tuple[str, str]:
    """How an option is written, and what it does."""
    value = "" if option.is_flag else f" {option.metavar or '|'.join(getattr(option.type, 'choices', ['VALUE']))}"
    default = f" Default: `{option.default}`." if option.show_default else ""
    told = sentence(option.help or "").removesuffix(SEVERAL).replace(SEVERAL, "")
    names = ", ".join(f"`{name}{value}`" for name in option.opts)
    return f"{names}{' …' if option.multiple else ''}", told.replace(BY_ENDING, "") + default
