"""Two connections passing bytes in memory, and a peer that is nothing but frames."""

from typing import TypeVar

from ambermq.protocol.amqp10.connection.connection import Connection
from ambermq.protocol.amqp10.connection.connection_role import ConnectionRole
from ambermq.protocol.amqp10.connection.sasl import SaslClient, SaslServer
from ambermq.protocol.amqp10.events import Authenticating, Event, LinkAttached, Opened
from ambermq.protocol.amqp10.framing.frames import AMQP_HEADER, decode_frame_body
from ambermq.protocol.amqp10.limits import ConnectionLimits
from ambermq.protocol.amqp10.link.link import Link
from ambermq.protocol.amqp10.link.receiver import Receiver
from ambermq.protocol.amqp10.link.sender import Sender
from ambermq.protocol.amqp10.performatives.base import Composite
from ambermq.protocol.amqp10.performatives.classes import (
    Attach,
    Begin,
    Close,
    Detach,
    Disposition,
    End,
    Open,
    Source,
    Target,
)
from ambermq.protocol.amqp10.session.session import Session

__all__ = ["FIRST_ID", "Pair", "Wire", "conditions", "cut", "disposed"]

FIRST_ID = 0xFFFFFFFD
"""Where some clients begin, three before the wrap."""

Kind = TypeVar("Kind")


def cut(data: bytes) -> list[tuple[int, Composite | None, bytes]]:
    """Cut bytes into frames: channel, performative (None: a heartbeat), payload; protocol headers are left out."""
    frames: list[tuple[int, Composite | None, bytes]] = []
    position = 0
    while position < len(data):
        if data[position : position + 4] == b"AMQP":
            position += 8
            continue
        if data[position : position + 5] == b"HTTP/":
            return frames  # the answer to an HTTP request
        size = int.from_bytes(data[position : position + 4], "big")
        kind, channel = data[position + 5], int.from_bytes(data[position + 6 : position + 8], "big")
        body, end = position + data[position + 4] * 4, position + size
        if body == end:
            frames.append((channel, None, b""))
        else:
            performative, payload_start = decode_frame_body(data, body, end, kind)
            frames.append((channel, performative, data[payload_start:end]))
        position = end
    return frames


def fields_written(frame: bytes) -> int:
    """The count that stands in the list of a frame, list8 or list32."""
    return frame[13] if frame[11] == 0xC0 else int.from_bytes(frame[16:20], "big")


def _password_in(event: Authenticating) -> str:
    """The last text of a response of PLAIN."""
    return (event.response or b"").rpartition(b"\0")[2].decode()


class Pair:
    """A client and a server; the server says yes to everything and grants `credit` to every sending link."""

    def __init__(
        self,
        *,
        limits: ConnectionLimits | None = None,
        client_limits: ConnectionLimits | None = None,
        sasl: SaslServer | None = None,
        client_sasl: SaslClient | None = None,
        allow_bare: bool = True,
        credit: int = 100,
        by_byte: bool = False,
        password: str | None = None,
    ) -> None:
        self.server = Connection(
            ConnectionRole.SERVER,
            limits or ConnectionLimits(),
            now_ms=0,
            container_id="server",
            sasl=sasl,
            allow_bare=allow_bare,
            first_delivery_id=FIRST_ID,
        )
        self.client = Connection(
            ConnectionRole.CLIENT,
            client_limits or limits or ConnectionLimits(),
            now_ms=0,
            container_id="client",
            sasl=client_sasl,
            first_delivery_id=FIRST_ID,
        )
        self.server_events: list[Event] = []
        self.client_events: list[Event] = []
        self._credit = credit
        self._by_byte = by_byte
        self._password = password

    def run(self) -> None:
        """Pass bytes until neither side has output."""
        while True:
            up = b"".join(map(bytes, self.client.take_output()))
            self._give(self.server, up)
            self._answer()
            down = b"".join(map(bytes, self.server.take_output()))
            self._give(self.client, down)
            self.client_events += self.client.take_events()
            if not up and not down:
                return

    def _give(self, connection: Connection, data: bytes) -> None:
        if not self._by_byte:
            connection.receive(memoryview(bytearray(data)), 0)
            return
        for byte in data:
            connection.receive(bytes((byte,)), 0)

    def _answer(self) -> None:
        while events := self.server.take_events():
            self.server_events += events
            for event in events:
                if isinstance(event, Authenticating):
                    self.server.authenticated(self._password is None or _password_in(event) == self._password)
                elif isinstance(event, Opened):
                    self.server.accept()
                elif isinstance(event, LinkAttached):
                    self._accept_link(event.link)

    def _accept_link(self, link: Link) -> None:
        assert link.remote is not None
        link.accept(link.remote.source, link.remote.target)
        if isinstance(link, Receiver):
            link.grant(self._credit)

    def opened(self) -> Session:
        """Open, begin, and run; returns the client's session."""
        self.client.open("localhost")
        session = self.client.begin()
        self.run()
        return session

    def sender(self, session: Session, name: str = "up", **modes: int) -> tuple[Sender, Receiver]:
        """Attach a sending link of the client; returns both its ends."""
        sender = session.attach_sender(name, Source(), Target(address="q"), **modes)
        self.run()
        return sender, self._server_link(name, Receiver)

    def receiver(
        self, session: Session, name: str = "down", credit: int = 100, **modes: int
    ) -> tuple[Receiver, Sender]:
        """Attach a receiving link of the client; returns both its ends."""
        receiver = session.attach_receiver(name, Source(address="q"), Target(), **modes)
        receiver.grant(credit)
        self.run()
        return receiver, self._server_link(name, Sender)

    def _server_link(self, name: str, kind: type[Kind]) -> Kind:
        for session in self.server.sessions():
            for link in session.links():
                if link.name == name and isinstance(link, kind):
                    return link
        raise AssertionError(name)

    def told(self, kind: type[Kind], *, to_server: bool = True) -> list[Kind]:
        """The events of one kind so far, and forget all events."""
        events = self.server_events if to_server else self.client_events
        found = [event for event in events if isinstance(event, kind)]
        events.clear()
        return found


