"""Subscriptions: the request of a receiver to a topic. One queue holds the messages of each subscription.

Rule 1. A subscription is found by its key. The key is a tuple, so no two names can collide.
Rule 2. A volatile subscription that is not shared belongs to one link. It is never looked up, so it has no key.
Rule 3. A subscription never changes. A request with another topic, selector or no-local makes another one.
"""

from typing import final

from msgspec import Struct

__all__ = ["DEFAULT_SUBSCRIPTION_REQUEST", "Key", "Subscription", "SubscriptionRequest"]

Key = tuple[str | None, str, bool, bool]
"""Container (None: global), name, shared, volatile."""


@final
class SubscriptionRequest(Struct, frozen=True):
    """How a receiver subscribes if its address names a topic."""

    name: str = ""
    """The name of the subscription; empty: the name of the link."""
    is_durable: bool = False
    is_shared: bool = False
    is_global: bool = False
    """True: any container finds it by its name. False: only the same container does."""
    is_no_local: bool = False
    """It gets no messages of its own container."""


DEFAULT_SUBSCRIPTION_REQUEST = SubscriptionRequest()


@final
class Subscription(Struct, frozen=True, omit_defaults=True):
    """One subscription. A later field is added with a default, so old records stay readable."""

    topic: str
    """A pattern, words between dots; or the name of a temporary topic."""
    name: str
    container: str | None = None
    """The container that subscribed; None for a global subscription."""
    is_shared: bool = False
    is_volatile: bool = False
    """It ends with its last link."""
    selector: str = ""
    is_no_local: bool = False
    owner: str = ""
    """The user that made it, the only one that receives from it; empty: the first user that attaches gets it."""

    @property
    def key(self) -> Key | None:
        """The key that finds it; None if it belongs to one link."""
        if self.is_volatile and not self.is_shared:
            return None
        return self.container, self.name, self.is_shared, self.is_volatile
