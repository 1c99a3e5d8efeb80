"""The pieces of large messages on their way to the engine: how many may wait for the disk at a time.

Rule 1. The pieces of all uploads take turns, in the order in which they arrived. Only so many are in the engine that a
        sync stays short, for the sake of other messages.
Rule 2. The commands of a link keep their order: after a piece that waits, its later messages wait too.
        The end of a transaction waits for its messages that wait.
Rule 3. Sessions whose pieces wait get no window (upload_windows.py). So memory is bounded, and others do not wait.
"""

from collections import deque
from typing import Any, Protocol, final

from ambermq.engine.commands import Discharge, Publish, StoreChunk
from ambermq.protocol.gateway.engine_port import EnginePort
from ambermq.protocol.server_limits import ServerLimits

__all__ = ["UploadGate", "UploadLink"]


class UploadLink(Protocol):
    """A link, as the gate knows it; for the ends of transactions, those of a connection."""

    held: int
    """Its commands that wait here."""


class UploadGateway(Protocol):
    """The gateway of a virtual host, as the gate knows it."""

    @property
    def engine(self) -> EnginePort:
        """The engine."""

    @property
    def limits(self) -> ServerLimits:
        """The limits."""


@final
class UploadGate:
    """The pieces that wait, of one virtual host."""

    __slots__ = ("_gateway", "_unsynced_bytes", "_waiting", "count", "open_bytes")

    def __init__(self, gateway: UploadGateway) -> None:
        self._gateway = gateway
        self._waiting: deque[tuple[UploadLink, StoreChunk | Publish | Discharge]] = deque()
        self._unsynced_bytes = 0
        """The bytes of pieces in the engine that are not durable."""
        self.open_bytes = 0
        """The bytes of all messages that are arriving, as far as they have arrived."""
        self.count = 0
        """The messages that are arriving piece by piece."""

    def submit(self, link: UploadLink, command: StoreChunk | Publish) -> None:
        """Pass a command to the engine when those before it are durable."""
        self._waiting.append((link, command))
        link.held += 1
        self._pass_on()

    def discharge(self, transactions: UploadLink, command: Discharge) -> None:
        """Pass the end of a transaction to the engine, after its messages; `transactions` are those of its connection.

        One that waits counts for their limit.
        """
        if any(isinstance(one, Publish) and one.transaction is command.transaction for _, one in self._waiting):
            self._waiting.append((transactions, command))
            transactions.held += 1
        else:
            self._gateway.engine.submit(command)

    def stored(self, size: int) -> None:
        """Count a piece that is durable, and pass on what waited for it."""
        self._unsynced_bytes -= size
        self._pass_on()

    def flush(self, link: Any) -> None:
        """Pass on the commands of a link that ends."""
        if not link.held:
            return
        waiting, self._waiting = self._waiting, deque()
        for one, command in waiting:
            if one is link:
                self._pass(one, command)
            else:
                self._waiting.append((one, command))
        self._pass_on()

    def _pass_on(self) -> None:
        waiting, unsynced_max = self._waiting, self._gateway.limits.uploads_unsynced_bytes
        while waiting:
            link, command = waiting[0]
            size = len(command.piece) if isinstance(command, StoreChunk) else 0
            if size and self._unsynced_bytes and self._unsynced_bytes + size > unsynced_max:
                return
            waiting.popleft()
            self._pass(link, command)

    def _pass(self, link: UploadLink, command: StoreChunk | Publish | Discharge) -> None:
        link.held -= 1
        if isinstance(command, StoreChunk):
            self._unsynced_bytes += len(command.piece)
        if isinstance(command, Publish):
            self._gateway.engine.publish(command)
        else:
            self._gateway.engine.submit(command)
