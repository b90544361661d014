"""Which calls of a job are its steps."""

from __future__ import annotations

from stepscope.capture.steps import CALL, EXPLICIT, OPTIMIZER, StepFinder


def edges(calls: str, source: int) -> str:
    """The calls (letters) that are edges of steps, others as dots."""
    finder = StepFinder()
    return "".join(each if finder.is_edge(source, each)[0] else "." for each in calls)


def test_one_optimizer_ends_every_step_from_the_first_on() -> None:
    assert edges("AAAAA", OPTIMIZER) == "AAAAA"


def test_several_optimizers_end_one_step_together_with_the_last() -> None:
    assert edges("ABABABABAB", OPTIMIZER)[4:] == "AB.B.B"


def test_the_rare_optimizer_of_adversarial_training_ends_a_step() -> None:
    assert edges("DDDDDG" * 6, OPTIMIZER).endswith(".....G" * 3)


def test_a_rare_call_is_no_step() -> None:
    calls = ("T" * 10 + "V") * 6
    assert edges(calls, CALL)[30:] == calls[30:].replace("V", ".")


def test_the_first_call_of_an_iteration_begins_its_step() -> None:
    assert edges("NTNTNTNTNT", CALL)[4:] == "N.N.N."


def test_a_few_calls_are_no_step_yet() -> None:
    assert edges("AB", CALL) == ".."


def test_a_better_source_takes_over_until_the_window_opens() -> None:
    finder = StepFinder()
    for _ in range(4):
        finder.is_edge(CALL, "model")
    assert finder.is_edge(OPTIMIZER, "sgd") == (True, True)
    assert finder.is_edge(CALL, "model") == (False, False)
    assert finder.is_edge(EXPLICIT, "step") == (True, True)
    finder.freeze()
    assert finder.is_edge(OPTIMIZER, "sgd") == (False, False)


def test_steps_are_numbered_from_0_however_they_are_marked() -> None:
    ending, beginning = StepFinder(), StepFinder()
    for _ in range(5):
        ending.is_edge(OPTIMIZER, "sgd")
        beginning.is_edge(CALL, "train")
    assert (ending.number, beginning.number) == (5, 4)


def test_objects_made_anew_in_every_iteration_do_not_pile_up() -> None:
    finder = StepFinder()
    assert not any(finder.is_edge(CALL, number)[0] for number in range(1_000))
    assert len(finder._counts) < 100
