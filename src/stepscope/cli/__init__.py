"""The command line: an explicit list of commands, and the one place where an error becomes a sentence."""

from __future__ import annotations

import gc
import os
import sys
import traceback
from collections.abc import Sequence
from io import StringIO

import click

from stepscope._version import __version__
from stepscope.cli.capture import capture
from stepscope.cli.compare import compare
from stepscope.cli.convert import convert
from stepscope.cli.diagnose import diagnose
from stepscope.cli.doctor import doctor
from stepscope.cli.formats import formats
from stepscope.cli.query import query
from stepscope.cli.rules import rules
from stepscope.cli.run import run
from stepscope.cli.slice import slice_
from stepscope.cli.streams import prepare_streams, say, silence, stdout_lost, to_stderr
from stepscope.cli.try_ import try_
from stepscope.cli.view import view
from stepscope.cli.what_if import what_if
from stepscope.errors import Exit, StepscopeError
from stepscope.interpreter import import_numpy_alone

COMMANDS: tuple[click.Command, ...] = (
    diagnose, view, run, try_, capture, compare, what_if, convert, slice_, query, formats, rules, doctor,
)  # fmt: skip

_READING = frozenset(one.name for one in (diagnose, view, compare, what_if, convert, slice_, query))
"""Commands that read profiles."""
_INTERRUPTED = 130
_BROKEN_PIPE = 141
"""What a shell reports for a program that SIGINT or SIGPIPE ended."""
_NEW_OBJECTS = 50_000
"""After so many Python looks for garbage, not after its own 700: what modules make stays."""


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="stepscope", message="%(prog)s %(version)s")
def stepscope() -> None:
    """Say why each training or inference step takes as long as it does, what to change, and what it saves."""


for _command in COMMANDS:
    if _command.name in stepscope.commands:
        raise RuntimeError(f"two commands are called {_command.name}")
    stepscope.add_command(_command)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status; every error ends here, as one sentence on stderr."""
    prepare_streams()
    if arguments is None:  # The process is stepscope's own.
        gc.set_threshold(_NEW_OBJECTS, *gc.get_threshold()[1:])
        if len(sys.argv) > 1 and sys.argv[1] in _READING and not {"-h", "--help"} & set(sys.argv):
            import_numpy_alone()
    try:
        status = _run(sys.argv[1:] if arguments is None else arguments)
        sys.stdout.flush()
        return status
    except click.exceptions.Exit as done:
        return done.exit_code
    except BrokenPipeError:
        silence(sys.stdout)
        return _BROKEN_PIPE
    except (KeyboardInterrupt, click.Abort):
        say("interrupted")
        return _INTERRUPTED
    except click.ClickException as error:
        _show(error)
        return error.exit_code
    except Exception as error:  # noqa: BLE001  The boundary: a user gets a sentence, never a traceback.
        said = _sentences(error)
        say(f"standard output: {said[0]}" if stdout_lost(error) else said[0], *said[1:])
        if os.environ.get("STEPSCOPE_DEBUG") == "1":
            traceback.print_exc()
        return error.status if isinstance(error, StepscopeError) else Exit.UNREADABLE


def _show(error: click.ClickException) -> None:
    text = StringIO()
    error.show(text)
    to_stderr(text.getvalue())


def _run(arguments: Sequence[str]) -> int:
    # Not click's own main(): it gives a broken pipe the status of an unreadable input.
    with stepscope.make_context("stepscope", list(arguments)) as context:
        return int(stepscope.invoke(context) or Exit.OK)


def _sentences(error: Exception) -> tuple[str, ...]:
    return (error.sentence, *error.details) if isinstance(error, StepscopeError) else (_sentence(error),)


def _sentence(error: Exception) -> str:
    match error:
        case MemoryError():
            return "not enough memory to analyse this profile"
        case RecursionError():
            return "this profile is nested too deeply to analyse"
        case OSError() if error.strerror:
            subject = f"{error.filename}: " if error.filename is not None else ""
            return f"{subject}{error.strerror}"
        case _:
            return (
                f"stepscope itself failed ({type(error).__name__}: {error}); please report this, with what "
                "the same command says under STEPSCOPE_DEBUG=1"
            )
