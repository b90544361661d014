"""Bounds of the pages and their server: each says where it comes from."""

from __future__ import annotations

from typing import Final

# --- capturing from running jobs ----------------------------------------------------------------------------------

PAGE_CAPTURE_LONGEST_S: Final = 600.0
"""No capture that is started from the page is longer: its reader waits for it, and cannot end it."""

PAGE_CAPTURES: Final = 100
"""The page starts no more captures than this into one folder: of a usual one's 10 to 100 MB that is at most 10 GB."""

# --- many ranks ---------------------------------------------------------------------------------------------------

LINKED_COLLECTIVES: Final = 1 << 20
"""Collectives of all ranks together that a job's pages join across traces: a choice, some 4 MB."""

VIEW_SLICES: Final = 8_000_000
"""Slices the trace viewer holds at most, of larger traces those of the first steps: measured in Chromium, 5 million
take 430 MB of the page's memory and 1.3 s of its processor's time until the first frame."""

NOTEBOOK_PACK_BYTES: Final = 16 << 20
"""A trace of more bytes is left out below a notebook's cell: the notebook keeps all of it, as text, a third larger."""

# --- the server of the pages --------------------------------------------------------------------------------------

SERVER_CLIENTS: Final = 64
"""Requests that are served at once: a browser has six connections to a server, and a few pages may be open."""

SERVER_ASKS_S: Final = 20.0
"""A request arrives within this time of its connection, or is not answered; browsers also connect without asking."""

SERVER_ANSWERS_S: Final = 900.0
"""An answer is taken within this time: the largest, 300 MB of a trace, through a tunnel of 3 Mbit/s."""
