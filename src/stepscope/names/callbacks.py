"""Callbacks of training loops: how Python frames, and the ranges of ``stepscope run``, show them and the batches that
they follow.

A list of callbacks calls them one after the other: what it calls is a callback, whatever that is named. Keras 3 has
``callback_list.py`` for it, Keras 2 a class in ``callbacks.py`` whose batches go through ``_call_batch_hook``. XPlane
files keep no folder of a frame's file, Kineto's do.
"""

from __future__ import annotations

from enum import StrEnum

from stepscope.regex import regex

_LONGEST = 2_048


class CallbackRole(StrEnum):
    """What a frame does in the calling of callbacks."""

    LIST = "list"
    """It begins to call all callbacks."""
    OLD_LIST = "old_list"
    """The same in Keras 2, where a user's own file may have the name: true where ``PASSES`` is seen."""
    PASSES = "passes"
    """Only Keras's way from the list to a callback."""
    HELPS = "helps"
    """Done by the list for all callbacks."""


_ROLES = tuple((role, regex(pattern)) for role, pattern in (
    (CallbackRole.LIST,
     r"(?:^|/)callback_list\.py\(\d+\): on_\w+$"  # keras/src/callbacks/callback_list.py
     r"|(?:^|/)transformers/trainer_callback\.py\(\d+\): call_event$"
     r"|(?:^|/)(?:pytorch_)?lightning/(?:pytorch/)?trainer/call\.py\(\d+\): _call_callback_hooks$"),
    (CallbackRole.OLD_LIST, r"(?:^|/keras/|^keras/|/keras/src/|^keras/src/)callbacks\.py\(\d+\): on_\w+$"),
    (CallbackRole.PASSES, r"(?:^|/)(?:callback_list\.py\(\d+\): _on_\w+|callbacks\.py\(\d+\): _call_\w*hook\w*)$"),
    (CallbackRole.HELPS,
     r"^<|(?:^|/)(?:python_utils|tf_utils|callback_list|contextlib|profiler)\.py\(\d+\): "
     r"|(?:^|/)callbacks\.py\(\d+\): _process_logs$"),
))  # fmt: skip
_BATCH_END = regex(r"(?:^|/)(?:callback_list|callbacks)\.py\(\d+\): (on_(?:train|test|predict)_batch_end)$")
_EVERY_BATCH = regex(r": on_(?:train|test|predict)_batch_(?:begin|end)$")
_ANY_BATCH = regex(r": on_batch_(?:begin|end)$")
_RANGE = regex(r"^keras\.callback: (?P<name>.+) \((?P<file>.+):(?P<line>\d{1,9})\)$")


def callback_role(frame: str) -> CallbackRole | None:
    """What a Python frame does in the calling of callbacks; None for all others, callbacks among them.

    >>> callback_role("callback_list.py(194): on_train_batch_end")
    <CallbackRole.LIST: 'list'>
    """
    text = frame[:_LONGEST].replace("\\", "/")
    return next((role for role, pattern in _ROLES if pattern.search(text)), None)


def ended_batch(frame: str) -> str | None:
    """The kind of batch that a list of callbacks is told of the end of, by the name of its function.

    >>> ended_batch("keras/src/callbacks/callback_list.py(194): on_train_batch_end")
    'on_train_batch_end'
    """
    match = _BATCH_END.search(frame[:_LONGEST].replace("\\", "/"))
    return match[1] if match else None


def is_for_every_batch(frame: str) -> bool:
    """Whether it may be Keras's own method that calls the one for batches of any kind (``on_batch_end``)."""
    return _EVERY_BATCH.search(frame[:_LONGEST]) is not None


def is_for_any_batch(frame: str) -> bool:
    """Whether it is a callback for batches of any kind."""
    return _ANY_BATCH.search(frame[:_LONGEST]) is not None


def named_callback(annotation: str) -> tuple[str, str, int] | None:
    """Class and method, file and line of a callback in whose place ``stepscope run`` put a range.

    >>> named_callback("keras.callback: Metrics.on_train_batch_end (train.py:10)")
    ('Metrics.on_train_batch_end', 'train.py', 10)
    """
    match = _RANGE.match(annotation[:_LONGEST])
    return (match["name"], match["file"], int(match["line"])) if match else None
