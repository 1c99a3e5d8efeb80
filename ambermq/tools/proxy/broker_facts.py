"""What a broker told, without what differs from broker to broker by nature: the units that a replay compares.

Rule 1. A key names an object by what the client chose: its channel, the link's name, its own delivery-id.
Rule 2. Numbers that the broker chooses, times, versions and descriptions of errors are no part of a value.
"""

from collections import Counter
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any, Final, NamedTuple

import msgspec

from ambermq.protocol.amqp10.performatives.classes import (
    Attach,
    DeliveryState,
    Error,
    Modified,
    Rejected,
    Source,
    Target,
)
from ambermq.tools.messages.message_preview import one_line
from ambermq.tools.messages.message_text import presented

__all__ = ["DynamicAddresses", "Fact", "attach_value", "error_value", "message_value", "state_value"]

_SHOWN_MAX: Final = 160
_VOLATILE: Final = ("ttl_ms", "delivery_annotations")


class Fact(NamedTuple):
    """One thing that a broker told."""

    key: tuple[object, ...]
    """The kind first, then what it is about. Facts of one key have an order, facts of two keys have none."""
    value: object
    """What is compared."""
    shown: str
    """The fact as text."""
    ordinal: int = 0
    """The number of a message on its link."""
    has_order: bool = True
    """Whether the fact must be the next one of its key: messages that were returned come back at any place."""

    @property
    def kind(self) -> str:
        """The kind of the fact."""
        return str(self.key[0])


class DynamicAddresses:
    """The addresses of all dynamic nodes of one broker: any connection may use them."""

    def __init__(self) -> None:
        self.by_name: dict[tuple[int, str, int], str] = {}
        """Addresses by what does not differ from broker to broker: connection, link, and how often it had a node."""
        self.names: dict[str, str] = {}
        """Names for the addresses."""
        self._counts: Counter[tuple[int, str]] = Counter()

    def add(self, connection: int, link: str, address: str) -> None:
        """Add the node of a link."""
        if address in self.names:
            return
        self._counts[connection, link] += 1
        count = self._counts[connection, link]
        self.by_name[connection, link, count] = address
        self.names[address] = f"the dynamic node {count} of link {link} of connection {connection}"


def error_value(error: Error | None) -> str:
    """Return the condition of an error, empty without one."""
    return "" if error is None else str(error.condition)


def state_value(state: DeliveryState | None) -> str:
    """Return a delivery state as text."""
    match state:
        case None:
            return "no state"
        case Rejected(error=error):
            return f"rejected {error_value(error)}".strip()
        case Modified(delivery_failed=failed, undeliverable_here=undeliverable):
            words = [*(["delivery-failed"] if failed else []), *(["undeliverable-here"] if undeliverable else [])]
            return " ".join(["modified", *words])
        case _:
            return state.TYPE


def attach_value(attach: Attach, addresses: Mapping[str, str]) -> dict[str, object]:
    """Return what counts of a broker's attach; `addresses` gives dynamic addresses their names."""
    source, target = attach.source, attach.target
    value: dict[str, object] = {
        "snd-settle-mode": attach.snd_settle_mode,
        "rcv-settle-mode": attach.rcv_settle_mode,
        "source": None if source is None else _address(source.address, addresses),
        "target": None if not isinstance(target, Target) else _address(target.address, addresses),
        "offered-capabilities": sorted(str(one) for one in attach.offered_capabilities),
    }
    if isinstance(source, Source):
        value |= {"expiry-policy": str(source.expiry_policy), "distribution-mode": source.distribution_mode}
        value["filters"] = sorted(str(name) for name in source.filter or {})
    return value


def message_value(payload: bytes, addresses: Mapping[str, str]) -> tuple[object, str]:
    """Return the digest of a message and its text.

    Of an answer of a management node only the status is compared: the rest has times and counters.
    """
    message = presented(payload)
    properties = message.get("properties")
    if isinstance(properties, dict) and "statusCode" in properties:
        status = str(properties["statusCode"])
        return f"status {status}", f"an answer with status {one_line(status)}"
    shown = one_line(msgspec.json.encode(message).decode(), _SHOWN_MAX)
    for name in _VOLATILE:
        message.pop(name, None)
    for name in ("to", "reply_to"):
        if name in message:
            message[name] = _address(message[name], addresses)
    annotations = message.get("annotations")
    if isinstance(annotations, dict):
        message["annotations"] = {name: value for name, value in annotations.items() if not _is_time(value)}
    return blake2b(msgspec.json.encode(message, order="sorted"), digest_size=16).digest(), shown


def _is_time(value: Any) -> bool:
    return isinstance(value, dict) and value.get("type") == "timestamp"


def _address(address: Any, addresses: Mapping[str, str]) -> Any:
    return addresses.get(address, address) if isinstance(address, str) else address
