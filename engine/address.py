"""Addresses, in one grammar (docs/addresses.md).

NAME            the queue of that name, by way of the muxer QUEUE
/queues/NAME    the same, percent-encoded, so that any name can be written
$...            reserved; the broker's own nodes, answered by the gateway before the engine is asked
/...            a path of ours; unknown ones are not found and never created
"""

import re
from urllib.parse import unquote

from engine.errors import Refused

__all__ = ["queue_name"]

_QUEUES = "/queues/"
_BROKEN_ESCAPE = re.compile("%(?![0-9A-Fa-f]{2})")


def queue_name(address: str, *, name_bytes_max: int) -> str:
    """Return the queue name that an address means.

    Raises Refused: amqp:not-found for a path or reserved name that is not ours, amqp:invalid-field for a bad name.
    """
    name = address
    if address.startswith(_QUEUES):
        rest = address[len(_QUEUES) :]
        if "/" in rest:
            raise Refused("amqp:not-found", f"no node at {address!r}: write a slash in a queue's name as %2F")
        name = _decoded(rest, address)
    elif address.startswith("/"):
        raise Refused("amqp:not-found", f"no node at {address!r}: paths begin with {_QUEUES}")
    elif address.startswith("$"):
        raise Refused("amqp:not-found", f"no node at {address!r}: names that begin with $ are reserved")
    return _checked(name, address, name_bytes_max)


def _decoded(rest: str, address: str) -> str:
    """Undo the percent-encoding; what is not one is refused, else two addresses would mean one queue."""
    if broken := _BROKEN_ESCAPE.search(rest):
        found = rest[broken.start() : broken.start() + 3]
        raise Refused("amqp:invalid-field", f"address {address!r:.80}: {found!r} is no percent escape: write % as %25")
    try:
        return unquote(rest, errors="strict")
    except UnicodeDecodeError as error:
        raise Refused("amqp:invalid-field", f"address {address!r:.80}: its escapes are no UTF-8") from error


def _checked(name: str, address: str, name_bytes_max: int) -> str:
    size = len(name.encode("utf-8", "surrogatepass"))
    if not 0 < size <= name_bytes_max:
        raise Refused(
            "amqp:invalid-field",
            f"address {address!r:.80}: a queue's name has 1 to {name_bytes_max} bytes of UTF-8, this has {size}",
        )
    if not name.isprintable():
        raise Refused("amqp:invalid-field", f"address {address!r:.80}: a queue's name holds printable characters only")
    return name
