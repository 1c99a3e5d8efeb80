"""The grammar of addresses (docs/addresses.md).

NAME                        the queue of that name, reached through the muxer QUEUE
/queues/NAME                the same, percent-encoded, so that any name can be written
/muxers/NAME/DESTINATION    a muxer and a destination: all text after the slash, not decoded
/muxers/NAME                a muxer; each message names its destination in `to` or `subject`
/topics/NAME                the muxer TOPIC and the destination NAME; for a receiver, a subscription to NAME
$..., NAME/$...             reserved: nodes of the broker, which the gateway answers before the engine, and nodes that
                            other brokers have for each queue, which do not exist here
/...                        other paths are not found and never created
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
"""The prefix of a member that is a muxer. Without the prefix a member is the address of a queue."""

_QUEUES: Final = "/queues/"
_MUXERS: Final = "/muxers/"
_TOPICS: Final = "/topics/"
_BROKEN_ESCAPE: Final = re.compile("%(?![0-9A-Fa-f]{2})")


class NodeKind(Enum):
    """The kinds of node that an address can name."""

    QUEUE = "queue"
    MUXER = "muxer"
    TOPIC = "topic"


class Address(NamedTuple):
    """A parsed address."""

    kind: NodeKind
    name: str
    """The decoded name of the queue, muxer or topic."""
    destination: str | None = None
    """The destination after the name of a muxer, None if there is none."""


def parse_address(address: str, *, name_bytes_max: int) -> Address:
    """Return the parsed form of an address.

    Raises Refused: amqp:not-found for an unknown path or a reserved name, amqp:invalid-field for a bad name.
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
        known = "names that begin with $ are reserved, at the start of an address and after a slash"
        raise Refused("amqp:not-found", f"no node at {address!r:.80}: {known}")
    return Address(NodeKind.QUEUE, _checked(address, address, "queue", name_bytes_max))


def queue_name(address: str, *, name_bytes_max: int) -> str:
    """Return the queue name in an address. Raises Refused as `parse_address` does, and if the node is not a queue."""
    parsed = parse_address(address, name_bytes_max=name_bytes_max)
    if parsed.kind is not NodeKind.QUEUE:
        raise Refused("amqp:not-found", f"{address!r:.80} is the address of a {parsed.kind.value}, not of a queue")
    return parsed.name


def queue_address(name: str) -> str:
    """Return the address of a queue; it is valid for any name."""
    return _QUEUES + quote(name, safe="$")


def member_address(name: str) -> str:
    """Return the short address of a queue: its name, if that names the queue and nothing else."""
    is_plain = name and name.isprintable() and not name.startswith(("/", MUXER_MEMBER)) and not _is_reserved(name)
    return name if is_plain else queue_address(name)


def muxer_address(name: str) -> str:
    """Return the address of a muxer, without a destination."""
    return _MUXERS + quote(name, safe="")


def topic_address(name: str) -> str:
    """Return the address of a topic; it is valid for any name."""
    return _TOPICS + quote(name, safe="$*#")


def _is_reserved(name: str) -> bool:
    return name.startswith("$") or "/$" in name


def _last_part(address: str, path: str, what: str) -> str:
    rest = address[len(path) :]
    if "/" in rest:
        raise Refused("amqp:not-found", f"no node at {address!r:.80}: write a slash in a {what}'s name as %2F")
    return _decoded(rest, address)


def _decoded(rest: str, address: str) -> str:
    """Return the text without percent-encoding. A bad escape is refused, else two addresses would name one queue."""
    if broken := _BROKEN_ESCAPE.search(rest):
        found = rest[broken.start() : broken.start() + 3]
        raise Refused("amqp:invalid-field", f"address {address!r:.80}: bad percent escape {found!r}; write % as %25")
    try:
        return unquote(rest, errors="strict")
    except UnicodeDecodeError as error:
        raise Refused("amqp:invalid-field", f"address {address!r:.80}: its escapes are not UTF-8") from error


def _checked(name: str, address: str, what: str, name_bytes_max: int) -> str:
    size = len(name.encode("utf-8", "surrogatepass"))
    if not 0 < size <= name_bytes_max:
        raise Refused(
            "amqp:invalid-field",
            f"address {address!r:.80}: a {what}'s name has 1 to {name_bytes_max} bytes of UTF-8, this has {size}",
        )
    if not name.isprintable():
        raise Refused("amqp:invalid-field", f"address {address!r:.80}: a {what}'s name has only printable characters")
    return name
