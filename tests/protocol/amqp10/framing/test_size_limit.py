"""What is no transfer fits into the peer's frames too: said in fewer words, or refused."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ambermq.protocol.amqp10.connection.connection import Connection
from ambermq.protocol.amqp10.connection.connection_role import ConnectionRole
from ambermq.protocol.amqp10.events import LinkAttached, LinkDetached, Opened
from ambermq.protocol.amqp10.framing.frames import AMQP_HEADER, decode_frame_body, encode_frame
from ambermq.protocol.amqp10.framing.size_limit import fitted
from ambermq.protocol.amqp10.limits import ConnectionLimits
from ambermq.protocol.amqp10.link.sender import Sender
from ambermq.protocol.amqp10.performatives.base import Composite
from ambermq.protocol.amqp10.performatives.classes import (
    Attach,
    Begin,
    Close,
    Detach,
    Disposition,
    End,
    Error,
    Open,
    Rejected,
    Source,
    Target,
)
from ambermq.protocol.amqp10.session.session import Session
from ambermq.protocol.amqp10.session.unsettled import Run
from ambermq.protocol.amqp10.spec import MIN_MAX_FRAME_SIZE
from ambermq.protocol.amqp10.types.values import Symbol

ERRORS = st.builds(
    Error,
    condition=st.sampled_from([Symbol("amqp:not-found"), Symbol("amqp:invalid-field")]),
    description=st.none() | st.text(max_size=900),
    info=st.none() | st.dictionaries(st.sampled_from([Symbol("a"), Symbol("b")]), st.text(max_size=400)),
)


def said(frame: bytes) -> Composite:
    """The performative of a frame."""
    return decode_frame_body(frame, 8, len(frame))[0]


@given(ERRORS, st.sampled_from([Close, Detach, End, Disposition]))
def test_errors_are_said_in_fewer_words(error: Error, kind: type) -> None:
    """Always in 512 bytes: the condition whole, the description whole or its beginning; unchanged where it fits."""
    fields: dict[str, Any] = {"error": error}
    if kind is Detach:
        fields |= {"handle": 7, "closed": True}
    if kind is Disposition:
        fields = {"role": True, "first": 1, "last": 9, "settled": True, "state": Rejected(error=error)}
    whole = encode_frame(3, kind(**fields))
    frame = fitted(3, kind(**fields), MIN_MAX_FRAME_SIZE)
    assert frame is not None
    assert len(frame) <= MIN_MAX_FRAME_SIZE
    assert (frame == whole) == (len(whole) <= MIN_MAX_FRAME_SIZE)
    told: Any = said(frame)
    cut = told.state.error if kind is Disposition else told.error
    assert cut.condition == error.condition
    assert (error.description or "").startswith(cut.description or "")


def test_what_has_nothing_to_spare_does_not_fit() -> None:
    """An attach is not cut."""
    assert fitted(0, Attach(name="x" * 600, handle=0, role=True), MIN_MAX_FRAME_SIZE) is None


def test_a_settlement_is_cut_too() -> None:
    """Where a peer takes so little; else it is whole."""
    state = Rejected(error=Error(condition=Symbol("amqp:not-found"), description="x" * 1000))
    for frame_bytes_max in (MIN_MAX_FRAME_SIZE, 2000):
        connection = Connection(ConnectionRole.SERVER, ConnectionLimits(), now_ms=0)
        connection.remote_frame_bytes_max = frame_bytes_max
        session = Session(connection, 0, 0)
        session.settlements.add(Run(Sender(session, "link", 0), 1, 2, None, 0, False), state, settled=True, role=True)
        (frame,) = connection.take_output()
        assert (len(frame) == MIN_MAX_FRAME_SIZE) == (frame_bytes_max == MIN_MAX_FRAME_SIZE)
        assert MIN_MAX_FRAME_SIZE <= len(frame) <= frame_bytes_max


def served(name: str) -> Connection:
    """A server whose peer takes 512 bytes, and has attached a link."""
    server = Connection(ConnectionRole.SERVER, ConnectionLimits(), now_ms=0, container_id="broker", allow_bare=True)
    begin = Begin(next_outgoing_id=0, incoming_window=10, outgoing_window=10)
    attach = Attach(name=name, handle=0, role=True, source=Source(address="q"), target=Target(address="t"))
    opened = Open(container_id="me", max_frame_size=MIN_MAX_FRAME_SIZE)
    server.receive(AMQP_HEADER + b"".join(encode_frame(0, each) for each in (opened, begin, attach)), 0)
    assert type(server.take_events()[0]) is Opened
    server.accept()
    return server


def frames_of(server: Connection) -> list[Composite]:
    """What a server writes, none of it longer than 512 bytes."""
    data, position, found = b"".join(map(bytes, server.take_output())), 8, []
    while position < len(data):
        size = int.from_bytes(data[position : position + 4], "big")
        assert size <= MIN_MAX_FRAME_SIZE
        found.append(said(data[position : position + size]))
        position += size
    return found


def attached(server: Connection) -> Any:
    """The link that was attached."""
    (link,) = [event.link for event in server.take_events() if isinstance(event, LinkAttached)]
    return link


def test_a_link_whose_attach_does_not_fit_is_refused() -> None:
    """With amqp:frame-size-too-small; it is told as detached, and the connection goes on."""
    server = served("l")
    link = attached(server)
    link.accept(Source(address="q" * 600), link.remote.target)
    *_, attach, detach = frames_of(server)
    assert isinstance(attach, Attach)
    assert (attach.source, attach.target) == (None, None)
    assert isinstance(detach, Detach)
    assert detach.error is not None
    assert str(detach.error.condition) == "amqp:frame-size-too-small"
    assert [type(event) for event in server.take_events()] == [LinkDetached]
    assert not server.is_ended


def test_a_refusal_keeps_its_condition() -> None:
    """Though the description is cut."""
    server = served("l")
    attached(server).refuse(Error(condition=Symbol("amqp:not-found"), description="no queue " + "q" * 900))
    *_, attach, detach = frames_of(server)
    assert isinstance(attach, Attach)
    assert isinstance(detach, Detach)
    assert detach.error is not None
    assert str(detach.error.condition) == "amqp:not-found"
    assert str(detach.error.description).startswith("no queue qqq")


@pytest.mark.parametrize("refuses", [True, False])
def test_a_name_that_cannot_be_said_ends_the_connection(*, refuses: bool) -> None:
    """A link is answered by its name, and the peer takes no frame that has it."""
    server = served("l" * 600)
    link = attached(server)
    if refuses:
        link.refuse(Error(condition=Symbol("amqp:not-found")))
    else:
        link.accept(link.remote.source, link.remote.target)
    close = frames_of(server)[-1]
    assert isinstance(close, Close)
    assert close.error is not None
    assert str(close.error.condition) == "amqp:frame-size-too-small"
    assert server.is_ended
