"""``stepscope run``: the user's command, unchanged, with a few of its steps recorded and diagnosed."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from stepscope.capture import launch
from stepscope.capture.options import Options
from stepscope.capture.results import recordings
from stepscope.cli.commands import check_command
from stepscope.cli.early import Early
from stepscope.cli.recorded import tell
from stepscope.cli.run_folders import DEFAULT_OUT, discard_empty, new_run, runs
from stepscope.cli.streams import say
from stepscope.errors import StepscopeError, UsageError
from stepscope.regex import regex

if TYPE_CHECKING:
    from stepscope.cli.watch import Watch

_DEFAULTS = Options()
_WATCH_MINUTES = 10.0
_WATCH_ACTIVE = 2
"""Steps of each window under --watch."""
_S_PER_MINUTE = 60
_NUMBER = regex(r"[0-9]+(?:\.[0-9]+)?")


class _Run(click.Command):
    """A command whose ``--watch`` may stand alone: click would take the script's name for its number."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Give a bare ``--watch`` its number."""
        takes_value = {name for option in self.params if not getattr(option, "is_flag", False) for name in option.opts}
        given, at = list(args), 0
        while at < len(given) and given[at].startswith("-") and given[at] not in ("-m", "--"):
            if given[at] == "--watch":
                has_number = len(given) > at + 2 and _NUMBER.fullmatch(given[at + 1])
                given[at] = f"--watch={given.pop(at + 1) if has_number else _WATCH_MINUTES}"
            at += 2 if given[at] in takes_value else 1
        return super().parse_args(ctx, given)


