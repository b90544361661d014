"""The diagnosis of what ``stepscope run`` recorded, while the job goes on: a job of days is not waited for."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

from stepscope.capture.phases import RecordingPhase
from stepscope.capture.results import Recording, recordings
from stepscope.cli.recorded import RecordedDiagnosis, diagnosed, profiles_of, with_profiles
from stepscope.cli.streams import say

EVERY_S = 1.0
"""How often the folder is looked at."""
LATER_S = 5.0
"""The same once something was found."""
_NICE = 10


def give_way() -> None:
    """The job comes first: this thread takes what it leaves of the processors."""
    if hasattr(os, "setpriority"):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICE)


class Early:
    """``start`` when the job runs, ``finish`` when it has ended."""

    def __init__(self, folder: Path, since_ns: int, *, stop: bool) -> None:
        self.stopped = False
        """Whether the job was asked to end, as --stop has it."""
        self._folder, self._since_ns, self._stop = folder, since_ns, stop
        self._over = threading.Event()
        self._known: RecordedDiagnosis | None = None
        self._thread = threading.Thread(target=self._run, name="stepscope-early", daemon=True)

    def start(self) -> None:
        """Look at the folder from now on, on a thread of its own."""
        self._thread.start()

    def finish(self) -> RecordedDiagnosis | None:
        """What was diagnosed while the job ran, None where nothing was."""
        self._over.set()
        if self._thread.ident is not None:
            self._thread.join()
        return self._known

    def _run(self) -> None:
        give_way()
        before: list[Recording] = []
        told: tuple[Path, ...] = ()
        while not self._over.wait(LATER_S if told else EVERY_S):
            written = recordings(self._folder, self._since_ns)
            # Ranks end their recordings one after another: what is the same when looked at again is all of it.
            is_all, before = written == before and all(each.is_over for each in written if each.steps), written
            recorded = with_profiles(written)
            if not recorded or not is_all or (self._stop and not any(each.steps for each in recorded)):
                continue  # A job of which a stretch of time was recorded may come to its steps yet.
            if told != profiles_of(recorded):
                told = profiles_of(recorded)
                self._diagnose(recorded)
            if all(each.facts.get("phase") == RecordingPhase.DONE.value for each in recorded):
                return

    def _diagnose(self, recorded: list[Recording]) -> None:
        try:
            self._known = diagnosed(recorded)
        except Exception:  # noqa: BLE001  Said at the end, where it is tried again: the job runs on.
            self._known = None
        if not self._over.is_set():
            self._say()

    def _say(self) -> None:
        goes_on = "the command is ended now" if self._stop else "the command goes on"
        if self._known is not None:
            where = (f"the diagnosis: {self._known.report}", f"in a browser: {self._known.page}")
            say(f"recorded, and {goes_on}. {self._known.verdict}", *where)
        if self._stop:
            self.stopped = True
            os.kill(os.getpid(), signal.SIGTERM)  # It is passed on.
