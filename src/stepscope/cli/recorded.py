"""What ``stepscope run`` says of what it recorded: the diagnosis, the pages, and what became of each process."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from shutil import disk_usage

from stepscope.capture.manifest import ENDING
from stepscope.capture.results import Recording
from stepscope.cli.streams import say, to_stderr
from stepscope.errors import StepscopeError
from stepscope.replacing import write_text
from stepscope.units import format_ns, format_share

_WIDTH = 100
_NO_ROOM = 1 << 16
"""What a process says of itself at the end takes some kB."""
_NAMED = 8
"""Processes named in one sentence."""
_ALIKE = 0.5
"""Recorded steps that take less than this share of the others are other work: a backlog, or launches that nobody waited
for."""


@dataclass(frozen=True, slots=True)
class RecordedDiagnosis:
    """The diagnosis of what was recorded."""

    of: tuple[Path, ...]
    """The profiles."""
    verdict: str
    text: str
    page: Path
    """The same with the trace; the text lies beside it."""
    alone: bool
    """Whether it is that of the first process, of several that are no ranks of one job."""

    @property
    def report(self) -> Path:
        """The file that holds the text."""
        return self.page.with_suffix(".txt")


def diagnosed(recorded: list[Recording]) -> RecordedDiagnosis:
    """Diagnose all ranks together; the first process where they are no ranks of one job. Writes text and page.

    Raises StepscopeError where a profile cannot be read, OSError where the disk has no room.
    """
    from stepscope.cli.pages import runs_of  # What reading needs is not loaded for --help and --version.
    from stepscope.inputs.joined import beside
    from stepscope.jobs import Job
    from stepscope.report import terminal
    from stepscope.trials.baseline import opened
    from stepscope.web.assemble import html_file

    first, *others = recorded
    read = opened(recorded)
    if isinstance(read, Job):
        folder = first.manifest.parent.absolute()
        page = folder / f"{folder.name}.{first.facts['started_ns']}.html"  # A later run's stands beside it.
    else:
        page = beside(read.source.path, ".html")
    document = read.document()
    shown = RecordedDiagnosis(
        of=profiles_of(recorded),
        verdict=document["summary"]["verdict"],
        text=terminal.render(document, width=_WIDTH, color=False, verbose=False),
        page=page,
        alone=not isinstance(read, Job) and bool(others),
    )
    write_text(shown.report, shown.text)
    write_text(page, html_file(runs_of(read)))
    return shown


def with_profiles(recordings: list[Recording]) -> list[Recording]:
    """Of several processes those that made steps and left a profile; where none did, those of which a stretch of time
    was recorded."""
    left = [each for each in recordings if each.profiles]
    return [each for each in left if each.steps] or left


def tell(recordings: list[Recording], known: RecordedDiagnosis | None = None, status: int = 0) -> None:
    """Say what was recorded, and why steps take as long as they do, unless that is ``known`` already; the command has
    ended with that ``status``."""
    if not recordings:
        ended = f"; it ended with status {status}" if status else ""
        none = "no process of the command imported a framework that can be recorded"
        say(
            f"no profile was written because {none}{ended}",
            "Python started with -I, -E or -S cannot be watched either.",
        )
        return
    recorded = with_profiles(recordings)
    with_steps = [each for each in recordings if each.steps] or ([] if recorded else recordings[:1])
    for each in with_steps:
        if not each.profiles:
            say(f"{each.who}: no profile was written because {_why_none(each, status)}", *_failures(each))
    try:
        if recorded:
            _tell(recorded, known if known is not None and known.of == profiles_of(recorded) else diagnosed(recorded))
    finally:
        for each in recorded:
            say(f"{each.who}: {_what(each)}", *_failures(each), *_paths(each), str(each.manifest))
        _tell_of_own(recordings, shown=not recorded)
    if not recorded:
        say(f"more in {with_steps[0].manifest}")


def _tell(recorded: list[Recording], shown: RecordedDiagnosis) -> None:
    to_stderr(shown.text)
    several = len(recorded) > 1 and not shown.alone
    say(f"the same with the trace{'s' * several}, for a browser: {shown.page}")
    if shown.alone:
        first, *others = recorded
        say(
            f"this is the diagnosis of {first.who} alone; {_listed([each.who for each in others])} "
            f"{'was' if len(others) == 1 else 'were'} recorded too: stepscope diagnose takes the files below together"
        )


def _tell_of_own(recordings: list[Recording], *, shown: bool) -> None:
    """The diagnosis of the traces that the job's own profiler wrote, the last of each process: ``shown``, or in a file
    where ours is shown already."""
    from stepscope import pipeline
    from stepscope.report import terminal

    for each in [each for each in recordings if each.own_traces][:_NAMED]:
        path = each.own_traces[-1]
        who = "the command's own profiler" + (f" in {each.who}" if len(recordings) > 1 else "")
        try:
            document = pipeline.open_profile(path).brief()
        except StepscopeError as error:
            say(f"{who} wrote {path}, which says nothing: {error.sentence}")
            continue
        text = terminal.render(document, width=_WIDTH, color=False, verbose=False)
        if shown:
            to_stderr(text)
            say(f"this is the diagnosis of what {who} wrote: {path}")
            shown = False
        else:
            # Beside ours: nothing is written where the job writes its own.
            report = each.manifest.with_name(f"own.{each.manifest.name.removesuffix(ENDING)}.txt")
            write_text(report, text)
            say(f"{who} wrote {path}: {document['summary']['verdict']}", f"its diagnosis: {report}")


def profiles_of(recorded: list[Recording]) -> tuple[Path, ...]:
    """All of them."""
    return tuple(path for each in recorded for path in each.profiles)


def _paths(each: Recording) -> list[str]:
    paths = [str(path) for path in each.profiles]
    return paths if len(paths) <= _NAMED else [f"{len(paths) - 1} older profiles, and", paths[-1]]


def _why_none(each: Recording, status: int) -> str:
    """Why a process left no profile, of a command that ended with that status."""
    if not status or each.facts.get("raised"):
        return _why(each)
    if not each.steps and each.facts.get("ended") is None:
        return f"the command ended with status {status} before its first step"
    return f"{_why(each)}; the command ended with status {status}"


def _why(each: Recording) -> str:
    phase = each.facts.get("phase")
    if said := each.facts.get("no_profile"):
        return str(said)
    folder = each.manifest.parent
    if disk_usage(folder).free < _NO_ROOM:
        return f"the disk is full, and neither a profile nor what became of it could be written to {folder}"
    return f"the process ended without notice while it was {phase}"


def _failures(each: Recording) -> list[str]:
    return [f"{failure['when']}: {failure['what']}" for failure in each.facts.get("failures", ())]


def _what(each: Recording) -> str:
    """Steps recorded, and what recording cost."""
    window, times = each.facts.get("window") or {}, each.facts.get("step_ns") or {}
    if not window:
        return str(each.facts.get("ended") or "no step was recorded")
    first, steps = window.get("first_step", 0), window.get("steps", 0)
    text = f"steps {first} to {first + steps - 1} were recorded" if steps else "no whole step was recorded"
    overhead = each.facts.get("overhead")
    if overhead:
        text += f"; a step took {format_ns(times['recorded'])} while recorded and {format_ns(times['unrecorded'])} "
        text += f"otherwise{_compared(overhead)}"
    if steps and (share := each.looking_share) is not None:
        text += f"; looking up its lines took {format_share(share)} of the time"
    ended = window.get("ended")
    if ended not in (None, "recorded"):
        text += f"; {ended}"
    if not steps and times.get("unrecorded"):
        text += f"; before, a step took {format_ns(times['unrecorded'])}"
    return text


def _compared(overhead: float) -> str:
    if overhead >= 1:
        return f" ({overhead:.2f} ×)"
    alike = overhead >= _ALIKE
    return ": steps vary more than recording costs" if alike else ": those recorded are not like the others"


def _listed(names: list[str]) -> str:
    """``a, b and 5 more``."""
    shown = names[:_NAMED] if len(names) > _NAMED + 1 else names
    rest = [f"{len(names) - len(shown)} more"] if len(shown) < len(names) else []
    *most, last = [*shown, *rest]
    return f"{', '.join(most)} and {last}" if most else last
