"""The trace of a recording: a line for each header, frame and end, from the client's side: SEND is to the broker.

    2026-11-23T18:42:39.123456Z #1 SEND (ch=0) open(container-id:client-1, hostname:localhost)

Rule 1. A line shows at most a short preview of a payload, without control characters.
Rule 2. No secret is shown: neither a SASL response, nor a token sent to `$cbs`, nor a request that changes users.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from ambermq.protocol.amqp10.performatives.classes import Attach, Detach, Target, Transfer
from ambermq.tools.messages.message_preview import message_facts
from ambermq.tools.proxy.field_text import bytes_text, masked_fields, performative_text
from ambermq.tools.proxy.frame_stream import FramePart, FrameStream, HeaderPart, Part, UnreadablePart
from ambermq.tools.proxy.recording import Kind, Record
from ambermq.tools.terminal.output import printable

__all__ = ["Trace", "TraceLine"]

_CLAIMS_ADDRESS: Final = "$cbs"
_USERS_TYPE: Final = "org.ambermq.user"
_PROTOCOLS: Final = {0: "AMQP", 2: "TLS", 3: "SASL"}
_MASKED: Final = "(masked)"


@dataclass(frozen=True, slots=True)
class TraceLine:
    """What a trace shows of one event."""

    time_us: int
    connection: int
    direction: str
    """SEND, RECV, or `----` for the begin and the end of a connection and of the recording."""
    name: str
    """The performative's name; header, heartbeat, unreadable, connected, ended, limit, end."""
    text: str
    """The line behind the direction."""
    values: dict[str, Any]
    """The fields for programs."""

    @property
    def line(self) -> str:
        """The line for people."""
        number = f"#{self.connection} " if self.connection else ""
        return f"{_time_text(self.time_us)} {number}{self.direction} {self.text}"

    @property
    def document(self) -> dict[str, Any]:
        """The line for programs."""
        return {
            "time": _time_text(self.time_us),
            "connection": self.connection,
            "direction": self.direction,
            "name": self.name,
            **self.values,
        }


@dataclass(slots=True)
class _Direction:
    """The state of one direction of a connection."""

    word: str
    stream: FrameStream = field(default_factory=FrameStream)
    unfinished: set[tuple[int, int]] = field(default_factory=set)
    """Channel and handle of the deliveries whose first frame was seen, and not the last."""
    secret: set[tuple[int, int]] = field(default_factory=set)
    """Channel and handle of the links whose payloads are secret."""


class Trace:
    """The states of the connections of a recording."""

    def __init__(self) -> None:
        self._directions: dict[tuple[int, Kind], _Direction] = {}

    def lines(self, record: Record) -> Iterator[TraceLine]:
        """Yield the lines of a record."""
        match record.kind:
            case Kind.CLIENT | Kind.BROKER:
                direction = self._direction(record.connection, record.kind)
                for part in direction.stream.feed(record.content):
                    yield _part_line(record, direction, part)
            case Kind.CLIENT_END | Kind.BROKER_END:
                yield from self._end(record)
            case Kind.OPENED:
                text = printable(record.text)
                yield _plain_line(record, "connected", f"connected from {text}", {"client": text})
            case Kind.LIMIT:
                yield _plain_line(record, "limit", "the recording reached its maximum size", {})
            case Kind.END:
                yield _plain_line(record, "end", "the recording ended", {})

    def _direction(self, connection: int, kind: Kind) -> _Direction:
        key = connection, kind
        if key not in self._directions:
            self._directions[key] = _Direction("SEND" if kind is Kind.CLIENT else "RECV")
        return self._directions[key]

    def _end(self, record: Record) -> Iterator[TraceLine]:
        is_client = record.kind is Kind.CLIENT_END
        kind = Kind.CLIENT if is_client else Kind.BROKER
        direction = self._direction(record.connection, kind)
        for part in direction.stream.finish():
            yield _part_line(record, direction, part)
        del self._directions[record.connection, kind]
        peer, reason = "client" if is_client else "broker", printable(record.text)
        text = f"the {peer} ended the connection" + (f": {reason}" if reason else "")
        yield _plain_line(record, "ended", text, {"peer": peer, "reason": reason})


def _plain_line(record: Record, name: str, text: str, values: dict[str, Any]) -> TraceLine:
    return TraceLine(record.time_us, record.connection, "----", name, text, values)


def _part_line(record: Record, direction: _Direction, part: Part) -> TraceLine:
    name, text, values = _part_text(direction, part)
    return TraceLine(record.time_us, record.connection, direction.word, name, text, values)


def _part_text(direction: _Direction, part: Part) -> tuple[str, str, dict[str, Any]]:
    match part:
        case HeaderPart(data=data):
            protocol = _PROTOCOLS.get(data[4], str(data[4]))
            version = ".".join(str(number) for number in data[5:])
            return "header", f"header({protocol} {version})", {"protocol": protocol, "version": version}
        case UnreadablePart(data=data, reason=reason, is_sasl=is_sasl):
            shown = _MASKED if is_sasl else bytes_text(data)
            text = f"unreadable({len(data)} bytes: {printable(reason)[:200]}) {shown}"
            return "unreadable", text, {"bytes": len(data), "reason": reason, "hex": shown}
        case FramePart(performative=None, channel=channel):
            return "heartbeat", f"(ch={channel}) heartbeat", {"channel": channel}
        case FramePart():
            return _frame_text(direction, part)


def _frame_text(direction: _Direction, part: FramePart) -> tuple[str, str, dict[str, Any]]:
    performative = part.performative
    assert performative is not None
    text = f"({'sasl' if part.is_sasl else f'ch={part.channel}'}) {performative_text(performative)}"
    values: dict[str, Any] = {} if part.is_sasl else {"channel": part.channel}
    values["fields"] = masked_fields(performative)
    match performative:
        case Attach(role=False, target=Target(address=address)) if _is_secret(address):
            direction.secret.add((part.channel, performative.handle))
        case Detach():
            direction.secret.discard((part.channel, performative.handle))
        case Transfer():
            preview = _preview(direction, part, performative)
            values |= {"payload_bytes": len(part.payload), "preview": preview}
            text += f" {len(part.payload)} bytes {preview}".rstrip()
    return performative.TYPE, text, values


def _is_secret(address: str | None) -> bool:
    return (address or "").rpartition("/")[2] == _CLAIMS_ADDRESS


def _preview(direction: _Direction, part: FramePart, transfer: Transfer) -> str:
    """Return the start of a message's body, if this is its first frame."""
    link = part.channel, transfer.handle
    is_first = link not in direction.unfinished
    if transfer.more and not transfer.aborted:
        direction.unfinished.add(link)
    else:
        direction.unfinished.discard(link)
    if link in direction.secret:
        return _MASKED
    if not is_first or not part.payload:
        return ""
    facts = message_facts(part.payload, is_whole=not transfer.more)
    if facts["application_properties"].get("type") == _USERS_TYPE:
        return _MASKED
    return f'"{facts["body"]}"'


def _time_text(time_us: int) -> str:
    seconds, micros = divmod(time_us, 1_000_000)
    try:
        moment = datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        return f"{time_us} us"
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{micros:06}Z"
