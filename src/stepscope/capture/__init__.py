"""Recording inside the user's job: the session API, and what ``stepscope run`` injects.

Only the standard library is imported here, and imports within the folder are relative: ``stepscope run`` loads the
folder in the job's Python under another name, where stepscope itself need not be installed. The code keeps to what
Python 3.9 understands, since jobs may be older than the tool.

Reading order: ``options`` (what is wanted), ``steps`` (where steps begin), ``window`` (which of them are recorded),
``recorder`` (both together, and what happens when something fails), one backend per framework, ``hooks`` (how steps
are noticed), ``boot`` (how it all gets into a job), ``session`` and ``annotation`` (the API).
"""

from __future__ import annotations

from .annotation import annotate
from .session import Schedule, profile, schedule, step

__all__ = ["Schedule", "annotate", "profile", "schedule", "step"]
