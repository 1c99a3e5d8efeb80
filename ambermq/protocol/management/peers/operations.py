"""The operations on connections, sessions and links: QUERY, READ and DELETE.

Rule 1. A QUERY with the application property `connection` lists the sessions or links of that connection alone.
Rule 2. Suspended links are links of no connection. They come last.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple, final

from ambermq.engine.commands import Command, Inspect
from ambermq.engine.errors import Refused
from ambermq.engine.model.state import State
from ambermq.protocol.management.paging import Window, page_of, query_window, rows_max
from ambermq.protocol.management.peers.listing import Listing, Row
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
from ambermq.protocol.management.peers.suspended_rows import suspended_name, suspended_rows
from ambermq.protocol.management.request_fields import name_property, user_of

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


def _suspended(noun: _Noun, request: Any) -> Iterable[tuple[str, Row]]:
    return suspended_rows(request.peer.gateway.states()) if noun is _LINK else ()


def _query(noun: _Noun) -> Operation:
    def query(request: Any, properties: Mapping[str, Any], body: Mapping[str, Any], results_max: int) -> Command:
        window = query_window(properties, body, noun.noun, results_max)
        only = properties.get("connection")
        if only is not None and not isinstance(only, str | int):
            raise Refused("amqp:invalid-field", "`connection` must be the number of a connection")
        return Inspect(request, _Page(noun, request, window, None if only is None else str(only)))

    return query


@final
class _Page:
    """The page of one QUERY; a call whose time is over is repeated in the next tick, and goes on there."""

    __slots__ = ("_listing", "_noun", "_only", "_request", "_window")

    def __init__(self, noun: _Noun, request: Any, window: Window, only: str | None) -> None:
        self._noun = noun
        self._request = request
        self._window = window
        self._only = only
        self._listing: Listing | None = None

    def __call__(self, _state: State) -> dict[str, Any]:
        """Return the page. Raises MatchUnfinished if the time is over."""
        offset, count, names = self._window
        attributes = self._noun.attributes
        if self._listing is None:
            window = offset, min(count, rows_max(names, attributes))
            self._listing = Listing(self._rows(), window, self._request.peer.gateway.engine.matching)
        self._listing.go_on()
        return page_of(self._listing.rows, self._listing.total, names, attributes)

    def _rows(self) -> Iterator[Row]:
        only = self._only
        peers = (peer for peer in _peers(self._request) if only is None or _is_of(peer, only))
        yield from (row for _, row in _all_rows(self._noun, peers, self._request))
        if only is None:
            yield from (row for _, row in _suspended(self._noun, self._request))


def _is_of(peer: PeerPort, connection: str) -> bool:
    return str(0 if peer.transport is None else peer.transport.id) == connection


def _read(noun: _Noun) -> Operation:
    def read(request: Any, properties: Mapping[str, Any], _body: Mapping[str, Any], _max: int) -> Command:
        name = name_property(properties, noun.noun)

        def row(_state: State) -> dict[str, Any] | None:
            peers = [peer for peer in _peers(request) if _is_of(peer, name.partition(".")[0])]
            rows = _suspended(noun, request) if suspended_name(name) else _all_rows(noun, peers, request)
            return next((make() for found, make in rows if found == name), None)

        return Inspect(request, row)

    return read


def _delete(noun: _Noun) -> Operation:
    def delete(request: Any, properties: Mapping[str, Any], _body: Mapping[str, Any], _max: int) -> CloseEndpoint:
        request.status = 204
        return CloseEndpoint(request, noun.noun, name_property(properties, noun.noun), user_of(request))

    return delete


def _operations(noun: _Noun) -> dict[str, Operation]:
    return {"QUERY": _query(noun), "READ": _read(noun), "DELETE": _delete(noun)}


CONNECTION_OPERATIONS: Final = _operations(_CONNECTION)
SESSION_OPERATIONS: Final = _operations(_SESSION)
LINK_OPERATIONS: Final = _operations(_LINK)
"""Operation to the function that makes its command of request, application properties, body, and page rows."""
