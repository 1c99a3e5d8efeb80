"""The operations on connections, sessions and links: QUERY, READ and DELETE.

Rule: a QUERY with the application property `connection` lists the sessions or links of that connection alone.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Final, NamedTuple

from ambermq.engine.commands import Command, Inspect
from ambermq.engine.errors import Refused
from ambermq.engine.model.state import State
from ambermq.protocol.management.paging import Window, page_of, query_window
from ambermq.protocol.management.peers.ports import CloseEndpoint, PeerPort
from ambermq.protocol.management.peers.rows import (
    CONNECTION_ATTRIBUTES,
    LINK_ATTRIBUTES,
    SESSION_ATTRIBUTES,
    connection_row,
    link_row,
    links_of,
    session_row,
    sessions_of,
)
from ambermq.protocol.management.request_fields import name_property

__all__ = [
    "CONNECTION_OPERATIONS",
    "CONNECTION_TYPE",
    "LINK_OPERATIONS",
    "LINK_TYPE",
    "SESSION_OPERATIONS",
    "SESSION_TYPE",
]

CONNECTION_TYPE: Final = "org.ambermq.connection"
SESSION_TYPE: Final = "org.ambermq.session"
LINK_TYPE: Final = "org.ambermq.link"

Operation = Callable[[Any, Mapping[str, Any], Mapping[str, Any], int], Command | CloseEndpoint]
Row = Callable[[], dict[str, Any]]
"""A function that makes a row: rows before the page are counted, and not made."""


class _Noun(NamedTuple):
    """One of the three types."""

    noun: str
    attributes: tuple[str, ...]
    rows: Callable[[PeerPort, State], Iterable[tuple[str, Row]]]
    """The names and rows of the objects of one connection."""


def _connection_rows(peer: PeerPort, _state: State) -> Iterable[tuple[str, Row]]:
    yield str(0 if peer.transport is None else peer.transport.id), lambda: connection_row(peer)


def _session_rows(peer: PeerPort, _state: State) -> Iterable[tuple[str, Row]]:
    for name, session in sessions_of(peer):
        yield name, lambda name=name, session=session: session_row(peer, name, session)  # type: ignore[misc]


def _link_rows(peer: PeerPort, state: State) -> Iterable[tuple[str, Row]]:
    for name, _, link in links_of(peer):
        yield name, lambda name=name, link=link: link_row(peer, name, link, state)  # type: ignore[misc]


_CONNECTION: Final = _Noun("connection", CONNECTION_ATTRIBUTES, _connection_rows)
_SESSION: Final = _Noun("session", SESSION_ATTRIBUTES, _session_rows)
_LINK: Final = _Noun("link", LINK_ATTRIBUTES, _link_rows)


def _peers(request: Any) -> Collection[PeerPort]:
    peers: Collection[PeerPort] = request.peer.gateway.all_peers()
    return peers


def _all_rows(noun: _Noun, peers: Iterable[PeerPort], request: Any) -> Iterator[tuple[str, Row]]:
    gateway = request.peer.gateway
    for peer in peers:
        yield from noun.rows(peer, gateway.state_of(peer))


def _query(noun: _Noun) -> Operation:
    def query(request: Any, properties: Mapping[str, Any], body: Mapping[str, Any], results_max: int) -> Command:
        window = query_window(properties, body, noun.noun, results_max)
        only = properties.get("connection")
        if only is not None and not isinstance(only, str | int):
            raise Refused("amqp:invalid-field", "`connection` must be the number of a connection")
        return Inspect(request, lambda _state: _page(noun, request, window, None if only is None else str(only)))

    return query


def _page(noun: _Noun, request: Any, window: Window, only: str | None) -> dict[str, Any]:
    offset, count, names = window
    peers = [peer for peer in _peers(request) if only is None or _is_of(peer, only)]
    if noun is _CONNECTION:
        total, peers = len(peers), peers[offset : offset + count]
        rows = list(_all_rows(noun, peers, request))
    else:
        found = list(_all_rows(noun, peers, request))
        total, rows = len(found), found[offset : offset + count]
    return page_of((row() for _, row in islice(rows, count)), total, names, noun.attributes)


def _is_of(peer: PeerPort, connection: str) -> bool:
    return str(0 if peer.transport is None else peer.transport.id) == connection


def _read(noun: _Noun) -> Operation:
    def read(request: Any, properties: Mapping[str, Any], _body: Mapping[str, Any], _max: int) -> Command:
        name = name_property(properties, noun.noun)

        def row(_state: State) -> dict[str, Any] | None:
            peers = [peer for peer in _peers(request) if _is_of(peer, name.partition(".")[0])]
            return next((make() for found, make in _all_rows(noun, peers, request) if found == name), None)

        return Inspect(request, row)

    return read


def _delete(noun: _Noun) -> Operation:
    def delete(request: Any, properties: Mapping[str, Any], _body: Mapping[str, Any], _max: int) -> CloseEndpoint:
        request.status = 204
        return CloseEndpoint(request, noun.noun, name_property(properties, noun.noun))

    return delete


def _operations(noun: _Noun) -> dict[str, Operation]:
    return {"QUERY": _query(noun), "READ": _read(noun), "DELETE": _delete(noun)}


CONNECTION_OPERATIONS: Final = _operations(_CONNECTION)
SESSION_OPERATIONS: Final = _operations(_SESSION)
LINK_OPERATIONS: Final = _operations(_LINK)
"""Operation to the function that makes its command of request, application properties, body, and page rows."""
