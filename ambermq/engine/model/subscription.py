"""Subscriptions: what a receiver asks of a topic, kept by the queue that holds its messages.

Rule 1. A subscription is found by its key, a tuple: never by texts that were joined.
Rule 2. What is volatile and not shared belongs to one link alone: nobody looks for it, so it has no key.
Rule 3. A subscription never changes: what asks for another topic, selector or no-local gets another one.
"""

from typing import final

from msgspec import Struct

__all__ = ["DEFAULT_SUBSCRIPTION_REQUEST", "Key", "Subscription", "SubscriptionRequest"]

Key = tuple[str | None, str, bool, bool]
"""Container (None: global), name, shared, volatile."""


@final
class SubscriptionRequest(Struct, frozen=True):
    """How a peer wants to subscribe, where its address turns out to be that of a topic."""

    name: str = ""
    """Of the subscription; empty for the link's."""
    is_durable: bool = False
    is_shared: bool = False
    is_global: bool = False
    """Whoever says its name has it; else only who has the same container id."""
    is_no_local: bool = False
    """What its own container sends does not come."""


DEFAULT_SUBSCRIPTION_REQUEST = SubscriptionRequest()


@final
class Subscription(Struct, frozen=True, omit_defaults=True):
    """One subscription. A later field is added with a default, so old records stay readable."""

    topic: str
    """A pattern, words between dots; or the name of a temporary topic."""
    name: str
    container: str | None = None
    """Who subscribed; None for a global one."""
    is_shared: bool = False
    is_volatile: bool = False
    """It ends with its last link."""
    selector: str = ""
    is_no_local: bool = False

    @property
    def key(self) -> Key | None:
        """What it is found by; None where it belongs to its link."""
        if self.is_volatile and not self.is_shared:
            return None
        return self.container, self.name, self.is_shared, self.is_volatile