class Wire:
    """A server that says yes, and frames written by hand."""

    def __init__(self, limits: ConnectionLimits | None = None, *, credit: int = 100, opened: bool = True) -> None:
        self.server = Connection(
            ConnectionRole.SERVER,
            limits or ConnectionLimits(),
            now_ms=0,
            container_id="server",
            first_delivery_id=FIRST_ID,
        )
        self.events: list[Event] = []
        self.credit = credit
        if opened:
            self.give(AMQP_HEADER + self.frame(Open(container_id="wire")) + self.frame(self.begin()))
            self.read()
            self.events.clear()

    @staticmethod
    def begin(**fields: int) -> Begin:
        """A begin with windows wide open."""
        return Begin(**{"next_outgoing_id": FIRST_ID, "incoming_window": 1000, "outgoing_window": 1000, **fields})

    @staticmethod
    def attach(*, role: bool, name: str = "link", handle: int = 0, **fields: object) -> Attach:
        """An attach of the peer."""
        return Attach(
            name=name, handle=handle, role=role, source=Source(address="q"), target=Target(address="q"), **fields
        )

    @staticmethod
    def frame(performative: Composite, payload: bytes = b"", *, channel: int = 0) -> bytes:
        """A frame as proton writes it: no trailing nulls."""
        body = performative.encode(full_width=False) + payload
        return (8 + len(body)).to_bytes(4, "big") + b"\x02\x00" + channel.to_bytes(2, "big") + body

    def say(self, *performatives: Composite, payload: bytes = b"", channel: int = 0) -> list[Composite | None]:
        """Send frames, each with the payload; returns what the server answers."""
        self.give(b"".join(self.frame(performative, payload, channel=channel) for performative in performatives))
        return [performative for _, performative, _ in self.read()]

    def give(self, data: bytes) -> None:
        """Send bytes, and let the server's owner say yes."""
        self.server.receive(data, 0)
        while events := self.server.take_events():
            self.events += events
            for event in events:
                if isinstance(event, Opened):
                    self.server.accept()
                elif isinstance(event, LinkAttached) and event.link.remote is not None:
                    event.link.accept(event.link.remote.source, event.link.remote.target)
                    if isinstance(event.link, Receiver) and self.credit:
                        event.link.grant(self.credit)

    def read(self) -> list[tuple[int, Composite | None, bytes]]:
        """What the server wrote."""
        return cut(b"".join(map(bytes, self.server.take_output())))

    def session(self) -> Session:
        """The server's first session."""
        return self.server.sessions()[0]

    def error(self) -> tuple[str, str] | None:
        """The scope and condition of the goodbye that the server says now."""
        for _, performative, _ in self.read():
            if isinstance(performative, Close | End) and performative.error is not None:
                return performative.NAME.split(":")[1], str(performative.error.condition)
        return None


def conditions(answers: list[Composite | None]) -> list[tuple[str, str]]:
    """Return performative and condition of each close, end and detach with an error among a server's answers."""
    return [
        (answer.NAME.split(":")[1], str(answer.error.condition))
        for answer in answers
        if isinstance(answer, Close | End | Detach) and answer.error is not None
    ]


def disposed(answers: list[Composite | None]) -> list[Disposition]:
    """The dispositions among what a server answered."""
    return [answer for answer in answers if isinstance(answer, Disposition)]
