"""Profiles from running jobs, in TensorBoard's folder layout, each checked before it counts."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from stepscope.errors import StepscopeError, UsageError
from stepscope.remote import client
from stepscope.remote.addresses import Address, parsed
from stepscope.remote.limits import CAPTURE_BYTES, CAPTURE_LONGEST_S, CAPTURE_WAIT_S
from stepscope.remote.messages import KINETO, XPLANE, ProfileRequest, ProfileResponse
from stepscope.replacing import replacing

if TYPE_CHECKING:
    from stepscope.pipeline import Profile

KNOWS_STEPS = "stepscope"
"""How our servers' answers to Monitor begin."""


@dataclass(frozen=True)
class CaptureWanted:
    """What to record: a stretch of time or, where ``steps`` is given, steps."""

    duration_s: float = 2.0
    steps: int | None = None
    stacks: bool = True
    shapes: bool = False
    memory: bool = False
    timeout_s: float = CAPTURE_WAIT_S
    """How long a profile may take to arrive once its recording is over."""
    max_bytes: int = CAPTURE_BYTES
    token: str | None = None

    def __post_init__(self) -> None:
        """Raises UsageError for what cannot be recorded."""
        if not 0.001 <= self.duration_s <= CAPTURE_LONGEST_S:
            raise UsageError(f"a capture lasts from 1 ms to {CAPTURE_LONGEST_S:g} s, not {self.duration_s:g} s")
        if self.steps is not None and self.steps < 1:
            raise UsageError(f"{self.steps} steps cannot be recorded: give 1 or more")


@dataclass(frozen=True)
class Captured:
    """What became of one job: a profile that was read, or why there is none."""

    who: str
    path: Path | None = None
    profile: Profile | None = None
    failure: StepscopeError | None = None


def capture_from(
    address: str,
    out: str | os.PathLike[str] = "stepscope-capture",
    *,
    duration: float | None = None,
    steps: int | None = None,
    stacks: bool = True,
    token: str | None = None,
) -> tuple[Path, ...]:
    """Record running jobs, ``HOST:PORT[,HOST:PORT...]``, for ``duration`` seconds (2) or so many ``steps``.

    The servers are those of JAX, TensorFlow, PyTorch/XLA, and of PyTorch jobs that called ``stepscope.start_server``,
    which alone count steps. Returns the profiles' paths, one per address, below ``out/plugins/profile``, all readable
    and not empty. Raises StepscopeError where one is missing, with those that did arrive below; UsageError where the
    request makes no sense.
    """
    if duration is not None and steps is not None:
        raise UsageError("duration and steps say the same in two ways: give one")
    wanted = CaptureWanted(2.0 if duration is None else duration, steps, stacks, token=token)
    captured = list(capture(parsed(address), Path(out), wanted))
    paths = tuple(each.path for each in captured if each.path is not None)
    failures = [each.failure for each in captured if each.failure is not None]
    if failures:
        first, *others = failures
        arrived = [f"arrived all the same: {path}" for path in paths]
        raise StepscopeError(first.sentence, *first.details, *(other.sentence for other in others), *arrived)
    return paths


def capture(
    addresses: Sequence[Address], out: Path, wanted: CaptureWanted, stop: threading.Event | None = None
) -> Iterator[Captured]:
    """Record jobs at the same time; what became of each, in order; once ``stop`` is set, waits for no more.

    Raises UsageError where a server is to count steps and cannot, StepscopeError where gRPC is not installed.
    """
    if wanted.steps is not None:
        for address in addresses:
            _check_steps(address, wanted.token)
    root = Path(os.path.abspath(out)) / "plugins" / "profile"
    made = [folder for folder in (root, root.parent, root.parent.parent) if not folder.exists()]
    run = _run_name(root)
    request = ProfileRequest(
        duration_ms=round(wanted.duration_s * 1000),
        steps=wanted.steps or 0,
        stacks=wanted.stacks,
        shapes=wanted.shapes,
        memory=wanted.memory,
        repository_root=str(root),
        session_id=run,
        tools=(XPLANE, KINETO),
        emit_xspace=True,
    )
    recording_s = CAPTURE_WAIT_S if wanted.steps is not None else wanted.duration_s
    answers = client.profile(
        addresses,
        request,
        timeout_s=recording_s + wanted.timeout_s,
        max_bytes=wanted.max_bytes,
        token=wanted.token,
        stop=stop,
    )
    try:
        for answer in answers:
            yield _captured(answer, root / run)
    finally:
        for folder in (root / run, *made):
            with suppress(OSError):  # Kept where it holds something.
                folder.rmdir()


def _check_steps(address: Address, token: str | None) -> None:
    said = client.monitor(address, token)
    if said is None or not said.startswith(KNOWS_STEPS):
        raise UsageError(f"{address}: this server counts no steps (only stepscope.start_server's does): use --duration")


def _run_name(root: Path) -> str:
    """The local time, as TensorBoard names runs; with a number where there is such a run already."""
    now = time.strftime("%Y_%m_%d_%H_%M_%S")
    number, name = 1, now
    while True:
        try:
            (root / name).mkdir(parents=True)
            return name
        except FileExistsError:
            number, name = number + 1, f"{now}_{number + 1}"


def _captured(answer: client.ServerAnswer, folder: Path) -> Captured:
    """Store an answer and read it: it counts as a profile only then."""
    who = str(answer.address)
    if answer.failure is not None:
        return Captured(who, failure=answer.failure)
    try:
        path = _stored(answer.address, answer.response, folder)
        return Captured(who, path, read(who, path))
    except StepscopeError as error:
        return Captured(who, failure=error)


def _stored(address: Address, response: ProfileResponse, folder: Path) -> Path:
    path = folder / f"{address.file_stem}.{response.form or XPLANE}"
    if response.form:
        with replacing(path) as part:
            part.write_bytes(response.data)
        return path
    # Servers before `emit_xspace` write where they were told, which may be a disk that both see.
    if path.exists():
        return path
    if response.garbled:
        raise StepscopeError(f"{address}: what the server sent is no profile")
    if response.empty:
        raise StepscopeError(_nothing(address))
    raise StepscopeError(
        f"{address}: the server sent no data: its version writes profiles on its own disk only; give -o a folder that "
        f"both machines see, or look on {address.host} for {path}"
    )


def read(who: str, path: Path) -> Profile:
    """A profile that has arrived. Raises StepscopeError where it is not readable, which keeps it, or empty."""
    from stepscope import pipeline
    from stepscope.inputs.source import Source

    try:
        profile = pipeline.read(Source(path))
    except StepscopeError as error:
        raise StepscopeError(f"{who}: its profile says nothing: {error.sentence}", *error.details) from None
    if not len(profile.trace.slices):
        path.unlink()
        raise StepscopeError(_nothing(who))
    return profile


def _nothing(who: object) -> str:
    return (
        f"{who}: its profile is empty: nothing ran while it was recorded; is the job at work? A longer --duration may "
        "show more"
    )
