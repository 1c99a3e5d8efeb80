"""A blocking client of one broker: a socket and a sans-IO connection.

Rule 1: one thread, and one function that waits: `step` writes pending output with heartbeats, then waits for input, a
        deadline, or a second file descriptor.
Rule 2: the end of the connection, its session or a link is raised as one error by the next call; a command ends then.
Rule 3: events that arrive during a wait for another event are returned by the next `step`.
Rule 4: a broker that sends nothing, not even heartbeats, has broken the connection. It need not close it.
"""

import os
import select
import time
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from types import TracebackType
from typing import Final, Self

from ambermq.protocol.amqp10.connection.connection import Connection
from ambermq.protocol.amqp10.connection.connection_role import ConnectionRole
from ambermq.protocol.amqp10.events import ConnectionClosed, Event, LinkAttached, LinkDetached, Opened, SessionEnded
from ambermq.protocol.amqp10.limits import ConnectionLimits
from ambermq.protocol.amqp10.link.link import CREATED, EXISTING, Link
from ambermq.protocol.amqp10.link.receiver import Receiver
from ambermq.protocol.amqp10.link.sender import Sender
from ambermq.protocol.amqp10.performatives.classes import Error, Source, Target
from ambermq.protocol.amqp10.spec import AmqpCondition, ConnectionCondition, SenderSettleMode
from ambermq.protocol.amqp10.types.values import Symbol
from ambermq.protocol.auth.sasl.client_credentials import ClientCredentials
from ambermq.protocol.management.vhosts import HOSTNAME_PREFIX
from ambermq.tools.client.broker_url import BrokerUrl
from ambermq.tools.client.client_socket import ClientSocket, connected_socket
from ambermq.tools.client.password_option import client_password
from ambermq.tools.terminal.errors import ConnectionBroke, ToolError
from ambermq.tools.terminal.exit_codes import ExitCode

__all__ = ["TIMEOUT_SECONDS", "LinkClient", "created_queue"]

TIMEOUT_SECONDS: Final = 10.0
"""Timeout of a broker's answer to an open, an attach, a request or a close."""

_BYTES_MAX: Final = (1 << 63) - 1
_IDLE_TIMEOUT_MS: Final = 16_000
"""A broker that lives sends a heartbeat in half of this, which is less than TIMEOUT_SECONDS."""
_LIMITS: Final = ConnectionLimits(
    message_bytes_max=_BYTES_MAX, partial_bytes_max=_BYTES_MAX, idle_timeout_ms=_IDLE_TIMEOUT_MS
)
"""A client takes each message that its broker stores: the limits of messages are the broker's."""
_PASSED_MAX: Final = 100_000
"""The events before a wanted one: a broker that sends more does not answer."""

_READ_BYTES: Final = 256 * 1024
_BUFFERS_MAX: Final = 512
_DESCRIPTION_MAX: Final = 300
_CODES: Final = {
    AmqpCondition.NOT_FOUND: ExitCode.NOT_FOUND,
    AmqpCondition.UNAUTHORIZED_ACCESS: ExitCode.NOT_ALLOWED,
}
"""The exit codes of conditions that end a link; FAILED for the others."""
"""In characters: some brokers send a stack trace as the description of an error."""


class _NotAuthenticatedError(ToolError):
    """The broker did not accept the credentials."""


