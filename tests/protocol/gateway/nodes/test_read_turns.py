"""The turns of requests for whole messages."""

from types import SimpleNamespace

import pytest

from ambermq.engine.errors import Refused
from ambermq.protocol.gateway.nodes.read_turns import ReadTurns


def test_one_has_the_turn_and_the_next_one_follows() -> None:
    """In order; leaving without the turn changes nothing."""
    turns, began = ReadTurns(), list[int]()
    requests = [SimpleNamespace(size=number) for number in range(3)]
    for request in requests:
        turns.enter(request, lambda number=request.size: began.append(number))
    assert (began, turns.size) == ([0], 0)
    turns.leave(requests[2])
    assert began == [0]
    turns.leave(requests[0])
    assert (began, turns.size) == ([0, 1], 1)
    turns.forget()
    turns.leave(requests[1])
    assert (began, turns.size) == ([0, 1], 0)


def test_the_line_is_bounded() -> None:
    """A further request is refused; those in the line keep their place."""
    turns = ReadTurns()
    for _ in range(101):
        turns.enter(SimpleNamespace(size=1), lambda: None)
    with pytest.raises(Refused, match="amqp:resource-limit-exceeded"):
        turns.enter(SimpleNamespace(size=1), lambda: None)
