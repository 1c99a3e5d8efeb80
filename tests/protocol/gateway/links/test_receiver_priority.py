"""The priority of a receiver, from the properties of its attach."""

from typing import Any

import pytest

from ambermq.protocol.amqp10.performatives.classes import Attach, Source
from ambermq.protocol.amqp10.types.values import Int, Map, Symbol
from ambermq.protocol.gateway.links.attach_terms import PRIORITY_MAX, Refusal, consuming_terms


def attach(properties: Any) -> Attach:
    """Return the attach of a receiver with properties."""
    return Attach(name="l", handle=0, role=True, source=Source(address="q"), properties=properties)


@pytest.mark.parametrize(
    ("properties", "priority"),
    [
        (None, 0),
        ({}, 0),
        ({Symbol("ambermq:priority"): Int(7)}, 7),
        ({Symbol("priority"): -3}, -3),
        ({Symbol("rabbitmq:priority"): PRIORITY_MAX}, PRIORITY_MAX),
        ({Symbol("ambermq:priority"): 1, Symbol("priority"): 2}, 1),
        ({Symbol("other"): "x"}, 0),
        (Map(((["list"], 1),)), 0),
    ],
)
def test_it_is_the_first_property_that_there_is(properties: Any, priority: int) -> None:
    """Under one of three names; 0 without any."""
    assert consuming_terms(attach(properties)).priority == priority


@pytest.mark.parametrize("value", ["7", True, 1.5, PRIORITY_MAX + 1, -PRIORITY_MAX - 1, [1]])
def test_another_value_refuses_the_attach(value: Any) -> None:
    """In one sentence, with what was expected and found."""
    with pytest.raises(Refusal, match=r"the priority of a receiver is a whole number from -1000000 to 1000000, found"):
        consuming_terms(attach({Symbol("priority"): value}))