class LinkClient:
    """One connection with one session; a `with` block closes it."""

    def __init__(self, stream: ClientSocket, connection: Connection, url: BrokerUrl) -> None:
        """Serve the client side of a connected socket; `connect` creates one."""
        stream.setblocking(False)
        self.url = url
        self.connection = connection
        self._socket = stream
        self._output: deque[memoryview] = deque()
        self._pending: list[Event] = []
        self._link_count = 0
        self._heard = time.monotonic()
        """When the broker has sent something last."""
        self._left_ms = _now_ms()
        """When the last wait for the broker ended."""
        self._session = connection.begin()

    @classmethod
    def connect(cls, url: BrokerUrl, *, limits: ConnectionLimits | None = None, token: str = "") -> "LinkClient":
        """Connect, authenticate and open; ConnectionBroke if no broker answers, ToolError at a refusal.

        A one-time `token` replaces the user name and password of the URL. A user of the URL without a password has that
        of --password-file.
        """
        credentials = ClientCredentials(url.username, "" if token else client_password(url), token=token)
        try:
            return cls._connect(url, limits, credentials)
        except _NotAuthenticatedError:
            # A user with an argon2id hash can only use PLAIN, which is no risk where no other machine sees the bytes.
            if not credentials.password or not url.hides_bytes:
                raise
            return cls._connect(url, limits, replace(credentials, is_plain=True))

    @classmethod
    def _connect(cls, url: BrokerUrl, limits: ConnectionLimits | None, credentials: ClientCredentials) -> "LinkClient":
        stream = connected_socket(url, TIMEOUT_SECONDS)
        connection = Connection(
            ConnectionRole.CLIENT,
            limits or _LIMITS,
            now_ms=_now_ms(),
            container_id=f"ambermq-{os.getpid()}-{os.urandom(4).hex()}",
            sasl=credentials,
        )
        connection.open(f"{HOSTNAME_PREFIX}{url.vhost}" if url.vhost else url.host)
        client = cls(stream, connection, url)
        try:
            # A silent broker is one that cannot be reached.
            client.await_event(lambda event: isinstance(event, Opened), "its open", code=ExitCode.CANNOT_CONNECT)
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
        """Return the socket's descriptor, for a wait on several clients."""
        return self._socket.fileno()

    def check_vhost(self) -> None:
        """Raise ToolError if the broker chose another virtual host: an unknown name may give its default one."""
        remote = self.connection.remote_open
        assert remote is not None
        found = (remote.properties or {}).get(Symbol("vhost"))
        if self.url.vhost and found != self.url.vhost:
            raise ToolError(f"no virtual host {self.url.vhost!r}", where=str(self.url), code=ExitCode.NOT_FOUND)

    def attach_sender(self, address: str, *, settled: bool = False, must_exist: bool = False) -> Sender:
        """Attach a sender to an address; `settled`: the broker answers no message.

        With `must_exist` the broker creates no queue, and the error of an unknown address has the code NOT_FOUND.
        """
        mode = SenderSettleMode.SETTLED if settled else SenderSettleMode.UNSETTLED
        link = self._session.attach_sender(
            self._link_name("send", address),
            source=Source(),
            target=Target(address=address),
            sender_settle_mode=mode,
            desired_capabilities=_desired(must_exist=must_exist),
        )
        self._await_attached(link, address)
        return link

    def attach_receiver(self, address: str, *, reply_name: str | None = None, must_exist: bool = False) -> Receiver:
        """Attach a receiver without credit to an address; `reply_name` is the target address, for replies.

        `must_exist` as in `attach_sender`.
        """
        link = self._session.attach_receiver(
            self._link_name("receive", address),
            source=Source(address=address),
            target=Target(address=reply_name),
            desired_capabilities=_desired(must_exist=must_exist),
        )
        self._await_attached(link, address)
        return link

    def step(self, until: float | None = None, *, watch: int | None = None) -> list[Event]:
        """Write pending output and wait for events until a time of time.monotonic(); None is no limit.

        It returns earlier, perhaps without events, when a heartbeat is due, output was written, or the descriptor
        `watch` is readable.
        """
        pending, self._pending = self._pending, []
        self._exchange(0.0 if pending else until, watch)
        return pending + self._take_events()

    def await_event(
        self,
        is_wanted: Callable[[Event], bool],
        what: str,
        *,
        timeout_s: float | None = None,
        code: ExitCode = ExitCode.TIMEOUT,
    ) -> Event:
        """Return the first wanted event; keep the others; raise ToolError if `what` does not come in time."""
        timeout_s = TIMEOUT_SECONDS if timeout_s is None else timeout_s
        began = time.monotonic()
        deadline = began + timeout_s
        passed: list[Event] = []
        while time.monotonic() < deadline and len(passed) < _PASSED_MAX:
            events = self.step(deadline)
            for index, event in enumerate(events):
                if is_wanted(event):
                    self._pending = passed + events[index + 1 :]
                    return event
                passed.append(event)
        self.check_heard(began)
        raise ToolError(
            f"the broker has not sent {what}",
            where=str(self.url),
            expected=f"an answer within {timeout_s:.0f} s",
            found="none",
            code=code,
        )

    def check_heard(self, since: float) -> None:
        """Raise ConnectionBroke if the broker has sent nothing since a time of time.monotonic()."""
        if self._heard < since:
            raise self._broke(f"the broker has sent nothing for {time.monotonic() - self._heard:.0f} s")

    @property
    def is_writing(self) -> bool:
        """Whether output waits for the socket."""
        return bool(self._output)

    def flush(self) -> None:
        """Return when all output is written; raise ConnectionBroke if the broker does not read it in time."""
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while self._write():
            if time.monotonic() >= deadline:
                raise self._broke("the broker does not read what the client sends")
            self._exchange(deadline, None)
            self._pending += self._take_events()

    def close(self) -> None:
        """Close the connection, with a close frame if that is possible; never raises."""
        try:
            self.flush()
            self.connection.close()
            self._await_close()
        except ToolError:
            pass  # the result of the command does not depend on the close
        finally:
            self._socket.close()

    def _await_close(self) -> None:
        deadline = time.monotonic() + TIMEOUT_SECONDS
        # A lost connection has ended already, and receives nothing more.
        while time.monotonic() < deadline and not self.connection.is_ended:
            self._exchange(deadline, None)

    def _link_name(self, direction: str, address: str) -> str:
        self._link_count += 1
        return f"{direction}-{self._link_count}-{address}"

    def _await_attached(self, link: Link, address: str) -> None:
        link.owner = address

        def is_answer(event: Event) -> bool:
            # A refusal is an attach without the terminus, followed by a detach with the error.
            if not isinstance(event, LinkAttached) or event.link is not link or link.remote is None:
                return False
            return (link.remote.target if link.is_sender else link.remote.source) is not None

        self.await_event(is_answer, f"its attach for {address!r}")

    def _exchange(self, until: float | None, watch: int | None) -> None:
        """Write, wait once and read once."""
        self._check_silence()
        due_ms = self.connection.poll(_now_ms())
        was_writing = bool(self._output)
        outputs = [self._socket] if self._write() else []
        deadlines = [one for one in (until, None if due_ms is None else due_ms / 1000) if one is not None]
        timeout = max(0.0, min(deadlines) - time.monotonic()) if deadlines else None
        if was_writing and not outputs:
            # What the caller may wait for has happened.
            timeout = 0.0
        inputs: list[ClientSocket | int] = [self._socket] if watch is None else [self._socket, watch]
        readable, _, _ = select.select(inputs, outputs, [], timeout)
        if self._socket in readable:
            self._read()
        self._left_ms = _now_ms()

    def _check_silence(self) -> None:
        """Raise ConnectionBroke if the broker was silent for the idle timeout."""
        connection, now_ms = self.connection, _now_ms()
        # While this process did other work, the broker's bytes lay unread.
        connection.extend_deadlines(now_ms - self._left_ms, now_ms)
        timeout_ms = connection.limits.idle_timeout_ms
        if timeout_ms and now_ms - connection.received_ms >= timeout_ms and not connection.is_ended:
            raise self._broke(f"the broker has sent nothing for {timeout_ms / 1000:.0f} s")

    def _read(self) -> None:
        try:
            received = self._socket.recv(_READ_BYTES)
        except BlockingIOError:
            return
        except OSError as error:
            raise self._broke(error.strerror or str(error)) from error
        if received:
            self._heard = time.monotonic()
            self.connection.receive(received, _now_ms())
        else:
            self.connection.lost()

    def _write(self) -> bool:
        """Write as much as the socket accepts; return whether output is left."""
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

    def _take_events(self) -> list[Event]:
        """Return the connection's events; raise the end of the connection, its session or a link."""
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
        if error.condition == AmqpCondition.UNAUTHORIZED_ACCESS and self.connection.remote_open is None:
            # SASL has failed: no rule was asked.
            return self._not_authenticated(error)
        code = _CODES.get(str(error.condition), ExitCode.FAILED)
        description = f" ({error.description[:_DESCRIPTION_MAX]})" if error.description else ""
        is_refused = error.condition == AmqpCondition.UNAUTHORIZED_ACCESS
        advice = "ask an administrator for a rule: `ambermq acl test` explains" if is_refused else ""
        found = f"{error.condition}{description}"
        return ToolError(what, where=str(self.url), found=found, advice=advice, code=code)

    def _not_authenticated(self, error: Error) -> ToolError:
        """Return the error of a broker that accepts neither the user's password nor a client without one."""
        user = "a client without a user" if self.url.username is None else f"user {self.url.username!r:.80}"
        if self.url.username is None:
            advice = "name a user as amqp://USER@HOST:PORT, and its password with --password-file"
        else:
            advice = "check the name, and the password in --password-file or AMBERMQ_PASSWORD_FILE"
        return _NotAuthenticatedError(
            f"the broker does not accept {user}",
            where=str(self.url),
            found=(error.description or "")[:_DESCRIPTION_MAX],
            advice=advice,
            code=ExitCode.NOT_AUTHENTICATED,
        )

    def _broke(self, found: str) -> ConnectionBroke:
        return ConnectionBroke(
            "the connection broke", where=str(self.url), found=found, advice="check whether the broker runs"
        )


def created_queue(link: Link) -> str:
    """Return the queue that the broker created at the attach of a link, empty if it existed."""
    properties = None if link.remote is None else link.remote.properties
    return str((properties or {}).get(CREATED, ""))


def _desired(*, must_exist: bool) -> tuple[Symbol, ...]:
    return (EXISTING,) if must_exist else ()


def _now_ms() -> int:
    return time.monotonic_ns() // 1_000_000
