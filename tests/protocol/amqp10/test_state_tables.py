"""Every state of connection, session and link, with every input: what the table says, or an error of that scope."""

from collections.abc import Callable

import pytest

from ambermq.protocol.amqp10.connection.connection import Connection
from ambermq.protocol.amqp10.connection.connection_role import ConnectionRole
from ambermq.protocol.amqp10.errors import LocalError
from ambermq.protocol.amqp10.events import ConnectionClosed, SessionEnded
from ambermq.protocol.amqp10.framing.frames import AMQP_HEADER
from ambermq.protocol.amqp10.limits import ConnectionLimits
from ambermq.protocol.amqp10.performatives.classes import (
    Attach,
    Begin,
    Close,
    Detach,
    End,
    Flow,
    Open,
    Source,
    Target,
    Transfer,
)
from ambermq.protocol.amqp10.state_tables import (
    CONNECTION_TABLE,
    LINK_TABLE,
    SESSION_TABLE,
    ConnectionInput,
    ConnectionState,
    LinkInput,
    LinkState,
    SessionInput,
    SessionState,
)
from tests.protocol.peers import Wire, cut

FRAMING = "amqp:connection:framing-error"


def connection(role: ConnectionRole, state: ConnectionState) -> Connection:
    """A connection brought to a state by what is legal alone."""
    made = Connection(role, ConnectionLimits(), now_ms=0, container_id="x")
    if role is ConnectionRole.SERVER:
        steps: list[Callable[[], object]] = [
            lambda: made.receive(AMQP_HEADER, 0),
            lambda: made.receive(Wire.frame(Open(container_id="peer")), 0),
            made.accept,
            made.close,
            lambda: made.receive(Wire.frame(Close()), 0),
        ]
    else:
        steps = [
            made.open,
            lambda: made.receive(AMQP_HEADER, 0),
            lambda: made.receive(Wire.frame(Open(container_id="peer")), 0),
            made.close,
            lambda: made.receive(Wire.frame(Close()), 0),
        ]
        if state in (ConnectionState.OPEN_CLOSE_PIPE, ConnectionState.CLOSE_PIPE):
            steps = [made.open, made.close, lambda: made.receive(AMQP_HEADER, 0)]
    for step in steps:
        if made.state is state:
            break
        step()
    assert made.state is state
    made.take_events()
    made.take_output()
    return made


REACHABLE = [
    *((ConnectionRole.SERVER, state) for state in (ConnectionState.START, ConnectionState.HEADER_EXCHANGED)),
    *((ConnectionRole.SERVER, state) for state in (ConnectionState.OPENED, ConnectionState.CLOSE_SENT)),
    *((ConnectionRole.CLIENT, state) for state in (ConnectionState.OPEN_PIPE, ConnectionState.OPEN_CLOSE_PIPE)),
    *((ConnectionRole.CLIENT, state) for state in (ConnectionState.CLOSE_PIPE, ConnectionState.OPEN_SENT)),
    *((ConnectionRole.CLIENT, state) for state in (ConnectionState.OPENED, ConnectionState.CLOSE_SENT)),
]
CONNECTION_BYTES = {
    ConnectionInput.RECEIVE_HEADER: AMQP_HEADER,
    ConnectionInput.RECEIVE_OPEN: Wire.frame(Open(container_id="peer")),
    ConnectionInput.RECEIVE_CLOSE: Wire.frame(Close()),
    ConnectionInput.RECEIVE_FRAME: Wire.frame(Wire.begin()),
}


@pytest.mark.parametrize("given", CONNECTION_BYTES)
@pytest.mark.parametrize(("role", "state"), REACHABLE)
def test_connection(role: ConnectionRole, state: ConnectionState, given: ConnectionInput) -> None:
    """Every state of a connection x every input of the peer."""
    made = connection(role, state)
    made.receive(CONNECTION_BYTES[given], 0)
    expected = CONNECTION_TABLE.get((state, given))
    events = made.take_events()
    if expected is None:
        assert made.state is ConnectionState.END
        (event,) = events
        assert isinstance(event, ConnectionClosed)
        assert event.error is not None
        assert event.error.condition == FRAMING
        return
    # Some states answer at once, and so are passed through.
    answered = {
        ConnectionState.HEADER_RECEIVED: ConnectionState.HEADER_EXCHANGED,
        ConnectionState.CLOSE_RECEIVED: ConnectionState.END,
    }
    assert made.state is answered.get(expected, expected)
    assert [event for event in events if isinstance(event, ConnectionClosed) and event.error] == []


@pytest.mark.parametrize("state", [ConnectionState.OPEN_RECEIVED])
@pytest.mark.parametrize("given", CONNECTION_BYTES)
def test_connection_that_must_be_answered(state: ConnectionState, given: ConnectionInput) -> None:
    """While the open is not answered input waits, and is judged behind the answer."""
    made = connection(ConnectionRole.SERVER, state)
    made.receive(CONNECTION_BYTES[given], 0)
    assert made.state is state
    assert made.take_events() == []
    made.accept()
    expected = CONNECTION_TABLE.get((ConnectionState.OPENED, given))
    assert made.state is (expected if given is ConnectionInput.RECEIVE_FRAME else ConnectionState.END)


def in_session(state: SessionState) -> Wire:
    """A server with a session in a state, begun by the peer but for BEGIN_SENT."""
    wire = Wire(opened=False)
    wire.give(AMQP_HEADER + wire.frame(Open(container_id="wire")))
    if state is SessionState.BEGIN_SENT:
        wire.server.begin()
    elif state is not SessionState.UNMAPPED:
        wire.give(wire.frame(wire.begin()))
        if state is SessionState.END_SENT:
            wire.session().end()
    wire.read()
    wire.events.clear()
    return wire


