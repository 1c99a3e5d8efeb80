"""The admission of connections: how many there are, and which of them have not authenticated.

A connection counts as authenticated from its open, which comes after SASL.

Rule 1. At a limit the oldest connection that has not authenticated is dropped for a new one. So strangers who connect
        again and again do not keep out a client that authenticates.
Rule 2. The limits per address hold for connections that have not authenticated, and for new ones in a second.
Rule 3. While few descriptors are free, no remote connection is admitted: the log needs them.
Rule 4. Peers of this machine have no limit per address, and the last connections are reserved for them.
"""

from collections import Counter, OrderedDict
from typing import Final, Generic, Protocol, TypeVar, final

from ambermq.protocol.server.listeners.peer_address import LOCAL
from ambermq.protocol.server_limits import ServerLimits

__all__ = ["Admission", "AdmittedConnection"]

_SECOND_MS: Final = 1000


class AdmittedConnection(Protocol):
    """What the admission needs of a connection."""

    address: str
    """The address of the peer."""

    def drop(self, reason: str) -> None:
        """End the connection at once. It counts no more when this returns."""


Connection = TypeVar("Connection", bound=AdmittedConnection)


@final
class Admission(Generic[Connection]):
    """The connections of one server, by what they have proved."""

    __slots__ = (
        *("_accepts", "_limits", "_remote", "_second", "_strangers"),
        *("connections_max", "count", "dropped", "lacks_descriptors", "refused"),
    )

    def __init__(self, limits: ServerLimits) -> None:
        self._limits = limits
        self.connections_max = limits.connections_max
        """The most connections; the server lowers it to what its descriptors suffice for."""
        self.lacks_descriptors = False
        """Whether few file descriptors are free."""
        self.count = 0
        """The open connections."""
        self.refused = self.dropped = 0
        """The connections that were refused, and those that were dropped for others, since the start."""
        self._strangers: dict[str, OrderedDict[Connection, None]] = {}
        """The connections that have not authenticated, by address, the oldest first."""
        self._remote: OrderedDict[Connection, None] = OrderedDict()
        """Those of them that have an address, the oldest first."""
        self._accepts: Counter[str] = Counter()
        self._second = 0

    def reconfigure(self, limits: ServerLimits) -> None:
        """Use other limits for new connections; the server sets `connections_max`."""
        self._limits = limits

    @property
    def strangers(self) -> int:
        """The connections that have not authenticated."""
        return sum(map(len, self._strangers.values()))

    def admit(self, connection: Connection, now_ms: int) -> str:
        """Count a new connection; return why it is refused instead, or an empty text. It may end older connections."""
        address = connection.address
        reason = self._remote_refusal(address, now_ms) if address else ""
        reason = reason or self._make_room(address)
        if reason:
            self.refused += 1
            return reason
        self.count += 1
        self._strangers.setdefault(address, OrderedDict())[connection] = None
        if address:
            self._remote[connection] = None
        return ""

    def authenticated(self, connection: Connection) -> None:
        """Note that a connection has opened: it is not dropped for others."""
        strangers = self._strangers.get(connection.address)
        if strangers is None or connection not in strangers:
            return
        del strangers[connection]
        if not strangers:
            del self._strangers[connection.address]
        self._remote.pop(connection, None)

    def left(self, connection: Connection) -> None:
        """Count a connection out."""
        self.authenticated(connection)
        self.count -= 1

    def _remote_refusal(self, address: str, now_ms: int) -> str:
        """Return why a new connection of another machine is refused, or an empty text."""
        if self.lacks_descriptors:
            return "few file descriptors are free (descriptors_free_low)"
        return self._excess(address, now_ms)

    def _excess(self, address: str, now_ms: int) -> str:
        """Apply the limits of an address; return why a new connection is refused."""
        limits, second = self._limits, now_ms // _SECOND_MS
        if second != self._second:
            self._second = second
            self._accepts.clear()
        self._accepts[address] += 1
        accepts_max = limits.address_accepts_max
        if accepts_max and self._accepts[address] > accepts_max:
            return f"more than {accepts_max} connections from one address in a second (address_accepts_max)"
        strangers_max, strangers = limits.address_strangers_max, self._strangers.get(address)
        if strangers is not None and 0 < strangers_max <= len(strangers):
            why = f"more than {strangers_max} connections of its address have not authenticated"
            self._drop_oldest(strangers, f"{why} (address_strangers_max)")
        return ""

    def _make_room(self, address: str) -> str:
        """End the oldest stranger if there are too many connections; return why a new one is refused."""
        limit = self.connections_max
        if address:
            limit -= min(self._limits.local_connections_reserved, limit // 2)
        if self.count < limit:
            return ""
        why = f"{self.count} connections, at most {limit} (connections_max)"
        strangers = self._remote or (None if address else self._strangers.get(LOCAL))
        if not strangers:
            return why
        self._drop_oldest(strangers, why)
        return ""

    def _drop_oldest(self, strangers: OrderedDict[Connection, None], reason: str) -> None:
        self.dropped += 1
        next(iter(strangers)).drop(reason)
