from stepscope.trace.shared import shared


class _Thing:
    pass


def test_what_is_shared_is_worked_out_once_for_each_that_it_is_asked_with():
    asked = []

    @shared
    def found(of: _Thing, *others: object) -> int:
        asked.append((of, others))
        return len(asked)

    one, two, other = _Thing(), _Thing(), [1]
    assert [found(one), found(one), found(two)] == [1, 1, 2]
    assert [found(one, other), found(one, other), found(one, [1])] == [3, 3, 4]
    assert [found(one, other, two), found(one), found(one, other)] == [5, 1, 3]


def test_an_answer_holds_what_it_was_asked_with():
    """Else another thing could be made where it was, and be taken for it."""

    @shared
    def found(of: _Thing, other: _Thing) -> object:
        return object()

    one = _Thing()
    answers = [found(one, _Thing()) for _ in range(100)]
    assert len({id(answer) for answer in answers}) == 100
