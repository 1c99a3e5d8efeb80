"""The state machines of connection, session and link as tables: (state, input) -> state.

Rule 1. A pair that is not in the table is an error: of the peer for a RECEIVE input, of this program for a SEND input.
Rule 2. A state that accepts and ignores an input has an entry that leads back to it, as after this end's close frame.
Rule 3. FRAME stands for all other frames of the scope, such as begin for a connection and attach for a session.

The names are those of the figures in transport, 2.4.6, 2.5.5 and 2.6.3.
"""

from collections.abc import Mapping
from enum import IntEnum
from typing import Final

__all__ = [
    "CLOSING_STATES",
    "CONNECTION_TABLE",
    "LINK_TABLE",
    "OPEN_SENT_STATES",
    "OPEN_UNSENT_STATES",
    "SESSION_TABLE",
    "ConnectionInput",
    "ConnectionState",
    "LinkInput",
    "LinkState",
    "SessionInput",
    "SessionState",
]


class ConnectionState(IntEnum):
    """The state of a connection (transport, 2.4.6)."""

    START = 0
    HEADER_RECEIVED = 1
    HEADER_SENT = 2
    HEADER_EXCHANGED = 3
    OPEN_PIPE = 4
    OPEN_CLOSE_PIPE = 5
    OPEN_RECEIVED = 6
    OPEN_SENT = 7
    CLOSE_PIPE = 8
    OPENED = 9
    CLOSE_RECEIVED = 10
    CLOSE_SENT = 11
    END = 12


class ConnectionInput(IntEnum):
    """An input of the state machine of a connection."""

    RECEIVE_HEADER = 0
    SEND_HEADER = 1
    RECEIVE_OPEN = 2
    SEND_OPEN = 3
    RECEIVE_CLOSE = 4
    SEND_CLOSE = 5
    RECEIVE_FRAME = 6
    SEND_FRAME = 7


class SessionState(IntEnum):
    """The state of a session (transport, 2.5.5). END_SENT covers DISCARDING, which differs only in the cause."""

    UNMAPPED = 0
    BEGIN_SENT = 1
    BEGIN_RECEIVED = 2
    MAPPED = 3
    END_SENT = 4
    END_RECEIVED = 5


class SessionInput(IntEnum):
    """An input of the state machine of a session."""

    RECEIVE_BEGIN = 0
    SEND_BEGIN = 1
    RECEIVE_END = 2
    SEND_END = 3
    RECEIVE_FRAME = 4
    SEND_FRAME = 5


class LinkState(IntEnum):
    """The state of a link (transport, 2.6.3)."""

    DETACHED = 0
    ATTACH_SENT = 1
    ATTACH_RECEIVED = 2
    ATTACHED = 3
    DETACH_SENT = 4
    DETACH_RECEIVED = 5


class LinkInput(IntEnum):
    """An input of the state machine of a link."""

    RECEIVE_ATTACH = 0
    SEND_ATTACH = 1
    RECEIVE_DETACH = 2
    SEND_DETACH = 3
    RECEIVE_FLOW = 4
    RECEIVE_TRANSFER = 5
    SEND_FRAME = 6


def _connection_table() -> dict[tuple[ConnectionState, ConnectionInput], ConnectionState]:
    state, given = ConnectionState, ConnectionInput
    return {
        (state.START, given.RECEIVE_HEADER): state.HEADER_RECEIVED,
        (state.START, given.SEND_HEADER): state.HEADER_SENT,
        (state.HEADER_RECEIVED, given.SEND_HEADER): state.HEADER_EXCHANGED,
        (state.HEADER_SENT, given.RECEIVE_HEADER): state.HEADER_EXCHANGED,
        (state.HEADER_SENT, given.SEND_OPEN): state.OPEN_PIPE,
        (state.HEADER_EXCHANGED, given.RECEIVE_OPEN): state.OPEN_RECEIVED,
        (state.HEADER_EXCHANGED, given.SEND_OPEN): state.OPEN_SENT,
        (state.OPEN_PIPE, given.RECEIVE_HEADER): state.OPEN_SENT,
        (state.OPEN_PIPE, given.SEND_FRAME): state.OPEN_PIPE,
        (state.OPEN_PIPE, given.SEND_CLOSE): state.OPEN_CLOSE_PIPE,
        (state.OPEN_CLOSE_PIPE, given.RECEIVE_HEADER): state.CLOSE_PIPE,
        (state.OPEN_RECEIVED, given.SEND_OPEN): state.OPENED,
        (state.OPEN_SENT, given.RECEIVE_OPEN): state.OPENED,
        (state.OPEN_SENT, given.SEND_FRAME): state.OPEN_SENT,
        (state.OPEN_SENT, given.SEND_CLOSE): state.CLOSE_PIPE,
        (state.CLOSE_PIPE, given.RECEIVE_OPEN): state.CLOSE_SENT,
        (state.OPENED, given.RECEIVE_FRAME): state.OPENED,
        (state.OPENED, given.SEND_FRAME): state.OPENED,
        (state.OPENED, given.RECEIVE_CLOSE): state.CLOSE_RECEIVED,
        (state.OPENED, given.SEND_CLOSE): state.CLOSE_SENT,
        (state.CLOSE_RECEIVED, given.SEND_CLOSE): state.END,
        (state.CLOSE_SENT, given.RECEIVE_FRAME): state.CLOSE_SENT,
        (state.CLOSE_SENT, given.RECEIVE_CLOSE): state.END,
    }


