"""Addresses, in one grammar (docs/addresses.md).

NAME                        the queue of that name, by way of the muxer QUEUE
/queues/NAME                the same, percent-encoded, so that any name can be written
/muxers/NAME/DESTINATION    a muxer, for a destination: all that follows the slash, as it is
/muxers/NAME                a muxer; each message says in `to` or `subject` what it is for
/topics/NAME                the muxer TOPIC for the destination NAME; to receive, a subscription to it
$..., NAME/$...             reserved; the broker's own nodes, answered by the gateway before the engine is asked, and
                            what other brokers have beside a queue, which nobody would answer here
/...                        a path of ours; unknown ones are not found and never created
"""

import re
from enum import Enum
from typing import Final, NamedTuple
from urllib.parse import quote, unquote

from ambermq.engine.errors import Refused

__all__ = [
    "MUXER_MEMBER",
    "Address",
    "NodeKind",
    "member_address",
    "muxer_address",
    "parse_address",
    "queue_address",
    "queue_name",
    "topic_address",
]

MUXER_MEMBER: Final = "muxer:"
"""Before the name of an attachment's member that is a muxer, where queues are named by their addresses."""

_QUEUES: Final = "/queues/"
_MUXERS: Final = "/muxers/"
_TOPICS: Final = "/topics/"
_BROKEN_ESCAPE: Final = re.compile("%(?![0-9A-Fa-f]{2})")


class NodeKind(Enum):
    """What an address means."""

    QUEUE = "queue"
    MUXER = "muxer"
    TOPIC = "topic"


class Address(NamedTuple):
    """An address that was understood."""

    kind: NodeKind
    name: str
    """Of the queue, muxer or topic, decoded."""
    destination: str | None = None
    """Of a muxer's address, None where it names none."""


def parse_address(address: str, *, name_bytes_max: int) -> Address:
    """Return what an address means.

    Raises Refused: amqp:not-found for a path or reserved name that is not ours, amqp:invalid-field for a bad name.
    """
    if address.startswith(_QUEUES):
        name = _last_part(address, _QUEUES, "queue")
        return Address(NodeKind.QUEUE, _checked(name, address, "queue", name_bytes_max))
    if address.startswith(_TOPICS):
        name = _last_part(address, _TOPICS, "topic")
        return Address(NodeKind.TOPIC, _checked(name, address, "topic", name_bytes_max))
    if address.startswith(_MUXERS):
        name, slash, destination = address[len(_MUXERS) :].partition("/")
        name = _checked(_decoded(name, address), address, "muxer", name_bytes_max)
        return Address(NodeKind.MUXER, name, destination if slash else None)
    if address.startswith("/"):
        known = f"{_QUEUES}, {_MUXERS} or {_TOPICS}"
        raise Refused("amqp:not-found", f"no node at {address!r:.80}: paths begin with {known}")
    if _is_reserved(address):
        known = "names that begin with $ are reserved, alone and behind a slash"
        raise Refused("amqp:not-found", f"no node at {address!r:.80}: {known}")
    return Address(NodeKind.QUEUE, _checked(address, address, "queue", name_bytes_max))


def queue_name(address: str, *, name_bytes_max: int) -> str:
    """Return the queue name that an address means. Raises Refused as `parse_address`, and where it means no queue."""
    parsed = parse_address(address, name_bytes_max=name_bytes_max)
    if parsed.kind is not NodeKind.QUEUE:
        raise Refused("amqp:not-found", f"{address!r:.80} is the address of a {parsed.kind.value}, not of a queue")
    return parsed.name


def queue_address(name: str) -> str:
    """Return the address of a queue, whatever its name."""
    return _QUEUES + quote(name, safe="$")


def member_address(name: str) -> str:
    """Return the address of a queue as people write it: its name, where that means the queue and nothing else."""
    is_plain = name and name.isprintable() and not name.startswith(("/", MUXER_MEMBER)) and not _is_reserved(name)
    return name if is_plain else queue_address(name)


def muxer_address(name: str) -> str:
    """Return the address of a muxer whose messages say themselves what they are for."""
    return _MUXERS + quote(name, safe="")


def topic_address(name: str) -> str:
    """Return the address of a topic, whatever its name."""
    return _TOPICS + quote(name, safe="$*#")


def _is_reserved(name: str) -> bool:
    return name.startswith("$") or "/$" in name


def _last_part(address: str, path: str, what: str) -> str:
    rest = address[len(path) :]
    if "/" in rest:
        raise Refused("amqp:not-found", f"no node at {address!r:.80}: write a slash in a {what}'s name as %2F")
    return _decoded(rest, address)


def _decoded(rest: str, address: str) -> str:
    """Undo the percent-encoding; what is not one is refused, else two addresses would mean one queue."""
    if broken := _BROKEN_ESCAPE.search(rest):
        found = rest[broken.start() : broken.start() + 3]
        raise Refused("amqp:invalid-field", f"address {address!r:.80}: {found!r} is no percent escape: write % as %25")
    try:
        return unquote(rest, errors="strict")
    except UnicodeDecodeError as error:
        raise Refused("amqp:invalid-field", f"address {address!r:.80}: its escapes are no UTF-8") from error


def _checked(name: str, address: str, what: str, name_bytes_max: int) -> str:
    size = len(name.encode("utf-8", "surrogatepass"))
    if not 0 < size <= name_bytes_max:
        raise Refused(
            "amqp:invalid-field",
            f"address {address!r:.80}: a {what}'s name has 1 to {name_bytes_max} bytes of UTF-8, this has {size}",
        )
    if not name.isprintable():
        raise Refused("amqp:invalid-field", f"address {address!r:.80}: a {what}'s name holds printable characters only")
    return name
