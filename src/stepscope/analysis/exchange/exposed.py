"""Exchange that nothing hides, by what is exchanged: each has cures of its own.

An instant in which several run counts once, for the one that takes most in all.
"""

from __future__ import annotations

from enum import StrEnum

import numpy as np

from stepscope.analysis.accounting import Account
from stepscope.analysis.categories import Category
from stepscope.analysis.device import DeviceActivity
from stepscope.analysis.exchange.collectives import KINDS, kinds_of
from stepscope.names.collectives import Collective
from stepscope.record import record
from stepscope.trace import intervals as iv
from stepscope.trace.codes import among
from stepscope.trace.shared import shared
from stepscope.trace.tables import Bools, Rows
from stepscope.trace.trace import Trace


class Exchange(StrEnum):
    """Collectives that are made faster by the same means."""

    REDUCING = "reducing"
    SHARDS = "shards"
    ALL_TO_ALL = "all_to_all"
    BROADCAST = "broadcast"
    POINT_TO_POINT = "point_to_point"
    BARRIER = "barrier"
    UNKNOWN = "unknown"


_OF = {
    Collective.ALL_REDUCE: Exchange.REDUCING,
    Collective.REDUCE: Exchange.REDUCING,
    Collective.ALL_GATHER: Exchange.SHARDS,
    Collective.REDUCE_SCATTER: Exchange.SHARDS,
    Collective.GATHER: Exchange.SHARDS,
    Collective.SCATTER: Exchange.SHARDS,
    Collective.ALL_TO_ALL: Exchange.ALL_TO_ALL,
    Collective.BROADCAST: Exchange.BROADCAST,
    Collective.SEND_RECV: Exchange.POINT_TO_POINT,
    Collective.BARRIER: Exchange.BARRIER,
    Collective.GENERIC: Exchange.UNKNOWN,
}
EXCHANGES = tuple(Exchange)
KINDS_OF = {one: tuple(kind for kind, exchange in _OF.items() if exchange is one) for one in Exchange}
"""The collectives of each; of kernels that only say that they send and receive see ``exchange_of``."""


@record
class Exposed:
    """What one device exchanges in one way, in the used steps."""

    exchange: Exchange
    ops: Rows
    """Its ops in the used steps, by place in the device's activity."""
    exposed_ns: int
    """Total time in which nothing hides them."""


def exchange_of(trace: Trace, activity: DeviceActivity) -> Rows:
    """Per op of a device, its place in ``EXCHANGES``, -1 for what exchanges nothing. A kernel that sends and receives
    is taken for point-to-point only where the host says so: an all-to-all is made of the same kernels."""
    return _exchange_of(activity, trace)


@shared
def _exchange_of(activity: DeviceActivity, trace: Trace) -> Rows:
    kinds, told = kinds_of(trace, activity)
    table = np.array([EXCHANGES.index(_OF[kind]) for kind in KINDS] + [-1], np.int64)
    unsaid = (kinds == KINDS.index(Collective.SEND_RECV)) & ~told
    return np.where(unsaid, EXCHANGES.index(Exchange.UNKNOWN), table[kinds])


def exposed_of(activity: DeviceActivity, account: Account, rows: list[int], exchange: Rows) -> list[Exposed]:
    """What is exposed in some rows of a device's account, most first; the times add up to what the account books."""
    at = np.array(rows, np.intp)
    windows = account.rows.bounds[at], account.rows.bounds[at + 1]
    start, end, category = activity.busy_pieces
    alone = category == Category.COLLECTIVE.code
    rest = iv.intersect((start[alone], end[alone]), iv.union(*windows))
    used = among(account.rows.at(activity.start), at)
    exposed, length = [], activity.end - activity.start
    takes = np.bincount(exchange[exchange >= 0], length[exchange >= 0], len(EXCHANGES))
    for number in np.argsort(-takes, kind="stable").tolist():
        mine = exchange == number
        busy = iv.union(activity.start[mine], activity.end[mine])
        ns = iv.measure(iv.intersect(rest, busy))
        rest = iv.subtract(rest, busy)
        if ns:
            exposed.append(Exposed(EXCHANGES[number], np.flatnonzero(mine & used), ns))
    return sorted(exposed, key=lambda one: -one.exposed_ns)


def is_one_of(exchange: Rows, wanted: tuple[Exchange, ...]) -> Bools:
    """Which ops exchange in one of some ways."""
    return among(exchange, [EXCHANGES.index(one) for one in wanted])
