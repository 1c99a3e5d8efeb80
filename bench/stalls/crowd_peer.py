"""A client that does a thing many times at once: it writes all of it, and then reads until all is answered."""

import select
import socket
import time
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import Any, Final, Self
from urllib.parse import urlsplit

from ambermq.protocol.amqp10.connection.connection import Connection
from ambermq.protocol.amqp10.connection.connection_role import ConnectionRole
from ambermq.protocol.amqp10.events import LinkAttached, LinkDetached, TransferRun
from ambermq.protocol.amqp10.limits import ConnectionLimits
from ambermq.protocol.amqp10.link.link import Link
from ambermq.protocol.amqp10.link.receiver import Receiver
from ambermq.protocol.amqp10.link.sender import Sender
from ambermq.protocol.amqp10.performatives.classes import DeliveryState, Source, Target
from ambermq.protocol.amqp10.session.session import Session
from ambermq.protocol.amqp10.spec import TerminusDurability, TerminusExpiryPolicy
from ambermq.protocol.amqp10.types.values import Described, Symbol, Timestamp
from ambermq.protocol.auth.sasl.client_credentials import ClientCredentials

__all__ = ["CrowdPeer"]

_LIMITS: Final = ConnectionLimits(window_frames=65_536, idle_timeout_ms=0)
_AT: Final = Symbol("ambermq:at")
_SELECTOR: Final = Symbol("apache.org:selector-filter:string")
_LINKS_PER_SESSION: Final = 1000
_WAIT_SECONDS: Final = 300.0


class CrowdPeer:
    """One connection; a `with` block closes its socket without a goodbye."""

    def __init__(self, url: str, name: str) -> None:
        """Connect and begin a session; a path `/vhost:NAME` of the URL selects a virtual host."""
        place = urlsplit(url)
        self._socket = socket.create_connection((place.hostname, place.port), timeout=_WAIT_SECONDS)
        self._connection = Connection(
            ConnectionRole.CLIENT, _LIMITS, now_ms=0, container_id=name, sasl=ClientCredentials()
        )
        self._connection.open(place.path.removeprefix("/") or "localhost")
        self.sessions: list[Session] = [self._connection.begin()]
        self._link_count = 0
        self.attached: dict[Link, None] = {}
        self.detached: dict[Link, None] = {}
        self.received: list[TransferRun] = []
        self.received_count = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def senders(self, addresses: Iterable[str]) -> list[Sender]:
        """Attach a sender to each address, and wait for all answers."""
        links = [
            self._session().attach_sender(f"s{address}", Source(), Target(address=address)) for address in addresses
        ]
        self._await_attached(links)
        return links

    def subscribe(self, topic: str) -> None:
        """Attach a receiver with a durable subscription to a topic."""
        source = Source(
            address=f"/topics/{topic}",
            durable=TerminusDurability.UNSETTLED_STATE,
            expiry_policy=Symbol(TerminusExpiryPolicy.NEVER),
        )
        link = self._session().attach_receiver(f"t{topic}", source, Target())
        self._await_attached([link])

    def receivers(
        self,
        address: str,
        count: int = 1,
        *,
        credit: int = 0,
        selector: str = "",
        mode: str | None = None,
        at_ms: int | None = None,
    ) -> list[Receiver]:
        """Attach receivers to one address, and wait for all answers."""
        filters = {_SELECTOR: Described(_SELECTOR, selector)} if selector else {}
        if at_ms is not None:
            filters[_AT] = Described(_AT, Timestamp(at_ms))
        source = Source(address=address, filter=filters or None, distribution_mode=mode and Symbol(mode))
        links = [self._receiver(source) for _ in range(count)]
        for link in links:
            if credit:
                link.grant(credit)
        self._await_attached(links)
        return links

    def attach_selectors(self, address: str, selectors: Iterable[str]) -> None:
        """Attach a receiver with each selector in one write, and wait for all answers."""
        filters = [{_SELECTOR: Described(_SELECTOR, selector)} for selector in selectors]
        self._await_attached([self._receiver(Source(address=address, filter=one)) for one in filters])

    def _receiver(self, source: Source) -> Receiver:
        self._link_count += 1
        return self._session().attach_receiver(f"r{self._link_count}", source, Target())

    def _await_attached(self, links: Sequence[Link]) -> None:
        self.wait(lambda: len(self.attached.keys() & set(links)) == len(links))

    def detach(self, links: list[Any]) -> None:
        """Detach links in one write, and wait until the broker has answered the last one."""
        for link in links:
            link.detach(closed=True)
        session = self._connection.begin()
        self.wait(lambda: session.is_live)

    def collect(self, total: int, *, is_required: bool = False) -> None:
        """Read until `received_count` is `total`. Raises TimeoutError if that is required."""
        self.wait(lambda: self.received_count >= total, is_required=is_required)

    def settle(self, state: DeliveryState) -> None:
        """Settle all that was received, in as few dispositions as possible, and forget it."""
        for session, runs in groupby(self.received, lambda run: run.link.session):
            first, *more = runs
            count = len(first.payloads)
            for run in more:
                if run.first_id != first.first_id + count:
                    session.settle(first.first_id, count, state)
                    first, count = run, 0
                count += len(run.payloads)
            session.settle(first.first_id, count, state)
        self.received.clear()
        session = self._connection.begin()
        self.wait(lambda: session.is_live)

    def wait(self, is_done: Callable[[], bool], seconds: float = _WAIT_SECONDS, *, is_required: bool = True) -> None:
        """Write all output and read until something is true. Raises TimeoutError."""
        deadline = time.monotonic() + seconds
        output = b""
        while not is_done() or output:
            output += b"".join(map(bytes, self._connection.take_output()))
            readable, writable, _ = select.select([self._socket], [self._socket] if output else [], [], 0.1)
            if writable:
                self._socket.setblocking(False)
                output = output[self._socket.send(output) :]
            if readable:
                received = self._socket.recv(1 << 18)
                if not received:
                    raise ConnectionResetError("the broker has closed the connection")
                self._connection.receive(received, 0)
                self._take_events()
            if self._connection.is_ended or time.monotonic() > deadline:
                if is_required:
                    raise TimeoutError(f"the broker has not answered: {self._connection.state.name}")
                return

    def _session(self) -> Session:
        if len(self.sessions[-1].links()) >= _LINKS_PER_SESSION:
            self.sessions.append(self._connection.begin())
        return self.sessions[-1]

    def _take_events(self) -> None:
        for event in self._connection.take_events():
            match event:
                case LinkAttached(link=link):
                    self.attached[link] = None  # type: ignore[index]
                case LinkDetached(link=link):
                    self.detached[link] = None  # type: ignore[index]
                case TransferRun():
                    self.received.append(event)
                    self.received_count += len(event.payloads)
                case _:
                    pass
