"""A blocking client of one broker: a socket, and the sans-IO connection that it feeds.

Rule 1: one thread, one place that waits: `step` writes what is due, heartbeats included, and waits for input, a moment,
        or a second file descriptor.
Rule 2: whatever ends the connection, its session or one of its links is raised as one message, wherever it is noticed;
        no command of ours goes on after that.
Rule 3: events that came while something else was awaited are kept for the next `step`.
"""

import os
import select
import socket
import time
from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import Final, Self

from ambermq.protocol.amqp10.connection.connection import Connection, ConnectionRole
from ambermq.protocol.amqp10.connection.sasl import SaslClient
from ambermq.protocol.amqp10.events import ConnectionClosed, Event, LinkAttached, LinkDetached, Opened, SessionEnded
from ambermq.protocol.amqp10.limits import ConnectionLimits
from ambermq.protocol.amqp10.link.link import Link
from ambermq.protocol.amqp10.link.receiver import Receiver
from ambermq.protocol.amqp10.link.sender import Sender
from ambermq.protocol.amqp10.performatives.classes import Error, Source, Target
from ambermq.protocol.amqp10.spec import AmqpCondition, ConnectionCondition, SenderSettleMode
from ambermq.protocol.amqp10.types.values import Symbol
from ambermq.protocol.management.vhosts import HOSTNAME_PREFIX
from ambermq.tools.client.broker_url import BrokerUrl
from ambermq.tools.terminal.errors import ConnectionBroke, ToolError
from ambermq.tools.terminal.exit_codes import ExitCode

__all__ = ["TIMEOUT_SECONDS", "LinkClient"]

TIMEOUT_SECONDS: Final = 10.0
"""How long a broker may take to answer an open, an attach, a request or a close."""

_READ_BYTES: Final = 256 * 1024
_BUFFERS_MAX: Final = 512
_DESCRIPTION_MAX: Final = 300
"""Characters: some brokers describe an error by their whole stack."""


