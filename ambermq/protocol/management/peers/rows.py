"""The attributes of connections, sessions and links, and their names: 7, 7.0 and 7.0.2.

A session's name is that of its connection and its channel. A link's name adds its handle.
"""

from collections.abc import Iterator
from typing import Any, Final

from ambermq.engine.model.state import State
from ambermq.protocol.management.peers.ports import PeerPort, SessionPort

__all__ = [
    "CONNECTION_ATTRIBUTES",
    "LINK_ATTRIBUTES",
    "SESSION_ATTRIBUTES",
    "connection_row",
    "link_row",
    "links_of",
    "session_row",
    "sessions_of",
]

CONNECTION_ATTRIBUTES: Final = (
    *("name", "id", "peer", "user", "mechanism", "tls", "container", "product", "vhost", "state", "since_us"),
    *("idle_us", "bytes_in", "bytes_out", "messages_in", "messages_out", "sessions", "links", "unsettled"),
    "memory_bytes",
)
SESSION_ATTRIBUTES: Final = (
    *("name", "connection", "channel", "peer", "user", "container", "vhost", "state", "links", "unsettled"),
    "unsettled_in",
)
LINK_ATTRIBUTES: Final = (
    *("name", "connection", "session", "link", "role", "address", "queue", "peer", "user", "container", "vhost"),
    *("state", "credit", "unsettled", "messages", "bytes", "memory_bytes", "until_us"),
)
_TEXT_MAX: Final = 256


def _cut(value: Any) -> str | None:
    """Return a text of a client, cut; None for another value or no text."""
    return str(value)[:_TEXT_MAX] if isinstance(value, str) and value else None


def sessions_of(peer: PeerPort) -> Iterator[tuple[str, SessionPort]]:
    """Yield the sessions of a connection with their names; not those that the broker has ended."""
    for session in filter(lambda one: one.is_live, peer.connection.sessions()):
        yield f"{_number(peer)}.{session.channel}", session


def links_of(peer: PeerPort) -> Iterator[tuple[str, SessionPort, Any]]:
    """Yield the links of a connection with their names and sessions."""
    for name, session in sessions_of(peer):
        for link in filter(lambda one: one.is_live, session.links()):
            yield f"{name}.{link.handle}", session, link


def connection_row(peer: PeerPort) -> dict[str, Any]:
    """Return the attributes of a connection."""
    connection, transport = peer.connection, peer.transport
    sessions = connection.sessions()
    messages_in, messages_out = peer.traffic_counts
    remote = connection.remote_open
    properties = {} if remote is None else remote.properties or {}
    return {
        "name": str(_number(peer)),
        "id": _number(peer),
        **_owner(peer),
        "mechanism": peer.mechanism or None,
        "tls": None,
        "product": _cut(" ".join(str(properties[key]) for key in ("product", "version") if properties.get(key))),
        "state": "closing" if connection.is_closing else "opening" if remote is None else "open",
        "since_us": None if transport is None else transport.since_us,
        "idle_us": None if transport is None else transport.idle_us,
        "bytes_in": None if transport is None else transport.bytes_in,
        "bytes_out": None if transport is None else transport.bytes_out,
        "messages_in": messages_in,
        "messages_out": messages_out,
        "sessions": len(sessions),
        "links": sum(len(session.links()) for session in sessions),
        "unsettled": sum(sum(session.unsettled_counts) for session in sessions),
        "memory_bytes": connection.memory.held_bytes,
    }


def session_row(peer: PeerPort, name: str, session: SessionPort) -> dict[str, Any]:
    """Return the attributes of a session."""
    received, sent = session.unsettled_counts
    return {
        "name": name,
        "connection": _number(peer),
        "channel": session.channel,
        **_owner(peer),
        "state": "full" if session.is_full else "open",
        "links": len(session.links()),
        "unsettled": sent,
        "unsettled_in": received,
    }


def link_row(peer: PeerPort, name: str, link: Any, state: State) -> dict[str, Any]:
    """Return the attributes of a link; `state` is that of its virtual host."""
    known = peer.link_row(link, state)
    return {
        "name": name,
        "connection": _number(peer),
        "session": name.rpartition(".")[0],
        "link": _cut(link.name),
        "role": known.role,
        "address": _cut(known.address),
        "queue": known.queue,
        **_owner(peer),
        "state": "draining" if link.drain else "starved" if not link.credit else "open",
        "credit": link.credit,
        "unsettled": known.unsettled,
        "messages": known.messages,
        "bytes": known.bytes,
        "memory_bytes": link.memory_bytes,
        "until_us": None,
    }


def _number(peer: PeerPort) -> int:
    return 0 if peer.transport is None else peer.transport.id


def _owner(peer: PeerPort) -> dict[str, Any]:
    return {
        "peer": None if peer.transport is None else peer.transport.peer_name,
        "user": peer.identity.username,
        "container": _cut(peer.container),
        "vhost": peer.vhost,
    }
