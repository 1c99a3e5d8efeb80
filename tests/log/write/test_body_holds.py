"""A compaction waits for the holds on the bodies that it removes."""

from collections.abc import Callable
from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st

from ambermq.log.compaction.adoption import Adoption
from ambermq.log.write.body_holds import BodyHold, BodyHolds


def holding() -> tuple[BodyHolds, list[str], Callable[[str], None]]:
    """Holds, what was taken over, and how a compaction comes."""
    taken: list[str] = []
    holds = BodyHolds(cast(Any, taken.append))
    return holds, taken, lambda name: holds.add(cast(Adoption, name))


def test_without_holds_nothing_waits() -> None:
    """A compaction is taken over at once."""
    _, taken, add = holding()
    add("one")
    assert taken == ["one"]


def test_it_waits_for_the_holds_before_it_and_for_no_later_one() -> None:
    """A compaction does not wait for a later hold."""
    holds, taken, add = holding()
    early = holds.take()
    add("one")
    holds.take()
    assert taken == []
    early.release()
    assert taken == ["one"]


def test_a_release_twice_is_one() -> None:
    """Nothing else is let go of by it."""
    holds, taken, add = holding()
    first, _second = holds.take(), holds.take()
    add("one")
    first.release()
    first.release()
    assert taken == []


@given(st.lists(st.one_of(st.just("take"), st.just("add"), st.integers(0, 5)), max_size=30))
def test_each_is_taken_over_once_in_order_and_when_its_time_has_come(steps: list[str | int]) -> None:
    """Whatever comes and goes: a compaction is read from when the last hold before it ends."""
    holds, taken, add = holding()
    clock: list[BodyHold | str] = []
    held: list[BodyHold] = []
    for step in steps:
        if step == "take":
            held.append(holds.take())
            clock.append(held[-1])
        elif step == "add":
            clock.append(f"{len(clock)}")
            add(str(clock[-1]))
        elif held:
            held.pop(int(step) % len(held)).release()
        expected = []
        for entry in clock:
            if isinstance(entry, BodyHold) and entry in held:
                break
            if isinstance(entry, str):
                expected.append(entry)
        assert taken == expected
