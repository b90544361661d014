"""Python frames as profiles name them: whose code it is, and whether its line says anything."""

from __future__ import annotations

import sys

from stepscope.names.frames import frame_parts
from stepscope.names.hosts import is_frameworks_own, walks_modules
from stepscope.names.libraries import FRAMEWORK_FILES, LIBRARIES, LIBRARY_FUNCTIONS, is_no_place
from stepscope.record import record
from stepscope.regex import regex

_GENERATED = regex(
    r"^<(?!ipython-input|stdin)"  # <eval_with_key>.12 (torch.fx), <string>, <frozen importlib._bootstrap>
    r"|(?:^|/)(?:torchinductor_[^/]*|\.triton|torch_compile_debug|torch_extensions)/"
    r"|(?:^|/)[a-z2-7]{2}/c[a-z2-7]{50,}\.py$"  # Inductor's cache, wherever TORCHINDUCTOR_CACHE_DIR puts it
    r"|__autograph_generated_file"
)
"""Files that a program wrote: nobody looks at their lines."""
_OURS = "stepscope/capture/"
"""What records the job is no place of its program."""
_STANDARD = regex(r"(^|/)(lib/python3\.\d+|[Pp]ython3\d+/[Ll]ib)/")


@record
class Frame:
    """One Python frame: where its function starts or the line being run; None where neither is known."""

    file: str
    line: int | None
    function: str
    is_definition: bool = False
    """Its profiler is known to write where functions begin."""

    def __str__(self) -> str:
        """As profiles write it."""
        return f"{self.file}({self.line or 0}): {self.function}"

    @property
    def told(self) -> str:
        """In a sentence; the file alone where the line is not known."""
        return f"`{self.function}` ({self.file}" + (")" if self.line is None else f":{self.line})")

    @property
    def is_users(self) -> bool:
        """Whether the frame is the user's own code: neither a known library, nor the standard one, nor generated."""
        path = self.file.replace("\\", "/")
        if "site-packages/" in path or "dist-packages/" in path or self.is_generated or _OURS in path:
            return False
        if _STANDARD.search(path):
            return False
        its = LIBRARY_FUNCTIONS.get(path)
        if is_no_place(path) or (its is not None and its.fullmatch(self.function)):
            return False
        root = path.split("/")[0].removesuffix(".py")
        # An absolute path is the user's unless it went through a package folder above.
        return not root or ":" in root or (root not in LIBRARIES and root not in sys.stdlib_module_names)

    @property
    def is_standard(self) -> bool:
        """Whether the frame is of Python's standard library."""
        path = self.file.replace("\\", "/")
        if "site-packages/" in path or "dist-packages/" in path:
            return False
        return _STANDARD.search(path) is not None or path.split("/")[0].removesuffix(".py") in sys.stdlib_module_names

    @property
    def is_generated(self) -> bool:
        """Whether a compiler wrote the file: the line that counts is that of the frame above it."""
        return _GENERATED.search(self.file.replace("\\", "/")) is not None

    @property
    def is_of_a_chosen_library(self) -> bool:
        """Whether the frame is a library's that says more than the framework's or the standard library's own."""
        path = self.file.replace("\\", "/")
        installed = "site-packages/" in path or "dist-packages/" in path or path.split("/")[0] in LIBRARIES
        frameworks = is_frameworks_own(str(self)) or walks_modules(str(self))
        return installed and self.tells_library and not frameworks and _OURS not in path

    @property
    def tells_library(self) -> bool:
        """Whether the frame is not the user's, and its path says whose: a bare ``pxla.py`` is no place to look at."""
        return not self.is_users and not self.is_generated and not is_no_place(self.file)


def parse_frame(name: str) -> Frame | None:
    """Read ``path/file.py(12): function``; None for built-ins and modules."""
    parts = frame_parts(name)
    return Frame(*parts) if parts else None


def is_in_framework(name: str) -> bool:
    """Whether a frame's file is one of JAX's, TensorFlow's or Keras's, by its folder or its name alone."""
    frame = parse_frame(name)
    file = "" if frame is None else frame.file.replace("\\", "/").rpartition("-packages/")[2]
    return file in FRAMEWORK_FILES or file.split("/")[0] in ("jax", "jaxlib", "tensorflow", "keras")


def source_frame(text: str | None) -> Frame | None:
    """Read ``file:line``."""
    file, _, line = (text or "").rpartition(":")
    return Frame(file, int(line), "") if file and line.isdecimal() and len(line) < 19 else None
