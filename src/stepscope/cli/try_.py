"""``stepscope try``: cures put into the user's own job, measured in turns with it, and written as a patch."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from stepscope.capture import launch
from stepscope.cli.commands import check_command
from stepscope.cli.outputs import chosen_format, format_option
from stepscope.cli.run_folders import new_run
from stepscope.cli.streams import say, stdout_width, to_stderr
from stepscope.errors import Exit, UsageError
from stepscope.regex import regex
from stepscope.replacing import write_text

if TYPE_CHECKING:
    from stepscope.document.trials import TrialsDocument
    from stepscope.trials.patch import Patch

DEFAULT_OUT = "stepscope-try"
_WIDTH_OF_A_FILE = 100
_BUDGET = regex(r"(\d+(?:\.\d+)?)(s|m|h)")
_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0}


def _budget(_: click.Context, __: click.Parameter, text: str) -> float:
    match = _BUDGET.fullmatch(text)
    if match is None or not float(match[1]):
        raise click.BadParameter(f"{text!r} is no time; write one like 90s, 10m or 1h")
    return float(match[1]) * _SECONDS[match[2]]


@click.command("try", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option(
    "--cure", "cures", metavar="NAME", multiple=True,
    help="Try this (workers, workers=2, compile ...) whatever the findings call for. May be given several times.",
)  # fmt: skip
@click.option(
    "--batch-arg", "batch_argument", metavar="NAME",
    help="The command's argument that says the batch size (--batch-size): try others, by time per sample.",
)  # fmt: skip
@click.option("--list", "lists", is_flag=True, help="Show every cure, what it sets and what it may break; run nothing.")
@click.option(
    "--budget", default="10m", show_default=True, callback=_budget, metavar="TIME",
    help="No trial is begun that would end after this (90s, 10m, 1h).",
)  # fmt: skip
@click.option(
    "--steps", type=click.IntRange(2), metavar="N",
    help="Steps timed in each trial. Default: as many as take 3 s, between 20 and 200.",
)  # fmt: skip
@click.option("--seed", type=int, default=0, show_default=True, help="Random numbers of every trial begin with it.")
@click.option(
    "--watch-value", metavar="NAME",
    help="The variable of the loop that must stay the same. Default: what backward() is called on, or Keras's loss.",
)  # fmt: skip
@click.option(
    "--scratch", type=click.Path(file_okay=False, path_type=Path), metavar="DIR",
    help="With --keep: where copies of what the job writes are kept.",
)  # fmt: skip
@click.option(
    "--keep", "kept", type=click.Path(path_type=Path), multiple=True, metavar="PATH",
    help="With --scratch: a file or folder that every trial finds as it is now, as you will.",
)  # fmt: skip
@click.option("--writes-again", is_flag=True, help="Go on although every trial writes the files that the job writes.")
@click.option("--write-patch", metavar="FILE", help="Write the change that has the same effect as a diff to FILE.")
@click.option("--apply", "applies", is_flag=True, help="Make that change in the sources.")
@click.option("--python", metavar="PATH", help="The Python of a script or module, as for stepscope run.")
@click.option("--folder", metavar="DIR", default=DEFAULT_OUT, show_default=True, help="Folder of profiles and logs.")
@format_option("How to write the result.")
@click.option("-o", "--out", metavar="FILE", help="Write to FILE instead of standard output.")
@click.argument("command", nargs=-1, metavar="COMMAND...", type=click.UNPROCESSED)
def try_(command: tuple[str, ...], form: str | None, out: str | None, lists: bool, **chosen: Any) -> int:
    """Try cures on the unchanged job, and say what each one saves, measured.

    COMMAND is as for stepscope run. It is recorded once and diagnosed; then each cure that its findings call for runs
    in it, in turns with the job as it is, in processes that end once their steps are timed; at last all that help
    together. No file of the job is changed: what it writes is asked about first.

    Exit status: 0 done, 1 nothing could be recorded or timed, 2 wrong usage.
    """
    form = chosen_format(form, out, "try.html")
    if lists:
        return _show_list(form)
    if not command:
        raise UsageError("name the command to try: stepscope try train.py")
    check_command(command, "try")
    if bool(chosen["kept"]) != (chosen["scratch"] is not None):
        raise UsageError("--scratch DIR and --keep PATH go together")
    document, change = _tried(command, **chosen)
    _write(document, form, out)
    _write_change(change, chosen["write_patch"], applies=chosen["applies"])
    return Exit.OK if document["baseline"]["runs"] else Exit.UNREADABLE


def _tried(command: tuple[str, ...], **chosen: Any) -> tuple[TrialsDocument, Patch]:
    from stepscope.trials.attempt import TrialRequest, attempt

    words = launch.command_line(command, chosen["python"])
    asked = TrialRequest(
        command=command,
        words=tuple(words), folder=new_run(Path(chosen["folder"])), cures=chosen["cures"], steps=chosen["steps"],
        budget_s=chosen["budget"], seed=chosen["seed"], watch_value=chosen["watch_value"],
        batch_argument=chosen["batch_argument"],
        writes_again=chosen["writes_again"], scratch=chosen["scratch"], kept=chosen["kept"], say=say,
    )  # fmt: skip
    try:
        return attempt(asked)
    except FileNotFoundError as error:
        raise UsageError(f"{words[0]}: no such command") from error


def _write(document: TrialsDocument, form: str, out: str | None) -> None:
    from stepscope.report import trials

    if form == "json":
        made = json.dumps(document, indent=2, allow_nan=False) + "\n"
    elif form == "text":
        made = trials.text(document, stdout_width() if out is None else _WIDTH_OF_A_FILE)
    elif form == "markdown":
        made = trials.markdown(document)
    else:
        from stepscope.web.trials import page

        made = page(document)
    if out is None:
        sys.stdout.write(made)
    else:
        write_text(Path(out), made)


def _write_change(change: Patch, write_patch: str | None, *, applies: bool) -> None:
    if (write_patch or applies) and not change.diff:
        say("there is no patch: nothing that helps can be written as one")
        return
    if write_patch:
        write_text(Path(write_patch), change.diff)
        say(f"wrote {write_patch}: patch -p1 < {write_patch} makes the change")
    if applies:
        for path, (before, after) in change.files.items():
            if path.read_text(encoding="utf-8") != before:
                say(f"{path} was changed meanwhile: it is left as it is")
                continue
            write_text(path, after)
            say(f"changed {path}")


def _show_list(form: str) -> int:
    from stepscope.trials.attempt import listed

    if form == "json":
        click.echo(json.dumps(listed(), indent=2))
        return Exit.OK
    from stepscope.report import trials

    to = click.echo if form == "text" else to_stderr
    to(trials.listed(listed()))
    return Exit.OK
