"""The ranges of a peer's dispositions: ids are serial numbers, and a range costs what is held of it."""

import sys
import tracemalloc
from types import FrameType
from typing import Final

import pytest

from ambermq.protocol.amqp10.performatives.classes import Accepted, DeliveryState, Disposition, Modified
from ambermq.protocol.amqp10.types.values import Symbol
from tests.protocol.amqp10.session.test_session import RECEIVER, sent, told
from tests.protocol.peers import FIRST_ID, conditions, disposed

_HALF: Final = {"first": (FIRST_ID - (1 << 30)) & 0xFFFFFFFF, "last": (FIRST_ID + (1 << 30) - 1) & 0xFFFFFFFF}
"""The longest range of ids: half of the circle, around the first delivery."""


def test_a_range_of_half_the_circle_is_one_walk() -> None:
    """A disposition for 2**31 ids, the most that a range has, names what is held and costs no more than that."""
    wire, _ = sent(10)
    frame = wire.frame(Disposition(role=RECEIVER, **_HALF, settled=True, state=Accepted()))
    calls = 0

    def called(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(called)
    wire.give(frame)
    sys.setprofile(None)
    assert calls < 100
    events = told(wire)
    assert sorted(token for _, tokens, _ in events for token in tokens) == list(range(100, 110))
    assert wire.session().sent.count == 0


@pytest.mark.parametrize("state", [Accepted(), Modified(message_annotations={Symbol("x-a"): 1})])
@pytest.mark.parametrize(("first", "last"), [(5, 4), (4, 0), (0, 0x80000000), (0, 0xFFFFFFFF)])
def test_a_range_that_ends_before_it_begins_ends_the_session(first: int, last: int, state: DeliveryState) -> None:
    """As serial numbers (RFC 1982): nothing is settled, where a range around the circle would settle everything."""
    wire, begin = sent(10)
    ids = {"first": (begin + first) & 0xFFFFFFFF, "last": (begin + last) & 0xFFFFFFFF}
    said = wire.say(Disposition(role=RECEIVER, **ids, settled=True, state=state))
    assert conditions(said) == [("end", "amqp:invalid-field")]
    assert told(wire) == []


@pytest.mark.parametrize("last", [2, 5, 6 + 0x80000000])
def test_a_reversed_range_after_others_ends_the_session(last: int) -> None:
    """Frames like the last one are read together; the outcomes before the fault are told, and no others."""
    wire, begin = sent(10)
    ids = [(0, 1), (2, 3), (4, 5), (6, last), (7, 8)]
    frames = [
        Disposition(role=RECEIVER, first=(begin + low) & 0xFFFFFFFF, last=(begin + high) & 0xFFFFFFFF, settled=True)
        for low, high in ids
    ]
    assert conditions(wire.say(*frames)) == [("end", "amqp:invalid-field")]
    assert [token for _, tokens, _ in told(wire) for token in tokens] == list(range(100, 106))


def test_two_ranges_of_half_the_circle_are_two_ranges() -> None:
    """Joined they would seem to end before they begin."""
    wire, begin = sent(10)
    wire.say(Disposition(role=RECEIVER, first=begin, last=(begin + 1) & 0xFFFFFFFF, settled=True))
    ranges = [(begin + 2, begin + 2 + 0x7FFFFFFF), (begin + 2 + 0x80000000, begin - 1)]
    frames = [
        Disposition(role=RECEIVER, first=first & 0xFFFFFFFF, last=last & 0xFFFFFFFF, settled=True)
        for first, last in ranges
    ]
    assert conditions(wire.say(*frames)) == []
    assert wire.session().sent.count == 0


def test_repeated_outcomes_are_told_once() -> None:
    """However often a peer repeats an outcome without settling, each delivery is told once, and then its end."""
    wire, _ = sent(100)
    everything = wire.frame(Disposition(role=RECEIVER, **_HALF, state=Accepted()))
    tracemalloc.start()
    try:
        wire.give(everything * 1000)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 128 * 1024
    events = told(wire)
    assert sorted(token for _, tokens, _ in events for token in tokens) == list(range(100, 200))
    assert not any(settled for _, _, settled in events)
    session = wire.session()
    assert session.sent.count == 100
    session.settle_sent(FIRST_ID, 10, Accepted())
    assert [(d.first, d.last, d.settled) for d in disposed([p for _, p, _ in wire.read()])] == [(FIRST_ID, 6, True)]
    wire.say(Disposition(role=RECEIVER, **_HALF, settled=True, state=Accepted()))
    assert sorted(token for _, tokens, _ in told(wire) for token in tokens) == list(range(110, 200))
    assert session.sent.count == 0
