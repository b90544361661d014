"""A record is a frozen dataclass for all that can be seen, also before its methods are made."""

from __future__ import annotations

import pickle
import subprocess
import sys
from dataclasses import FrozenInstanceError, dataclass, field, fields, is_dataclass, replace
from threading import Barrier, Thread

import pytest

from stepscope.record import record


@record
class Point:
    """A place."""

    x: int
    y: int = 2
    tags: tuple[str, ...] = field(default=("a",))
    seen: dict[str, int] = field(default_factory=dict, compare=False)

    @property
    def sum(self) -> int:
        return self.x + self.y


@record
class Deep(Point):
    z: int = 3

    def __post_init__(self) -> None:
        if self.z < 0:
            raise ValueError("below the ground")


@record
class ByName:
    name: str
    other: int

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ByName) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)


@dataclass(frozen=True)
class Plain:
    x: int
    y: int = 2
    tags: tuple[str, ...] = field(default=("a",))
    seen: dict[str, int] = field(default_factory=dict, compare=False)


def test_it_is_what_a_dataclass_is() -> None:
    assert repr(Point(1)) == repr(Plain(1)).replace("Plain", "Point")
    assert hash(Point(1)) == hash(Plain(1))
    assert Point(1) == Point(1, seen={"b": 1}) != Point(2)
    assert replace(Point(1), y=5) == Point(1, 5)
    assert [one.name for one in fields(Point)] == [one.name for one in fields(Plain)]
    assert Point.__match_args__ == Plain.__match_args__
    assert Point(1).sum == 3
    assert Point.tags == ("a",)
    assert not hasattr(Point, "seen")
    for wrong in ((), (1, 2, (), {}, 5)):
        with pytest.raises(TypeError):
            Point(*wrong)


@record
class Node:
    inside: object = None


@dataclass(frozen=True)
class PlainNode:
    inside: object = None


def test_a_single_field_is_compared_and_shown_as_a_dataclass_does() -> None:
    nan, nodes = float("nan"), list[object]()
    assert (Node(nan) == Node(nan)) is (PlainNode(nan) == PlainNode(nan)) is True
    assert hash(Node(7)) == hash(PlainNode(7))
    assert Node(1) != PlainNode(1)
    assert Node(1).__eq__(1) is NotImplemented
    assert repr(Node(Node(1))) == "Node(inside=Node(inside=1))"
    nodes.append(Node(nodes))
    assert repr(nodes) == "[Node(inside=[...])]"


def test_it_is_frozen() -> None:
    point = Point(1)
    with pytest.raises(FrozenInstanceError):
        point.x = 2  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        point.other = 2  # type: ignore[attr-defined]
    with pytest.raises(FrozenInstanceError):
        del point.x  # type: ignore[misc]


def test_one_that_inherits_has_both_fields() -> None:
    assert Deep(1, z=4) == Deep(1, 2, ("a",), {}, 4)
    assert Deep(1) != Point(1)
    with pytest.raises(ValueError, match="below"):
        Deep(1, z=-1)


def test_methods_of_its_own_stay() -> None:
    assert ByName("a", 1) == ByName("a", 2)
    assert {ByName("a", 1), ByName("a", 2)} == {ByName("a", 3)}


def test_its_fields_are_known_before_there_is_one() -> None:
    @record
    class Fresh:
        one: int
        two: int = 2

    assert is_dataclass(Fresh)
    assert [one.name for one in fields(Fresh)] == ["one", "two"]
    assert Fresh.two == 2


def test_another_process_reads_what_this_one_wrote_before_it_made_any() -> None:
    """Ranks come from processes of their own."""
    script = (
        "import pickle, sys; one, other = pickle.loads(sys.stdin.buffer.read()); "
        "assert one == other; assert hash(one) == hash(other); print(repr(one))"
    )
    written = pickle.dumps((Point(1), Point(1)))
    ran = subprocess.run([sys.executable, "-c", script], input=written, capture_output=True, check=True)
    assert ran.stdout.decode().strip() == repr(Point(1))


def test_threads_may_make_the_first_at_once() -> None:
    for _ in range(50):

        @record
        class Fresh:
            one: int

        together, made = Barrier(4), []

        def make(kind: type = Fresh, together: Barrier = together, made: list[object] = made) -> None:
            together.wait()
            made.append(kind(1))

        threads = [Thread(target=make) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert made == [Fresh(1)] * 4