def _session_table() -> dict[tuple[SessionState, SessionInput], SessionState]:
    state, given = SessionState, SessionInput
    return {
        (state.UNMAPPED, given.RECEIVE_BEGIN): state.BEGIN_RECEIVED,
        (state.UNMAPPED, given.SEND_BEGIN): state.BEGIN_SENT,
        (state.BEGIN_SENT, given.RECEIVE_BEGIN): state.MAPPED,
        (state.BEGIN_SENT, given.SEND_FRAME): state.BEGIN_SENT,
        (state.BEGIN_SENT, given.SEND_END): state.END_SENT,
        (state.BEGIN_RECEIVED, given.SEND_BEGIN): state.MAPPED,
        (state.MAPPED, given.RECEIVE_FRAME): state.MAPPED,
        (state.MAPPED, given.SEND_FRAME): state.MAPPED,
        (state.MAPPED, given.RECEIVE_END): state.END_RECEIVED,
        (state.MAPPED, given.SEND_END): state.END_SENT,
        (state.END_RECEIVED, given.SEND_END): state.UNMAPPED,
        (state.END_SENT, given.RECEIVE_BEGIN): state.END_SENT,
        (state.END_SENT, given.RECEIVE_FRAME): state.END_SENT,
        (state.END_SENT, given.RECEIVE_END): state.UNMAPPED,
    }


def _link_table() -> dict[tuple[LinkState, LinkInput], LinkState]:
    state, given = LinkState, LinkInput
    return {
        (state.DETACHED, given.RECEIVE_ATTACH): state.ATTACH_RECEIVED,
        (state.DETACHED, given.SEND_ATTACH): state.ATTACH_SENT,
        (state.ATTACH_SENT, given.RECEIVE_ATTACH): state.ATTACHED,
        (state.ATTACH_SENT, given.SEND_FRAME): state.ATTACH_SENT,
        (state.ATTACH_SENT, given.SEND_DETACH): state.DETACH_SENT,
        (state.ATTACH_RECEIVED, given.RECEIVE_FLOW): state.ATTACH_RECEIVED,
        (state.ATTACH_RECEIVED, given.RECEIVE_TRANSFER): state.ATTACH_RECEIVED,
        (state.ATTACH_RECEIVED, given.RECEIVE_DETACH): state.DETACH_RECEIVED,
        (state.ATTACH_RECEIVED, given.SEND_ATTACH): state.ATTACHED,
        (state.ATTACHED, given.RECEIVE_FLOW): state.ATTACHED,
        (state.ATTACHED, given.RECEIVE_TRANSFER): state.ATTACHED,
        (state.ATTACHED, given.SEND_FRAME): state.ATTACHED,
        (state.ATTACHED, given.RECEIVE_DETACH): state.DETACH_RECEIVED,
        (state.ATTACHED, given.SEND_DETACH): state.DETACH_SENT,
        (state.DETACH_RECEIVED, given.SEND_DETACH): state.DETACHED,
        (state.DETACH_SENT, given.RECEIVE_ATTACH): state.DETACH_SENT,
        (state.DETACH_SENT, given.RECEIVE_FLOW): state.DETACH_SENT,
        (state.DETACH_SENT, given.RECEIVE_TRANSFER): state.DETACH_SENT,
        (state.DETACH_SENT, given.RECEIVE_DETACH): state.DETACHED,
    }


CONNECTION_TABLE: Final[Mapping[tuple[ConnectionState, ConnectionInput], ConnectionState]] = _connection_table()
SESSION_TABLE: Final[Mapping[tuple[SessionState, SessionInput], SessionState]] = _session_table()
LINK_TABLE: Final[Mapping[tuple[LinkState, LinkInput], LinkState]] = _link_table()

OPEN_UNSENT_STATES: Final = frozenset({ConnectionState.HEADER_EXCHANGED, ConnectionState.OPEN_RECEIVED})
"""The headers are exchanged, and our open is not sent: a peer accepts frames."""
OPEN_SENT_STATES: Final = frozenset(
    {
        ConnectionState.OPEN_PIPE,
        ConnectionState.OPEN_SENT,
        ConnectionState.OPENED,
    }
)
"""Our open is sent, and our close is not."""
CLOSING_STATES: Final = frozenset(
    {
        ConnectionState.OPEN_CLOSE_PIPE,
        ConnectionState.CLOSE_PIPE,
        ConnectionState.CLOSE_SENT,
    }
)
"""Our close is sent, and the peer's has not come."""
