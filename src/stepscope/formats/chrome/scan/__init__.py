"""Roads from a Chrome-trace (Kineto) JSON file to the columns of :class:`~stepscope.formats.chrome.events.RawEvents`.

``read_events`` takes the fast road (compiled by numba, several threads) and calls on the tolerant one (Python) for
whatever the fast one does not understand: damage first of all. Both give the same columns for the same bytes.

Supported: an object with ``traceEvents`` or a bare list of events, in any layout of the text; plain or gzip; damage as
listed in ``damage.TEXTS``. Not interpreted here: what the events mean.
"""

from __future__ import annotations

from stepscope.formats.chrome.scan.lazy import parse_arguments, read_arguments
from stepscope.formats.chrome.scan.read import read_events

__all__ = ["parse_arguments", "read_arguments", "read_events"]
