"""Commands of links: producers and consumers attach, detach and end."""

from collections.abc import Callable, Collection, Mapping
from enum import Enum
from typing import Any, final

from msgspec import Struct

from ambermq.engine.commands.signed_command import SignedCommand
from ambermq.engine.effects import Effect
from ambermq.engine.entries.outcome import Outcome
from ambermq.engine.model.lifetime import Dynamic
from ambermq.engine.model.publish_options import Unroutable
from ambermq.engine.model.subscription import Subscription, SubscriptionRequest
from ambermq.engine.model.suspended_link import KEEPS_NOTHING, Keeping

__all__ = [
    "AttachConsumer",
    "AttachProducer",
    "DetachConsumer",
    "DetachProducer",
    "EndLinks",
    "EndSuspended",
    "ExpireLinks",
    "ResendHeld",
    "SettleTags",
    "Suspension",
]


class Suspension(Enum):
    """What becomes of what a detached link left unsettled."""

    NONE = 0
    """It returns to its queue."""
    OPEN = 1
    """It is kept while the session or connection lasts that its expiry policy names."""
    OVER = 2
    """That has ended: it is kept for the timeout of the link."""


@final
class AttachProducer(SignedCommand):
    """Attach a producer to an address; if `address` is empty, each message names its own."""

    key: Any
    address: str
    container: str
    link: str
    unroutable: Unroutable = Unroutable.RELEASE
    is_immediate: bool = False
    dynamic: Dynamic | None = None
    """It sends to a new dynamic node; `address` is not used."""
    may_create: bool = True
    """Whether it may create the queue at its address."""
    must_exist: bool = False
    """Whether it wants only what exists: what it would create is refused with amqp:not-found."""
    keeping: Keeping = KEEPS_NOTHING
    """How it keeps the delivery-tags that its peer has not settled."""
    resumes: Collection[bytes] | None = None
    """The unsettled delivery-tags of its peer, if that resumes a link; None if it does not."""
    is_incomplete: bool = False
    """Whether the peer has more of them."""


@final
class DetachProducer(SignedCommand):
    """Detach a producer."""

    producer: int
    keeps_node: bool = False
    """True: the node that it created does not count as closed yet; EndNodes ends it later."""
    suspension: Suspension = Suspension.NONE


@final
class AttachConsumer(SignedCommand):
    """Attach a consumer to an address."""

    key: Any
    address: str
    container: str
    link: str
    settled: bool = False
    """Deliveries are sent settled: they count as accepted when they are acquired."""
    selector: str = ""
    """The text of its selector, empty for none."""
    subscription_request: SubscriptionRequest = SubscriptionRequest()
    """How it subscribes if the address names a topic."""
    dynamic: Dynamic | None = None
    """It receives from a new dynamic node; `address` is not used."""
    is_recalled: bool = False
    """It attaches without a source to the durable subscription of its name; `address` is not used."""
    may_create: bool = True
    """Whether it may create the queue at its address, or a durable subscription."""
    user: str = ""
    """The owner of a subscription that it makes, empty for none."""
    authorize: Callable[[Subscription], None] | None = None
    """Raises Refused if it may not attach to a subscription that exists."""
    must_exist: bool = False
    """Whether it wants only what exists: a queue or a durable subscription that it would create is refused."""
    is_exclusive: bool = False
    """Whether it wants to be the only consumer of its queue."""
    priority: int = 0
    """Its priority among the consumers of its queue: the highest with credit are served first."""
    rate: float = 0.0
    """The most messages a second that it gets; 0: no limit."""
    keeping: Keeping = KEEPS_NOTHING
    """How it keeps its unsettled deliveries."""
    resumes: Mapping[int, Outcome | None] | None = None
    """The keys of what its peer has not settled, each with its outcome, if that resumes a link; None if it does not."""
    may_cut_through: bool = True
    """Whether a delivery may begin while its message arrives; not if deliveries name the place of their message."""


@final
class DetachConsumer(SignedCommand):
    """Detach a consumer. `unsent` are acquired words that were never sent: they return without a failed delivery."""

    consumer: int
    unsent: bytes = b""
    is_closed: bool = False
    """True: a durable subscription ends with it. False: the link may come back."""
    keeps_node: bool = False
    """True: the node that it created does not count as closed yet; EndNodes ends it later."""
    is_uncounted: bool = False
    """True: everything that it holds returns without a failed delivery: the broker ends the link."""
    suspension: Suspension = Suspension.NONE


@final
class ResendHeld(Struct):
    """Deliver messages again that a consumer holds since the link was suspended."""

    consumer: int
    link: Any
    words: tuple[int, ...]


@final
class SettleTags(Struct):
    """Forget delivery-tags that a sender has settled."""

    producer: int
    tags: tuple[bytes, ...]


@final
class ExpireLinks(Struct):
    """Begin the timeouts of suspended links: the session or connection has ended that their expiry policies name."""

    links: tuple[int, ...]


@final
class EndSuspended(Struct):
    """End a suspended link whose time has come. What it holds returns, each with one more failed delivery."""

    link: int
    is_forced: bool = False
    """Whether it ends before its time."""


@final
class EndLinks(Struct):
    """Send the ends of links that are not in the state any more: the rest of a command that ended many.

    Only the engine creates it (engine/decide/end_nodes.py).
    """

    consumers: tuple[int, ...]
    producers: tuple[int, ...]
    why: tuple[str, str]
    """The condition and the description of the error."""
    then: tuple[Effect, ...]
    """The effects that leave after the others."""