@click.command(cls=_Run, context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option(
    "-o", "--out", metavar="DIR", default=DEFAULT_OUT, show_default=True,
    help="Folder of runs: each makes a folder in it, run-1, run-2 and so on, for its profiles and reports.",
)  # fmt: skip
@click.option(
    "--python", metavar="PATH",
    help="The Python of a script or module. Default: stepscope's own, or the shell's where it is a pipx or uv tool.",
)  # fmt: skip
@click.option(
    "--skip", type=click.IntRange(0), default=_DEFAULTS.skip, show_default=True, metavar="N",
    help="Steps never recorded; recording begins once step time has settled after them.",
)  # fmt: skip
@click.option(
    "--active", type=click.IntRange(1), metavar="N",
    help=f"Steps recorded. Default: {_DEFAULTS.active}, or as many as end in {_DEFAULTS.budget:g} s, but at least "
    f"{_DEFAULTS.enough}.",
)  # fmt: skip
@click.option(
    "--stacks/--no-stacks", default=True, help="Record Python stacks, for source lines; --no-stacks leaves them out."
)
@click.option("--shapes", is_flag=True, help="Record shapes (PyTorch).")
@click.option("--memory", is_flag=True, help="Record allocations (PyTorch).")
@click.option(
    "--max-seconds", type=click.FloatRange(0.1), default=_DEFAULTS.max_seconds, show_default=True, metavar="S",
    help="Longest recording; the step that runs then is still finished.",
)  # fmt: skip
@click.option(
    "--max-bytes", type=click.IntRange(1), default=_DEFAULTS.max_bytes, show_default=True, metavar="N",
    help="Largest profile that is kept, before it is compressed.",
)  # fmt: skip
@click.option(
    "--experiment", metavar="NAME",
    help="Change one thing (synthetic-input, pinned-memory, workers=N or no-callbacks), and compare with the last run "
    "of the same command in DIR.",
)  # fmt: skip
@click.option(
    "--watch", type=click.FloatRange(0, min_open=True), metavar="[MINUTES]",
    help=f"Record two steps every {_WATCH_MINUTES:g} (or MINUTES) minutes, all through the run, and say when steps "
    "become slower or faster.",
)  # fmt: skip
@click.option(
    "--watch-bytes", type=click.IntRange(1), default=_DEFAULTS.watch_bytes, show_default=True, metavar="N",
    help="With --watch: the oldest profiles are removed beyond this.",
)  # fmt: skip
@click.option(
    "--stop", is_flag=True, help="End the command once its steps are recorded and diagnosed (SIGTERM)."
)  # fmt: skip
@click.argument("command", nargs=-1, required=True, metavar="COMMAND...", type=click.UNPROCESSED)
def run(command: tuple[str, ...], python: str | None, watch: float | None, stop: bool, **chosen: object) -> int:
    """Run a training script and say where its steps' time goes; the script is not edited.

    COMMAND is a script with its arguments (train.py --epochs 3), -m and a module, or any command that starts Python:
    torchrun, python, a shell script. Once step time has settled a few steps are recorded and a few more only timed.
    Then one line says what they wait for and which file holds the diagnosis, which is printed when the command has
    ended. What stepscope says goes to standard error.

    Exit status: the command's own, whatever happens to the recording; 128 + n where signal n ended it; 0 where --stop
    did; 126 or 127 where it cannot be started; 2 wrong usage.
    """
    check_command(command, "run")
    _check(chosen["experiment"])
    if stop and (watch or not hasattr(signal, "SIGCHLD")):
        raise UsageError("--stop ends the command after its one recording: not with --watch, nor on Windows")
    words = launch.command_line(command, python)
    if len(words) > len(command) and command[0] != "-m" and not Path(command[0]).exists():
        say(f"{command[0]}: there is no such file" + ("" if os.path.isabs(command[0]) else f" in {os.getcwd()}"))
        return launch.NOT_FOUND
    options = _options(watch, chosen)
    since = time.time_ns()
    watching = _watch(options, since)
    early = Early(Path(options.out), since, stop=stop)
    try:
        status = launch.run(words, launch.environment_for(options, os.environ), (watching or early).start)
    except OSError as error:
        discard_empty(Path(options.out))
        missing = isinstance(error, FileNotFoundError)
        say(f"{words[0]}: no such command" if missing else f"{words[0]}: cannot be started: {error.strerror}")
        return launch.NOT_FOUND if missing else launch.NOT_EXECUTABLE
    _report(options, since, status, watching, early)
    return 0 if early.stopped else status


def _report(options: Options, since: int, status: int, watching: Watch | None, early: Early) -> None:
    """What the recording found; the exit status is the command's, whatever becomes of it."""
    folder = Path(options.out)
    try:
        if watching:
            watching.finish()
        known = early.finish()
        recorded = recordings(folder, since)
        tell(recorded, known, status)
        if options.experiment is not None and recorded:
            from stepscope.cli.experiments import outcome  # Reads profiles.

            earlier = [each for one in (folder.parent, *runs(folder.parent)) for each in recordings(one, 0)]
            say(*outcome(recorded[0], earlier))
    except KeyboardInterrupt:
        say("interrupted; the profiles are kept")
    except StepscopeError as error:
        say(error.sentence, *error.details)
    except Exception as error:  # noqa: BLE001
        say(f"the diagnosis failed ({type(error).__name__}: {error})")
    finally:
        discard_empty(folder)


def _options(watch: float | None, chosen: dict[str, Any]) -> Options:
    active = chosen.pop("active") or (_WATCH_ACTIVE if watch else None)
    if active is not None:
        chosen |= {"active": active, "enough": active}
    out = os.path.abspath(chosen["out"])
    _check_out(out)
    try:
        out = str(new_run(Path(out)))
    except OSError as error:
        raise UsageError(f"{out}: {error.strerror}: name another folder with --out") from error
    return Options(**{**chosen, "out": out, "watch": (watch or 0.0) * _S_PER_MINUTE})


def _watch(options: Options, since_ns: int) -> Watch | None:
    if not options.watch:
        return None
    from stepscope.cli.watch import Watch  # Reads profiles.

    return Watch(Path(options.out), since_ns)


def _check(experiment: object) -> None:
    from stepscope.capture.experiment import parsed

    try:
        parsed(str(experiment)) if experiment is not None else None
    except ValueError as error:
        raise UsageError(str(error)) from error


def _check_out(out: str) -> None:
    """Refuse a folder that nothing could be written to, before a long job runs for nothing."""
    there = Path(out)
    while not there.exists() and there != there.parent:
        there = there.parent
    if not there.is_dir():
        raise UsageError(f"{there} is not a folder: name another with --out")
    if not os.access(there, os.W_OK | os.X_OK):
        raise UsageError(f"{there} cannot be written to: name a folder with --out")
