"""A client of a script: a socket, the sans-IO connection, and what has come on its links.

Rule 1. A client settles and grants only what a statement says, so a script reproduces what a client did.
Rule 2. The end of a link or a connection is a state that a statement may expect, not an error.
Rule 3. Only credit that a script grants lets messages in, and the trace of frames has a limit: memory is bounded.
"""

import os
import select
import socket
import struct
import time
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from ambermq.protocol.amqp10.connection.connection import Connection
from ambermq.protocol.amqp10.connection.connection_role import ConnectionRole
from ambermq.protocol.amqp10.events import (
    ConnectionClosed,
    Disposed,
    Event,
    LinkAttached,
    LinkDetached,
    SessionEnded,
    TransferRun,
)
from ambermq.protocol.amqp10.limits import ConnectionLimits
from ambermq.protocol.amqp10.link.receiver import Receiver
from ambermq.protocol.amqp10.link.sender import Sender
from ambermq.protocol.amqp10.performatives.classes import DeliveryState, Error
from ambermq.protocol.amqp10.serial_number import MASK
from ambermq.protocol.amqp10.session.session import Session
from ambermq.protocol.auth.sasl.client_credentials import ClientCredentials
from ambermq.protocol.management.vhosts import HOSTNAME_PREFIX
from ambermq.tools.client.broker_url import BrokerUrl
from ambermq.tools.client.client_socket import connected_socket
from ambermq.tools.proxy.frame_stream import FramePart, FrameStream

__all__ = ["ConnectOptions", "ScriptClient", "ScriptLink", "error_text", "pump"]

_READ_BYTES: Final = 64 * 1024
_FRAMES_MAX: Final = 1_000
_CONNECT_SECONDS: Final = 10.0
_PAUSE_SECONDS: Final = 0.05
_RESET: Final = struct.pack("ii", 1, 0)


@dataclass(frozen=True, slots=True)
class ConnectOptions:
    """The options of a connection."""

    container: str = ""
    host: str = ""
    user: str | None = None
    password: str = ""
    idle_ms: int | None = None
    frame_bytes: int | None = None

    @property
    def limits(self) -> ConnectionLimits:
        """The limits of the connection."""
        limits = ConnectionLimits()
        return ConnectionLimits(
            idle_timeout_ms=limits.idle_timeout_ms if self.idle_ms is None else self.idle_ms,
            frame_bytes_max=limits.frame_bytes_max if self.frame_bytes is None else self.frame_bytes,
        )


@dataclass(slots=True, eq=False)
class ScriptLink:
    """A link of a script."""

    name: str
    endpoint: Sender | Receiver
    is_attached: bool = False
    error: Error | None = None
    """Why the broker detached the link."""
    is_detached: bool = False
    inbox: deque[tuple[int, bytes]] = field(default_factory=deque)
    """Delivery-ids and messages that no statement has expected yet."""
    held: list[int] = field(default_factory=list)
    """The ids of messages that were expected and not settled."""
    outcomes: deque[tuple[str, str]] = field(default_factory=deque)
    """Outcome and error condition of the messages that the broker has settled."""


