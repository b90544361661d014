"""The machine as the checks see it: everything they ask goes through one object, which tests replace."""

from __future__ import annotations

import ctypes.util
import glob
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata

_MOST_BYTES = 1 << 16
_LONGEST_COMPLAINT = 200


@dataclass(frozen=True, slots=True)
class ProgramEnd:
    """How a program ended; ``status`` is None where it did not end in time."""

    status: int | None
    out: str = ""
    err: str = ""

    @property
    def complaint(self) -> str:
        """The last line it said, which is where programs put what went wrong."""
        lines = [line.strip() for line in (self.err or self.out).splitlines() if line.strip()]
        return lines[-1][:_LONGEST_COMPLAINT] if lines else "it said nothing"


class Host:
    """This machine."""

    @property
    def environ(self) -> Mapping[str, str]:
        """The environment variables."""
        return os.environ

    @property
    def platform(self) -> str:
        """``linux``, ``darwin`` or ``win32``."""
        return sys.platform

    @property
    def python(self) -> str:
        """The Python that stepscope runs in."""
        return sys.executable

    @property
    def version(self) -> tuple[int, int]:
        """The version of that Python."""
        return sys.version_info[:2]

    @property
    def encoding(self) -> str:
        """The encoding of standard output."""
        return getattr(sys.stdout, "encoding", None) or "unknown"

    @property
    def temporary(self) -> str | None:
        """The folder for temporary files, None where none can be written."""
        try:
            return tempfile.gettempdir()
        except FileNotFoundError:
            return None

    def read(self, path: str) -> str | None:
        """The beginning of a text file, None where it cannot be read."""
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                return file.read(_MOST_BYTES)
        except OSError:
            return None

    def glob(self, pattern: str) -> list[str]:
        """The paths that a pattern matches, in order."""
        return sorted(glob.glob(pattern))

    def usable(self, path: str) -> bool:
        """Whether this user may read and write a path."""
        return os.access(path, os.R_OK | os.W_OK)

    def free_bytes(self, folder: str) -> int | None:
        """What is free on the disk of a folder."""
        try:
            return shutil.disk_usage(folder).free
        except OSError:
            return None

    def which(self, program: str) -> str | None:
        """Where a program is found."""
        return shutil.which(program)

    def library(self, name: str) -> str | None:
        """What the loader finds for a library."""
        return ctypes.util.find_library(name)

    def requirements(self) -> list[str]:
        """What stepscope needs installed."""
        try:
            return metadata.requires("stepscope") or []
        except metadata.PackageNotFoundError:  # Run from its sources.
            return []

    def installed(self, package: str) -> str | None:
        """The version of a package beside stepscope."""
        try:
            return metadata.version(package)
        except metadata.PackageNotFoundError:
            return None

    def run(
        self, command: Sequence[str], seconds: float, environ: Mapping[str, str] | None = None
    ) -> ProgramEnd | None:
        """Run a program with no input; None where it cannot be started.

        It stands in its own folder: a Python looks for modules where it stands, which is often among profiles.
        """
        program = os.path.abspath(shutil.which(command[0]) or command[0])
        try:
            done = subprocess.run(
                [program, *command[1:]], cwd=os.path.dirname(program), env={**os.environ, **(environ or {})},
                stdin=subprocess.DEVNULL, capture_output=True, timeout=seconds, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return ProgramEnd(None)
        except (OSError, ValueError):
            return None
        texts = (stream.decode("utf-8", "replace")[-_MOST_BYTES:] for stream in (done.stdout, done.stderr))
        return ProgramEnd(done.returncode, *texts)
