"""Collectives by every name they go by: what exchanges data, whatever wrote the profile.

One collective has up to four names in a profile: the kernel's (``ncclDevKernel_AllReduce_…``, which ``names.kernels``
reads), that of the range around its launch (``nccl:all_reduce``, ``gloo:all_reduce``), that of the dispatcher's op
(``c10d::allreduce_``, ``c10d::_allgather_base_``) and the argument ``Collective name`` (``allreduce``,
``_allgather_base``); XLA's has its opcode. The kernel's says least: all point-to-point patterns are ``SendRecv``.

Sources: torch/csrc/distributed/c10d (Ops.cpp, ProcessGroupNCCL.cpp, ProcessGroupGloo.cpp, ParamCommsUtils.hpp),
xla/hlo/ir/hlo_opcode.h.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from stepscope.names.kernels import Collective
from stepscope.names.remembered import remembered
from stepscope.regex import regex

__all__ = ["SYNCHRONISING", "Collective", "Half", "called", "half", "host_collective", "is_dispatch", "message_bytes"]

SYNCHRONISING = frozenset(
    {
        Collective.ALL_REDUCE,
        Collective.ALL_GATHER,
        Collective.REDUCE_SCATTER,
        Collective.ALL_TO_ALL,
        Collective.BARRIER,
    }
)
"""Those that no rank leaves before every rank has entered: each needs data of all others."""

_LIBRARY = regex(r"^(?:nccl|rccl|gloo|mpi|ucc|xccl|ccl|hccl|c10d(?:_functional)?|_c10d_functional)::?", re.I)
_ON_HOST = regex(r"^(?:gloo|mpi|ucc):")
_TENSORFLOW = regex(
    r"[^:]*: ?_?(?:Collective(?P<new>ReduceScatter|Reduce|Gather|Bcast(?:Send|Recv)|AllToAll|Permute)(?:V\d)?"
    r"|Nccl(?P<old>AllReduce|Reduce|Broadcast)(?:Send|Recv)?)$"
)
"""Ops of TensorFlow, ``<name>:<type>`` (tensorflow/core/ops/collective_ops.cc, nccl_ops.cc)."""
_OF_TENSORFLOW = {
    "ReduceScatter": Collective.REDUCE_SCATTER,
    "Reduce": Collective.ALL_REDUCE,
    "Gather": Collective.ALL_GATHER,
    "BcastSend": Collective.BROADCAST,
    "BcastRecv": Collective.BROADCAST,
    "AllToAll": Collective.ALL_TO_ALL,
    "Permute": Collective.SEND_RECV,
}
_OF_NCCL = {
    "AllReduce": Collective.ALL_REDUCE,
    "Reduce": Collective.REDUCE,
    "Broadcast": Collective.BROADCAST,
}
_MOST_ELEMENTS = 1 << 50
_HALF = regex(
    r"%?((?:ragged-)?all-(?:reduce|gather|to-all)|reduce-scatter|collective-(?:permute|broadcast))-(start|done)(.*)$"
)
_KINDS = (
    (Collective.REDUCE_SCATTER, ("reducescatter", "sumscatter")),
    (Collective.ALL_REDUCE, ("allreduce", "crossreplicasum")),
    (Collective.ALL_GATHER, ("allgather", "gatherintotensor")),
    (Collective.ALL_TO_ALL, ("alltoall",)),
    (Collective.BARRIER, ("barrier",)),
    (Collective.BROADCAST, ("broadcast",)),
    (Collective.SEND_RECV, ("sendrecv", "send", "recv", "isend", "irecv", "collectivepermute", "batchisendirecv")),
    (Collective.REDUCE, ("reduce",)),
    (Collective.GATHER, ("gather",)),
    (Collective.SCATTER, ("scatter",)),
)
_BYTES = {
    "float": 4, "float32": 4, "int": 4, "int32": 4, "double": 8, "float64": 8, "long": 8, "int64": 8, "longint": 8,
    "half": 2, "float16": 2, "bfloat16": 2, "short": 2, "shortint": 2, "int16": 2, "char": 1, "byte": 1, "bool": 1,
    "int8": 1, "uint8": 1, "signedchar": 1, "unsignedchar": 1, "float8e4m3fn": 1, "float8e5m2": 1,
    "float8e4m3fnuz": 1, "float8e5m2fnuz": 1, "uint16": 2, "uint32": 4, "uint64": 8, "complexfloat": 8,
    "pred": 1, "s8": 1, "s16": 2, "s32": 4, "s64": 8, "u8": 1, "u16": 2, "u32": 4, "u64": 8, "bf16": 2, "f16": 2,
    "f32": 4, "f64": 8, "c64": 8, "c128": 16, "f8e4m3fn": 1, "f8e5m2": 1, "f8e4m3b11fnuz": 1, "f8e4m3fnuz": 1,
    "f8e5m2fnuz": 1,
}  # fmt: skip
"""Bytes of an element by the names PyTorch gives its types (c10/core/ScalarType.h; C++ names in older profiles), and
XLA (xla_data.proto)."""


def called(name: str) -> Collective | None:
    """What a range, a dispatcher's op, an argument ``Collective name`` or an XLA opcode calls a collective.

    >>> [str(called(name)) for name in ("_allgather_base", "c10d::alltoall_base_", "gloo:all_reduce")]
    ['all_gather', 'all_to_all', 'all_reduce']
    """
    plain = re.sub(r"[^a-z0-9]", "", _LIBRARY.sub("", name[:100]).lower())
    return next((kind for kind, words in _KINDS if plain.startswith(words)), None)


class Half(NamedTuple):
    """One of the two ops as which XLA writes a collective that runs beside others."""

    kind: str
    suffix: str
    """What tells it from others of its kind; mostly the same for both halves."""
    done: bool


def half(name: str) -> Half | None:
    """Which half of which collective an op of XLA is; None for whole ones and all other ops.

    >>> half("%all-reduce-start.3"), half("all-reduce.3")
    (Half(kind='all-reduce', suffix='.3', done=False), None)
    """
    match = _HALF.match(name[:200])
    return Half(match[1], match[3], match[2] == "done") if match else None


def is_dispatch(name: str) -> bool:
    """Whether a host range is the making of a collective: the communication library's range or the dispatcher's op."""
    return name == "record_param_comms" or bool(_LIBRARY.match(name))


def host_collective(name: str) -> Collective | None:
    """The collective that the host itself carries out in a range of this name; None for any other range.

    >>> host_collective("gloo:all_reduce"), host_collective("nccl:all_reduce")
    (<Collective.ALL_REDUCE: 'all_reduce'>, None)
    """
    return called(name) or Collective.GENERIC if _ON_HOST.match(name) else None


def tensorflow_collective(name: str) -> Collective | None:
    """The collective that an op of TensorFlow is, on the host or by way of a device; None for any other op.

    >>> tensorflow_collective("group/CollectiveReduceV2_1:CollectiveReduceV2"), tensorflow_collective("Sum:Sum")
    (<Collective.ALL_REDUCE: 'all_reduce'>, None)
    """
    match = _TENSORFLOW.match(name[:2_048])
    if match is None:
        return None
    return _OF_TENSORFLOW[match["new"]] if match["new"] else _OF_NCCL[match["old"]]


@remembered
def _element_bytes(dtype: str) -> int | None:
    return _BYTES.get(re.sub(r"[^a-z0-9]", "", dtype[:50].removeprefix("c10::").lower()))


def message_bytes(elements: int, dtype: str) -> int | None:
    """Bytes of a message; None where the type is not known, or the message is larger than any machine.

    >>> message_bytes(1024, "BFloat16"), message_bytes(10, "c10::Half"), message_bytes(1, "?")
    (2048, 20, None)
    """
    size = _element_bytes(dtype)
    return elements * size if size is not None and 0 <= elements < _MOST_ELEMENTS else None
