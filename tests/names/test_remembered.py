"""What names mean is worked out once per name."""

from __future__ import annotations

from stepscope.names.remembered import remembered


def test_names_that_are_asked_for_table_by_table_are_read_once() -> None:
    read: list[str] = []

    @remembered
    def length(name: str) -> int:
        read.append(name)
        return len(name)

    names = [f"op_{number}" for number in range(20_000)]  # Of a large TensorFlow job, in each of its tables.
    for _ in range(3):
        assert [length(name) for name in names] == list(map(len, names))
    assert read == names