SESSION_FRAMES = {
    SessionInput.RECEIVE_BEGIN: Begin(next_outgoing_id=0, incoming_window=9, outgoing_window=9),
    SessionInput.RECEIVE_END: End(),
    SessionInput.RECEIVE_FRAME: Attach(name="a", handle=0, role=True, source=Source(), target=Target()),
}


@pytest.mark.parametrize("given", SESSION_FRAMES)
@pytest.mark.parametrize(
    "state", [SessionState.UNMAPPED, SessionState.BEGIN_SENT, SessionState.MAPPED, SessionState.END_SENT]
)
def test_session(state: SessionState, given: SessionInput) -> None:
    """Every state of a session x every input of the peer; a channel without session ends the connection."""
    wire = in_session(state)
    frame = SESSION_FRAMES[given]
    if state is SessionState.BEGIN_SENT and isinstance(frame, Begin):
        frame = Begin(remote_channel=0, next_outgoing_id=0, incoming_window=9, outgoing_window=9)
    sessions = wire.server.sessions()
    said = wire.say(frame)
    expected = SESSION_TABLE.get((state, given))
    in_use = state is SessionState.END_SENT and given is SessionInput.RECEIVE_BEGIN
    if expected is None or in_use:
        assert [getattr(answer, "error", None) and answer.error.condition for answer in said] == [FRAMING]  # type: ignore[union-attr]
        assert wire.server.is_ended
        return
    assert not wire.server.is_ended
    session = (sessions or wire.server.sessions())[0]
    answered = {SessionState.BEGIN_RECEIVED: SessionState.MAPPED, SessionState.END_RECEIVED: SessionState.UNMAPPED}
    assert session.state is answered.get(expected, expected)
    assert len([event for event in wire.events if isinstance(event, SessionEnded)]) == (
        expected is SessionState.END_RECEIVED
    )


LINK_FRAMES = {
    LinkInput.RECEIVE_ATTACH: Attach(
        name="a", handle=0, role=False, source=Source(), target=Target(), initial_delivery_count=0
    ),
    LinkInput.RECEIVE_DETACH: Detach(handle=0, closed=True),
    LinkInput.RECEIVE_FLOW: Flow(
        handle=0, delivery_count=0, link_credit=1, incoming_window=9, next_outgoing_id=0, outgoing_window=9
    ),
    LinkInput.RECEIVE_TRANSFER: Transfer(handle=0, delivery_id=0, delivery_tag=b"x"),
}


@pytest.mark.parametrize("given", LINK_FRAMES)
@pytest.mark.parametrize(
    "state",
    [
        LinkState.DETACHED,
        LinkState.ATTACH_SENT,
        LinkState.ATTACH_RECEIVED,
        LinkState.ATTACHED,
        LinkState.DETACH_SENT,
    ],
)
def test_link(state: LinkState, given: LinkInput) -> None:
    """Every state of a link x every input of the peer: what the table says, or the end of the session, and no more."""
    wire = in_session(SessionState.MAPPED)
    attach = wire.frame(LINK_FRAMES[LinkInput.RECEIVE_ATTACH])
    if state is LinkState.ATTACH_SENT:
        wire.session().attach_receiver("a", Source(), Target()).grant(5)
    elif state is LinkState.ATTACH_RECEIVED:
        wire.server.receive(attach, 0)
    elif state is not LinkState.DETACHED:
        wire.give(attach)
        if state is LinkState.DETACH_SENT:
            wire.session().links()[0].detach()
    session = wire.session()
    links = session.links()
    assert [link.state for link in links] == ([] if state is LinkState.DETACHED else [state])
    wire.server.take_output()
    wire.server.receive(wire.frame(LINK_FRAMES[given]), 0)
    expected = LINK_TABLE.get((state, given))
    conditions = [p.error.condition for _, p, _ in wire.read() if isinstance(p, End | Close) and p.error is not None]
    assert not wire.server.is_ended
    handle_in_use = given is LinkInput.RECEIVE_ATTACH and state in (LinkState.ATTACH_RECEIVED, LinkState.DETACH_SENT)
    if expected is None or handle_in_use:
        assert conditions[0].startswith("amqp:session:")
        assert session.state is SessionState.END_SENT
        return
    assert conditions == []
    answered = {LinkState.DETACH_RECEIVED: LinkState.DETACHED}
    if state is LinkState.ATTACH_RECEIVED and given is LinkInput.RECEIVE_TRANSFER:
        answered[expected] = LinkState.DETACH_SENT  # there is no credit before the answer
    assert (links or session.links())[0].state is answered.get(expected, expected)


def test_tables_are_closed() -> None:
    """From every state that a table leads to, it leads on, or it is an end."""
    for table, ends in (
        (CONNECTION_TABLE, {ConnectionState.END}),
        (SESSION_TABLE, {SessionState.UNMAPPED}),
        (LINK_TABLE, {LinkState.DETACHED}),
    ):
        assert set(table.values()) <= {state for state, _ in table} | ends


def test_a_close_is_the_last_frame() -> None:
    """Behind our close nothing is written."""
    made = connection(ConnectionRole.SERVER, ConnectionState.OPENED)
    made.receive(Wire.frame(Wire.begin()), 0)
    (session,) = made.sessions()
    made.close()
    session.pause()
    with pytest.raises(LocalError):
        session.attach_sender("x", Source(), Target())
    assert isinstance(cut(b"".join(map(bytes, made.take_output())))[-1][1], Close)
