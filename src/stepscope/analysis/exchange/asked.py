"""What is given with the question what reducing gradients takes."""

from __future__ import annotations

from stepscope.record import record


@record
class Asked:
    """What was given with the question; None for what was not."""

    parameters: int | None = None
    """Of the model."""
    bandwidth: float | None = None
    """Bytes per second that a device sends and receives, in one direction: of the slowest link between the ranks."""


NOTHING_GIVEN = Asked()
