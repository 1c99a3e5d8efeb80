"""Sessions and links of one connection, as an observer between client and broker counts them.

Rule 1. Numbers are serial numbers of 32 bits. A difference of two of them is taken by `distance`.
Rule 2. A delivery is forgotten when either end settles it, so the memory is that of the unsettled deliveries.
"""

from dataclasses import dataclass, field

from ambermq.protocol.amqp10.serial_number import MASK, distance

__all__ = ["Delivery", "LinkModel", "SessionModel"]


@dataclass(slots=True, eq=False)
class LinkModel:
    """A link, from the client's attach to the ends of both."""

    name: str
    is_client_sender: bool
    address: str
    broker_handle: int | None = None
    initial_count: int = 0
    """The delivery-count at which the sender began."""
    credit_limit: int | None = None
    """The delivery-count that the sender may reach; None before the first flow."""
    delivery_count: int = 0
    """Deliveries that were begun."""
    is_unfinished: bool = False
    """Whether the client has begun a delivery and not ended it."""
    partial: bytearray | None = None
    """The payload of the broker's unfinished delivery."""
    partial_id: int = 0
    is_flow_seen: bool = False
    is_client_detached: bool = False
    has_returns: bool = False
    """Whether the client gave deliveries back: it is chance where they come again."""

    @property
    def key(self) -> tuple[str, bool]:
        """The identity of the link in its session."""
        return self.name, self.is_client_sender

    @property
    def has_credit(self) -> bool:
        """Whether the client may begin a delivery."""
        if self.credit_limit is None:
            return False
        return distance(self.initial_count + self.delivery_count & MASK, self.credit_limit) > 0


@dataclass(frozen=True, slots=True)
class Delivery:
    """An unsettled delivery."""

    link: LinkModel
    ordinal: int
    """Its number on the link, from 1."""
    tag: bytes | None


@dataclass(slots=True, eq=False)
class SessionModel:
    """A session that the client began."""

    channel: int
    """The client's channel."""
    next_outgoing_id: int
    """The id of the client's next transfer frame."""
    window: int = 0
    """How many transfer frames the broker accepts."""
    broker_first_id: int = 0
    """The id of the broker's first transfer frame."""
    sent_frames: int = 0
    by_client_handle: dict[int, LinkModel] = field(default_factory=dict)
    by_broker_handle: dict[int, LinkModel] = field(default_factory=dict)
    links: dict[tuple[str, bool], LinkModel] = field(default_factory=dict)
    sent: dict[int, LinkModel] = field(default_factory=dict)
    """The client's unsettled deliveries by their id."""
    received: dict[int, Delivery] = field(default_factory=dict)
    """The broker's unsettled deliveries by their id."""
    is_client_ended: bool = False

    def ids_between(self, first: int, last: int, *, is_sent: bool) -> list[int]:
        """Return the ids of unsettled deliveries in a range of a disposition, in order."""
        held = self.sent if is_sent else self.received
        size = (last - first) & MASK
        if size < len(held):
            found = [(first + step) & MASK for step in range(size + 1)]
            return [one for one in found if one in held]
        return sorted((one for one in held if (one - first) & MASK <= size), key=lambda one: (one - first) & MASK)

    def received_ids(self) -> dict[tuple[tuple[str, bool], int], int]:
        """Return the ids of the broker's unsettled deliveries by their link and their number on it."""
        return {(delivery.link.key, delivery.ordinal): number for number, delivery in self.received.items()}
