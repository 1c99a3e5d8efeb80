"""Settlements become ranges, and a range means what the general encoder writes, at full width."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ambermq.protocol.amqp10.connection.connection import Connection
from ambermq.protocol.amqp10.connection.connection_role import ConnectionRole
from ambermq.protocol.amqp10.limits import ConnectionLimits
from ambermq.protocol.amqp10.link.sender import Sender
from ambermq.protocol.amqp10.performatives.classes import (
    Accepted,
    DeliveryState,
    Disposition,
    Error,
    Modified,
    Rejected,
    Released,
)
from ambermq.protocol.amqp10.serial_number import MASK
from ambermq.protocol.amqp10.session.session import Session
from ambermq.protocol.amqp10.session.unsettled import Run
from ambermq.protocol.amqp10.types.values import Symbol
from tests.protocol.peers import cut, fields_written

CHANNEL = 3
STATES = st.sampled_from(
    (
        None,
        Accepted(),
        Released(),
        Modified(delivery_failed=True, message_annotations={"x": 1}),
        Rejected(error=Error(condition="amqp:not-found", description="x" * 300)),
    )
)
SAID = st.tuples(st.sampled_from((0, 1, 2, 3, MASK)), st.integers(1, 3), STATES, st.booleans(), st.booleans())


def session() -> Session:
    """Of a peer that takes frames of any size."""
    connection = Connection(ConnectionRole.SERVER, ConnectionLimits(), now_ms=0)
    connection.remote_frame_bytes_max = MASK
    return Session(connection, CHANNEL, 0)


def output(session: Session) -> list[bytes]:
    """Return the output of a session's connection, and take it."""
    assert isinstance(session.connection, Connection)
    return list(map(bytes, session.connection.take_output()))


def say(session: Session, first_id: int, count: int, state: DeliveryState | None, settled: bool, role: bool) -> None:
    """Settle a run of any link."""
    run = Run(Sender(session, "link", 0), first_id, count, None, 0, False)
    session.settlements.add(run, state, settled=settled, role=role)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, MASK), st.integers(1, MASK), STATES, st.booleans(), st.booleans())
def test_disposition(first: int, count: int, state: DeliveryState | None, role: bool, settled: bool) -> None:
    """A disposition is written with all its fields, whatever the size of its state."""
    ours = session()
    say(ours, first, count, state, settled, role)
    ours.settlements.flush()
    (frame,) = output(ours)
    last = (first + count - 1) & MASK
    expected = Disposition(role=role, first=first, last=last, settled=settled, state=state)
    assert cut(frame) == [(CHANNEL, expected, b"")]
    assert fields_written(frame) == len(Disposition.FIELDS)


@settings(max_examples=300, deadline=None)
@given(st.lists(SAID, max_size=5), st.integers(0, 5))
def test_only_what_follows_and_is_alike_is_one_range(
    said: list[tuple[int, int, DeliveryState, bool, bool]], at: int
) -> None:
    """In the order in which it was said, however often the output is taken."""
    ours = session()
    expected: list[Disposition] = []
    written = b""
    is_open = False
    for index, (first, count, state, settled, role) in enumerate(said):
        if index == at:
            written += b"".join(output(ours))
            is_open = False
        say(ours, first, count, state, settled, role)
        last = expected[-1] if is_open else None
        alike = last and (last.state, last.settled, last.role) == (state, settled, role)
        if last and last.last is not None and alike and first == (last.last + 1) & MASK:
            last.last = (last.last + count) & MASK
        else:
            end = (first + count - 1) & MASK
            expected.append(Disposition(role=role, first=first, last=end, settled=settled, state=state))
        is_open = True
    written += b"".join(output(ours))
    assert [performative for _, performative, _ in cut(written)] == expected


@pytest.mark.parametrize(("one", "other"), [(True, 1), ("text", Symbol("text")), (0.0, -0.0)])
def test_what_is_equal_but_another_value_is_said_as_it_is(one: object, other: object) -> None:
    """Python calls them equal; a peer that reads them does not."""
    ours = session()
    for first_id, value in enumerate((one, other)):
        say(ours, first_id, 1, Modified(message_annotations={Symbol("x"): value}), True, False)
    frames = cut(b"".join(output(ours)))
    assert [repr(performative.state.message_annotations[Symbol("x")]) for _, performative, _ in frames] == [
        repr(one),
        repr(other),
    ]
