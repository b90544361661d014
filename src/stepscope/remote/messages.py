"""The messages of TensorFlow's ProfilerService that captures need (tsl/profiler/protobuf/profiler_service.proto).

Field numbers are those in the binaries of jaxlib 0.10, TensorFlow 2.21 and xprof 2.24; unknown fields are skipped, as
every implementation does. Standard library only.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from stepscope.wire import field, fields, prefix

SERVICE = "tensorflow.ProfilerService"
XPLANE, KINETO = "xplane.pb", "pt.trace.json.gz"
"""Names of tool data: what a profile is called that TensorBoard stores, and PyTorch's own form, which only ours asks
for."""

_MOST_EVENTS = 1_000_000
"""What TensorFlow's own client asks for."""
_OPTIONS_VERSION = 1
_STEPS, _SHAPES, _MEMORY = "stepscope_steps", "stepscope_shapes", "stepscope_memory"
"""Keys of ``ProfileOptions.advanced_configuration``, which other servers pass over."""


@dataclass(frozen=True)
class ProfileRequest:
    """``ProfileRequest`` and its ``ProfileOptions``, as far as they are used here."""

    duration_ms: int = 0
    steps: int = 0
    """Steps instead of a duration; ours alone."""
    stacks: bool = False
    shapes: bool = False
    memory: bool = False
    repository_root: str = ""
    session_id: str = ""
    host_name: str = ""
    starts_ns: int = 0
    """Epoch time before which nothing is to be recorded; 0 is at once."""
    tools: tuple[str, ...] = (XPLANE,)
    emit_xspace: bool = False
    """The profile is wanted in the response's ``xspace``, and not on the server's disk."""

    def encode(self) -> bytes:
        """The message."""
        config = {_STEPS: field(3, self.steps)} if self.steps else {}
        config |= {name: field(2, 1) for name, on in ((_SHAPES, self.shapes), (_MEMORY, self.memory)) if on}
        options = [
            *(field(number, value) for number, value in (
                (1, 1), (2, 2), (3, 1), (4, int(self.stacks)), (5, _OPTIONS_VERSION), (7, 1), (8, self.starts_ns),
                (9, self.duration_ms), (10, self.repository_root),
            )),
            *(field(12, field(1, key) + field(2, value)) for key, value in config.items()),
        ]  # fmt: skip
        return b"".join([
            field(1, self.duration_ms), field(2, _MOST_EVENTS), *(field(3, tool) for tool in self.tools),
            field(4, b"".join(options)), field(5, self.repository_root), field(6, self.session_id),
            field(7, self.host_name), field(9, int(self.emit_xspace)),
        ])  # fmt: skip

    @classmethod
    def decode(cls, message: bytes) -> ProfileRequest:
        """What was asked; a message that makes no sense asks for nothing."""
        told = _last(message)
        options = _bytes(told.get(4))
        wanted = _last(options)
        config = dict(_configuration(options))
        return cls(
            duration_ms=_number(wanted.get(9)) or _number(told.get(1)),
            steps=_number(config.get(_STEPS)),
            stacks=_number(wanted.get(4)) > 0,
            shapes=bool(config.get(_SHAPES)),
            memory=bool(config.get(_MEMORY)),
            repository_root=_text(told.get(5)),
            session_id=_text(told.get(6)),
            host_name=_text(told.get(7)),
            starts_ns=_number(wanted.get(8)),
            tools=tuple(_text(value) for number, value in fields(message) if number == 3),
            emit_xspace=bool(_number(told.get(9))),
        )


@dataclass(frozen=True)
class ProfileResponse:
    """``ProfileResponse``: a profile under the name of its form, or nothing."""

    form: str = ""
    data: bytes | memoryview = b""
    empty: bool = False
    """The server says that nothing was recorded."""
    garbled: bool = False
    """Something came that is no such message."""

    @classmethod
    def decode(cls, message: bytes) -> ProfileResponse:
        """What came: the XSpace, else the first tool data of a form that is known. Copies nothing."""
        empty, form, data = False, "", memoryview(b"")
        for number, value in fields(memoryview(message)):
            if number == 7:
                empty = bool(value)
            elif number == 8 and isinstance(value, memoryview) and len(value):
                return cls(XPLANE, value)
            elif number == 6 and isinstance(value, memoryview) and not form:
                form, data = _tool(value)
        return cls(form, data, empty, garbled=bool(message) and not form and not empty)


def encoded_response(request: ProfileRequest, form: str, data: bytes) -> bytes:
    """``ProfileResponse`` with a profile, where the client looks for it."""
    if request.emit_xspace and form == XPLANE:
        return b"".join((prefix(8, len(data)), data))
    name, size = field(1, form), prefix(2, len(data))
    return b"".join((prefix(6, len(name) + len(size) + len(data)), name, size, data))


def encoded_monitor_request(duration_ms: int) -> bytes:
    """``MonitorRequest``."""
    return field(1, duration_ms) + field(2, 1)


def encoded_monitor_response(text: str) -> bytes:
    """``MonitorResponse``."""
    return field(1, text)


def monitor_text(message: bytes) -> str:
    """What a ``MonitorResponse`` says."""
    return _text(_last(message).get(1))


def terminated_session(message: bytes) -> str:
    """Which session a ``TerminateRequest`` means."""
    return _text(_last(message).get(1))


def _tool(message: memoryview) -> tuple[str, memoryview]:
    told = dict(fields(message))
    name, data = told.get(1), told.get(2)
    for form in (XPLANE, KINETO):
        if isinstance(name, memoryview) and isinstance(data, memoryview) and name == form.encode():
            return form, data
    return "", memoryview(b"")


def _configuration(options: bytes) -> Iterator[tuple[str, int]]:
    """``advanced_configuration``, of which numbers and switches are of interest."""
    for number, entry in fields(options):
        if number == 12 and isinstance(entry, bytes):
            told = _last(entry)
            for kind, value in fields(_bytes(told.get(2))):
                if kind in (2, 3) and isinstance(value, int):
                    yield _text(told.get(1)), value


def _last(message: bytes) -> dict[int, Any]:
    return dict(fields(message))


def _bytes(value: object) -> bytes:
    return value if isinstance(value, bytes) else b""


def _text(value: object) -> str:
    return _bytes(value).decode("utf-8", "replace")


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0
