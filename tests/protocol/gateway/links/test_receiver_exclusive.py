"""The attach property by which a receiver wants to be the only consumer of its queue."""

from typing import Any

import pytest

from ambermq.protocol.amqp10.types.values import Map, Symbol
from ambermq.protocol.gateway.links.attach_terms import Refusal, consuming_terms
from tests.protocol.gateway.links.test_receiver_priority import attach

EXCLUSIVE = Symbol("ambermq:exclusive")


@pytest.mark.parametrize(
    ("properties", "is_exclusive"),
    [(None, False), ({EXCLUSIVE: True}, True), ({EXCLUSIVE: False}, False), (Map(((["list"], True),)), False)],
)
def test_it_is_a_boolean(properties: Any, is_exclusive: bool) -> None:
    """False without it."""
    assert consuming_terms(attach(properties)).is_exclusive is is_exclusive


@pytest.mark.parametrize("value", ["true", 1, []])
def test_another_value_refuses_the_attach(value: Any) -> None:
    """In one sentence, with what was found."""
    with pytest.raises(Refusal, match=r"ambermq:exclusive of a receiver is true or false, found"):
        consuming_terms(attach({EXCLUSIVE: value}))