class LinkClient:
    """One connection with one session; use it in a `with`, which closes it."""

    def __init__(self, stream: socket.socket, connection: Connection, url: BrokerUrl) -> None:
        """Own a connected socket; `connect` makes one."""
        stream.setblocking(False)
        self.url = url
        self.connection = connection
        self._socket = stream
        self._output: deque[memoryview] = deque()
        self._kept: list[Event] = []
        self._link_count = 0
        self._session = connection.begin()

    @classmethod
    def connect(cls, url: BrokerUrl, *, limits: ConnectionLimits | None = None, token: str = "") -> "LinkClient":
        """Connect, say who we are, and open; ConnectionBroke where nobody answers, ToolError where we are refused.

        A one-time `token` stands in for the user name and password of the URL.
        """
        stream = _connected(url)
        connection = Connection(
            ConnectionRole.CLIENT,
            limits or ConnectionLimits(),
            now_ms=_now_ms(),
            container_id=f"ambermq-{os.getpid()}-{os.urandom(4).hex()}",
            sasl=SaslClient(url.username, url.password, token),
        )
        connection.open(f"{HOSTNAME_PREFIX}{url.vhost}" if url.vhost else url.host)
        client = cls(stream, connection, url)
        try:
            client.await_event(lambda event: isinstance(event, Opened), "its open")
            client.check_vhost()
        except BaseException:
            stream.close()
            raise
        return client

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def fileno(self) -> int:
        """Return the socket's descriptor, for who waits for more than this client."""
        return self._socket.fileno()

    def check_vhost(self) -> None:
        """Make sure that we are where we wanted to be: a broker takes unknown names for its default virtual host."""
        remote = self.connection.remote_open
        assert remote is not None
        found = (remote.properties or {}).get(Symbol("vhost"))
        if self.url.vhost and found != self.url.vhost:
            raise ToolError(f"no virtual host {self.url.vhost!r}", where=str(self.url), code=ExitCode.NOT_FOUND)

    def attach_sender(self, address: str, *, settled: bool = False) -> Sender:
        """Attach a link on which we send to an address; `settled`: nothing that we send is ever answered."""
        mode = SenderSettleMode.SETTLED if settled else SenderSettleMode.UNSETTLED
        link = self._session.attach_sender(
            self._link_name("send", address),
            source=Source(),
            target=Target(address=address),
            sender_settle_mode=mode,
        )
        self._await_attached(link, address)
        return link

    def attach_receiver(self, address: str, *, reply_name: str | None = None) -> Receiver:
        """Attach a link on which we receive from an address, without credit; `reply_name` is its own end's address."""
        link = self._session.attach_receiver(
            self._link_name("receive", address), source=Source(address=address), target=Target(address=reply_name)
        )
        self._await_attached(link, address)
        return link

    def step(self, until: float | None = None, *, watch: int | None = None) -> list[Event]:
        """Write what is due and wait for events until a moment of time.monotonic(), None: for as long as it takes.

        Returns sooner, perhaps with nothing, when a heartbeat was due, output could be written, or the descriptor
        `watch` is readable.
        """
        kept, self._kept = self._kept, []
        self._exchange(0.0 if kept else until, watch)
        return kept + self._taken()

    def await_event(self, is_wanted: Callable[[Event], bool], what: str, *, timeout_s: float | None = None) -> Event:
        """Return the first event that is wanted and keep the others; ToolError when `what` is too long in coming."""
        timeout_s = TIMEOUT_SECONDS if timeout_s is None else timeout_s
        deadline = time.monotonic() + timeout_s
        passed: list[Event] = []
        while time.monotonic() < deadline:
            events = self.step(deadline)
            for index, event in enumerate(events):
                if is_wanted(event):
                    self._kept = passed + events[index + 1 :]
                    return event
                passed.append(event)
        raise ToolError(
            f"the broker has not sent {what}",
            where=str(self.url),
            expected=f"it within {timeout_s:.0f} s",
            found="silence",
            code=ExitCode.TIMEOUT,
        )

    def flush(self) -> None:
        """Return when everything is written; ConnectionBroke when the broker does not read for too long."""
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while self._write():
            if time.monotonic() >= deadline:
                raise self._broke("it does not read what we send")
            self._exchange(deadline, None)
            self._kept += self._taken()

    def close(self) -> None:
        """Close politely where that is still possible; never raises."""
        try:
            self.flush()
            self.connection.close()
            self._await_close()
        except ToolError:
            pass  # what mattered was told before; a goodbye is not worth an error
        finally:
            self._socket.close()

    def _await_close(self) -> None:
        deadline = time.monotonic() + TIMEOUT_SECONDS
        # A connection that is lost already has told its end, and nothing more will come.
        while time.monotonic() < deadline and not self.connection.is_ended:
            self._exchange(deadline, None)

    def _link_name(self, direction: str, address: str) -> str:
        self._link_count += 1
        return f"{direction}-{self._link_count}-{address}"

    def _await_attached(self, link: Link, address: str) -> None:
        link.owner = address

        def is_answer(event: Event) -> bool:
            # A refusal is an attach without the terminus, and then the detach that says why.
            if not isinstance(event, LinkAttached) or event.link is not link or link.remote is None:
                return False
            return (link.remote.target if link.is_sender else link.remote.source) is not None

        self.await_event(is_answer, f"its attach for {address!r}")

    def _exchange(self, until: float | None, watch: int | None) -> None:
        """Write, wait once, read once."""
        due_ms = self.connection.poll(_now_ms())
        writing = [self._socket] if self._write() else []
        moments = [moment for moment in (until, None if due_ms is None else due_ms / 1000) if moment is not None]
        wait = max(0.0, min(moments) - time.monotonic()) if moments else None
        reading: list[socket.socket | int] = [self._socket] if watch is None else [self._socket, watch]
        readable, _, _ = select.select(reading, writing, [], wait)
        if self._socket in readable:
            self._read()

    def _read(self) -> None:
        try:
            received = self._socket.recv(_READ_BYTES)
        except BlockingIOError:
            return
        except OSError as error:
            raise self._broke(error.strerror or str(error)) from error
        if received:
            self.connection.receive(received, _now_ms())
        else:
            self.connection.lost()

    def _write(self) -> bool:
        """Write as much as the socket takes; True when something is left."""
        output = self._output
        output.extend(memoryview(buffer) for buffer in self.connection.take_output())
        try:
            while output:
                self._wrote(self._socket.sendmsg([output[index] for index in range(min(len(output), _BUFFERS_MAX))]))
        except BlockingIOError:
            return True
        except OSError as error:
            raise self._broke(error.strerror or str(error)) from error
        return False

    def _wrote(self, count: int) -> None:
        output = self._output
        while count and count >= len(output[0]):
            count -= len(output.popleft())
        if count:
            output[0] = output[0][count:]

    def _taken(self) -> list[Event]:
        """Take the connection's events; an end of anything is raised."""
        events = self.connection.take_events()
        for event in events:
            match event:
                case LinkDetached(link=link, error=error):
                    raise self._ended(f"the link for {link.owner!r} was refused or ended", error)
                case SessionEnded(error=error):
                    raise self._ended("the broker ended the session", error)
                case ConnectionClosed(error=error):
                    raise self._ended("the broker closed the connection", error)
        return events

    def _ended(self, what: str, error: Error | None) -> ToolError:
        if error is None or error.condition == ConnectionCondition.CONNECTION_FORCED:
            return self._broke(what if error is None else f"{what}: {error.description or error.condition}")
        code = ExitCode.NOT_FOUND if error.condition == AmqpCondition.NOT_FOUND else ExitCode.FAILED
        description = f" ({error.description[:_DESCRIPTION_MAX]})" if error.description else ""
        return ToolError(what, where=str(self.url), found=f"{error.condition}{description}", code=code)

    def _broke(self, found: str) -> ConnectionBroke:
        return ConnectionBroke(
            "the connection broke", where=str(self.url), found=found, advice="see whether the broker still runs"
        )


def _connected(url: BrokerUrl) -> socket.socket:
    try:
        stream = socket.create_connection((url.host, url.port), timeout=TIMEOUT_SECONDS)
    except OSError as error:
        raise ConnectionBroke(
            "cannot connect",
            where=str(url),
            found=error.strerror or str(error),
            advice="start a broker with `ambermq serve`, or name another with --url",
        ) from error
    stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return stream


def _now_ms() -> int:
    return time.monotonic_ns() // 1_000_000