class ScriptClient:
    """One connection with one session."""

    def __init__(self, target: BrokerUrl, options: ConnectOptions) -> None:
        """Connect and send the open; raise ConnectionBroke if no broker answers, or ToolError for certificates."""
        self.socket = connected_socket(target, _CONNECT_SECONDS)
        self.socket.setblocking(False)
        username, password = options.user or target.username, options.password or target.password
        self.connection = Connection(
            ConnectionRole.CLIENT,
            options.limits,
            now_ms=_now_ms(),
            container_id=options.container or f"script-{os.getpid()}-{os.urandom(4).hex()}",
            sasl=ClientCredentials(username, password),
        )
        vhost = f"{HOSTNAME_PREFIX}{target.vhost}" if target.vhost else target.host
        self.connection.open(options.host or vhost)
        self.session: Session = self.connection.begin()
        self.links: dict[str, ScriptLink] = {}
        self.frames: deque[FramePart] = deque(maxlen=_FRAMES_MAX)
        """The latest frames of the broker that no statement has expected yet."""
        self.error: Error | None = None
        """Why the connection ended."""
        self.is_closed = False
        self._stream = FrameStream()
        self._output = bytearray()

    @property
    def has_output(self) -> bool:
        """Whether bytes wait for the socket."""
        return bool(self._output)

    def take_output(self) -> None:
        """Queue what the connection has to send; heartbeats are part of it."""
        if not self.is_closed:
            self.connection.poll(_now_ms())
        for piece in self.connection.take_output():
            self._output += piece
        self._take_events()

    def write(self) -> None:
        """Write what the socket accepts; an error is found by the next read."""
        try:
            with memoryview(self._output) as view:
                count = self.socket.sendmsg([view])
            del self._output[:count]
        except BlockingIOError:
            return
        except OSError:
            self._output.clear()

    def read(self) -> None:
        """Read what has come: all of it, since a wait for a TLS socket does not see what it has decrypted."""
        while self._read_once() == _READ_BYTES and not self.is_closed:
            pass

    def _read_once(self) -> int:
        """Read and process a part of the input; return its size."""
        try:
            data = self.socket.recv(_READ_BYTES)
        except BlockingIOError:
            return 0
        except OSError:
            data = b""
        if not data:
            self.connection.lost()
        else:
            self.frames.extend(part for part in self._stream.feed(data) if isinstance(part, FramePart))
            self.connection.receive(data, _now_ms())
        self._take_events()
        return len(data)

    def drop(self) -> None:
        """Reset the connection, without a close frame."""
        if isinstance(self.socket, socket.socket):
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        self.close_socket()

    def close_socket(self) -> None:
        """Close the socket."""
        self.is_closed = True
        self.socket.close()

    def _take_events(self) -> None:
        for event in self.connection.take_events():
            self._note(event)

    def _note(self, event: Event) -> None:
        match event:
            case LinkAttached(link=link):
                found = self._link(link)
                terminus = None if link.remote is None else link.remote.target if link.is_sender else link.remote.source
                if found is not None:
                    found.is_attached = terminus is not None
            case LinkDetached(link=link, error=error):
                found = self._link(link)
                if found is not None:
                    found.is_detached, found.error = True, error
            case TransferRun(link=link):
                self._note_messages(event)
            case Disposed(link=link, tokens=tokens, state=state):
                found = self._link(link)
                if found is not None and link.is_sender:
                    found.outcomes.extend([_outcome(state)] * len(tokens))
            case SessionEnded(error=error):
                for each in self.links.values():
                    each.is_detached, each.error = True, each.error or error
            case ConnectionClosed(error=error):
                self.is_closed, self.error = True, error

    def _note_messages(self, event: TransferRun) -> None:
        found = self._link(event.link)
        if found is None:
            return
        for index, payload in enumerate(event.payloads):
            # A view belongs to the read.
            found.inbox.append(((event.first_id + index) & MASK, bytes(payload)))

    def _link(self, endpoint: object) -> ScriptLink | None:
        return next((each for each in self.links.values() if each.endpoint is endpoint), None)


def pump(clients: Iterable[ScriptClient], seconds: float) -> None:
    """Write and read for all clients, and wait at most `seconds` for that."""
    alive = [client for client in clients if client.socket.fileno() >= 0]
    for client in alive:
        client.take_output()
    by_fd = {client.socket.fileno(): client for client in alive if not client.is_closed or client.has_output}
    poller = select.poll()
    for fd, client in by_fd.items():
        poller.register(fd, select.POLLIN | (select.POLLOUT if client.has_output else 0))
    wait_s = min(max(seconds, 0.0), _PAUSE_SECONDS)
    if not by_fd:
        time.sleep(wait_s)
    for fd, ready in poller.poll(1000 * wait_s) if by_fd else ():
        if ready & select.POLLOUT:
            by_fd[fd].write()
        if ready & ~select.POLLOUT:
            by_fd[fd].read()


def error_text(error: Error | None) -> str:
    """Return an error as text for people."""
    if error is None:
        return "no error"
    return f"{error.condition} ({error.description})" if error.description else str(error.condition)


def _outcome(state: DeliveryState | None) -> tuple[str, str]:
    error = getattr(state, "error", None)
    return ("settled" if state is None else state.TYPE), ("" if error is None else str(error.condition))


def _now_ms() -> int:
    return time.monotonic_ns() // 1_000_000
