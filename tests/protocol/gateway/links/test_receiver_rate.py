"""The attach property that limits the messages a second of a receiver."""

from typing import Any

import pytest

from ambermq.protocol.amqp10.types.values import Int, Map, Symbol
from ambermq.protocol.gateway.links.attach_terms import Refusal, consuming_terms
from tests.protocol.gateway.links.test_receiver_priority import attach

RATE = Symbol("ambermq:rate")


@pytest.mark.parametrize(
    ("properties", "rate"),
    [
        (None, 0),
        ({RATE: Int(7)}, 7),
        ({RATE: 0.5}, 0.5),
        ({RATE: 1_000_000}, 1_000_000),
        (Map(((["list"], 1),)), 0),
    ],
)
def test_it_is_a_number(properties: Any, rate: float) -> None:
    """0, no limit, without it."""
    assert consuming_terms(attach(properties)).rate == rate


@pytest.mark.parametrize("value", ["7", True, 0, 0.0001, -1, 1_000_001, float("nan"), float("inf"), [1]])
def test_another_value_refuses_the_attach(value: Any) -> None:
    """In one sentence, with what was expected and found."""
    with pytest.raises(Refusal, match=r"a number of messages a second from 0.001 to 1000000, found"):
        consuming_terms(attach({RATE: value}))
