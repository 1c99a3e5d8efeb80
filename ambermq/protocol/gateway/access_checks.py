"""The connections whose links are checked again after a change of the rules, in turns.

Rule 1. A new attach, and each message that names its own address, is checked by the new rules at once.
Rule 2. The first links are checked in the turn of the change: with few links nothing is left for later.
Rule 3. Another change begins again with all connections.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Final, Protocol, final

from ambermq.protocol.gateway.connection_peer import ConnectionPeer
from ambermq.protocol.gateway.links.link_peer import LinkPeer

__all__ = ["CHECKED_PER_TURN", "AccessChecks"]

CHECKED_PER_TURN: Final = 200
"""The links that are checked in one turn of the event loop. Each takes about 25 us."""


class _CheckedGateway(Protocol):
    """What the checks need of the gateway of their virtual host."""

    peers: dict[ConnectionPeer, None]
    touched: dict[LinkPeer, None]

    def blame(self, peer: LinkPeer | None, mistake: Exception) -> None:
        """End a connection because of an exception of our code."""


@final
class AccessChecks:
    """The checks of one virtual host that are left."""

    __slots__ = ("_gateway", "_steps", "peers")

    def __init__(self, gateway: _CheckedGateway) -> None:
        self._gateway = gateway
        self._steps: Iterator[None] | None = None
        """The checks of the first of `peers` that are left; None before they begin."""
        self.peers: deque[ConnectionPeer] = deque()
        """The connections that are not checked to the end."""

    def begin(self, peers: Iterable[ConnectionPeer]) -> None:
        """Check connections by other rules: the first links now, the others in later turns."""
        self.peers, self._steps = deque(peers), None
        self.advance()

    def advance(self) -> None:
        """Check the next links, at most CHECKED_PER_TURN. A connection counts as one."""
        for _ in range(CHECKED_PER_TURN):
            if not self.peers:
                return
            peer = self.peers[0]
            if peer not in self._gateway.peers or not self._check(peer):
                self.peers.popleft()
                self._steps = None

    def _check(self, peer: ConnectionPeer) -> bool:
        """Check the next link of a connection; return False after its last one."""
        self._gateway.touched[peer] = None
        try:
            if self._steps is None:
                self._steps = peer.check_access()
            return next(self._steps, self) is None
        except Exception as mistake:  # noqa: BLE001 - the other connections are checked in any case
            self._gateway.blame(peer, mistake)
            return False
