"""Commands of links: producers and consumers attach, detach and end."""

from collections.abc import Callable
from typing import Any, final

from msgspec import Struct

from ambermq.engine.commands.signed_command import SignedCommand
from ambermq.engine.effects import Effect
from ambermq.engine.model.lifetime import Dynamic
from ambermq.engine.model.publish_options import Unroutable
from ambermq.engine.model.subscription import Subscription, SubscriptionRequest

__all__ = ["AttachConsumer", "AttachProducer", "DetachConsumer", "DetachProducer", "EndLinks"]


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


@final
class DetachProducer(SignedCommand):
    """Detach a producer."""

    producer: int
    keeps_node: bool = False
    """True: the node that it created does not count as closed yet; EndNodes ends it later."""


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
