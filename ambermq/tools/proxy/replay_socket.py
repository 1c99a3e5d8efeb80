"""The connections of a replay: sockets, the facts that have come, and one function that waits for all of them.

Rule 1. A connection reads while it writes, so neither end waits for the other.
Rule 2. Input that was not asked for yet is kept as facts. The recorded credit and windows bound it.
"""

import select
import socket
import time
from collections import deque
from collections.abc import Iterable
from typing import Final

from ambermq.protocol.amqp10.framing.frames import EMPTY_FRAME
from ambermq.protocol.amqp10.performatives.classes import SaslChallenge, SaslMechanisms
from ambermq.tools.client.broker_url import BrokerUrl
from ambermq.tools.client.client_socket import connected_socket
from ambermq.tools.proxy.broker_facts import Fact
from ambermq.tools.proxy.connection_model import ConnectionModel
from ambermq.tools.proxy.frame_stream import FramePart, FrameStream, Part

__all__ = ["ReplaySocket", "exchange"]

_READ_BYTES: Final = 64 * 1024
_OUTPUT_MAX: Final = 256 * 1024
_CONNECT_SECONDS: Final = 10.0
_PAUSE_SECONDS: Final = 0.05
"""The longest wait in one call: heartbeats are due between the calls."""


class ReplaySocket:
    """One connection of a replay."""

    def __init__(self, target: BrokerUrl, model: ConnectionModel) -> None:
        """Connect; raise ConnectionBroke if no broker answers, or ToolError for wrong certificates."""
        self.socket = connected_socket(target, _CONNECT_SECONDS)
        self.socket.setblocking(False)
        self.model = model
        self.facts: dict[tuple[object, ...], deque[Fact]] = {}
        """The facts that have come and were not asked for, by key."""
        self.is_ended = False
        """Whether the broker has ended the stream."""
        self.offered: list[str] = []
        """The mechanisms of SASL that the broker offers."""
        self.challenges: deque[bytes] = deque()
        """The challenges of SASL without an answer."""
        self._stream = FrameStream()
        self._output = bytearray()
        self._written_s = time.monotonic()

    def send(self, data: bytes, parts: Iterable[Part] = ()) -> None:
        """Queue bytes to send, with the parts that they hold."""
        self._output += data
        for part in parts:
            self.model.sent(part)

    @property
    def is_full(self) -> bool:
        """Whether the broker is behind in its reads."""
        return len(self._output) > _OUTPUT_MAX

    @property
    def has_output(self) -> bool:
        """Whether bytes wait for the socket."""
        return bool(self._output)

    def take(self, wanted: Fact) -> Fact | None:
        """Return the fact that answers a recorded one, None if it has not come: the next one of its key.

        If the wanted one has no order, it is the first equal one.
        """
        key = wanted.key
        held = self.facts.get(key)
        if not held:
            return None
        fact = held[0] if wanted.has_order else next((one for one in held if one.value == wanted.value), None)
        if fact is None:
            return None
        held.remove(fact)
        if not held:
            del self.facts[key]
        return fact

    def peek(self, kinds: Iterable[str]) -> Fact | None:
        """Return a fact of one of these kinds that has come; None if there is none."""
        wanted = set(kinds)
        return next((held[0] for key, held in self.facts.items() if key[0] in wanted), None)

    def write(self) -> None:
        """Write what the socket accepts; an error is found by the next read."""
        try:
            with memoryview(self._output) as view:
                count = self.socket.sendmsg([view])
        except BlockingIOError:
            return
        except OSError:
            self._output.clear()
            return
        del self._output[:count]
        self._written_s = time.monotonic()

    def read(self) -> None:
        """Read what has come: all of it, since a wait for a TLS socket does not see what it has decrypted."""
        while True:
            try:
                data = self.socket.recv(_READ_BYTES)
            except BlockingIOError:
                return
            except OSError:
                data = b""
            if not data:
                self.is_ended = True
                return
            for part in self._stream.feed(data):
                self._take(part)
            if len(data) < _READ_BYTES:
                return

    def _take(self, part: Part) -> None:
        """Note what a part of the broker's stream tells."""
        match part:
            case FramePart(performative=SaslMechanisms(sasl_server_mechanisms=mechanisms)):
                self.offered = [str(one) for one in mechanisms or ()]
            case FramePart(performative=SaslChallenge(challenge=challenge)):
                self.challenges.append(bytes(challenge or b""))
        for fact in self.model.facts(part):
            self.facts.setdefault(fact.key, deque()).append(fact)

    def keep_alive(self) -> None:
        """Queue a heartbeat if the broker's idle-time-out asks for one."""
        remote = self.model.open
        if remote is None or not remote.idle_time_out or self._output or self.model.is_client_closed:
            return
        if time.monotonic() - self._written_s >= remote.idle_time_out / 2000:
            self.send(EMPTY_FRAME)

    def finish(self) -> None:
        """End our direction of the stream. TLS has no end of one direction: there the connection ends."""
        if not isinstance(self.socket, socket.socket):
            self.is_ended = True
            self.socket.close()
            return
        try:
            self.socket.shutdown(socket.SHUT_WR)
        except OSError:
            self.is_ended = True

    def close(self) -> None:
        """Close the socket."""
        self.socket.close()


def exchange(sockets: Iterable[ReplaySocket], seconds: float) -> None:
    """Write and read what is possible, and wait at most `seconds` for it."""
    open_ones = [each for each in sockets if not each.is_ended]
    for each in open_ones:
        each.keep_alive()
    if not open_ones:
        time.sleep(min(seconds, _PAUSE_SECONDS))
        return
    poller = select.poll()
    by_fd = {each.socket.fileno(): each for each in open_ones}
    for fd, each in by_fd.items():
        poller.register(fd, select.POLLIN | (select.POLLOUT if each.has_output else 0))
    for fd, ready in poller.poll(1000 * min(max(seconds, 0.0), _PAUSE_SECONDS)):
        if ready & select.POLLOUT:
            by_fd[fd].write()
        if ready & ~select.POLLOUT:
            by_fd[fd].read()
