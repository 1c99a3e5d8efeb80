"""Commands on queues and on the subscriptions that have them."""

from collections.abc import Callable, Mapping
from typing import Any, final

from ambermq.engine.commands.signed_command import SignedCommand
from ambermq.engine.model.state import State
from ambermq.engine.model.subscription import Subscription
from ambermq.engine.settings.queue_settings import Settings

__all__ = ["DeclareQueue", "DeleteQueue", "DeleteSubscription", "PurgeQueue", "UpdateQueue"]


@final
class DeclareQueue(SignedCommand):
    """Declare a queue. The same declaration again changes nothing; with other settings it is refused."""

    key: Any
    name: str
    settings: Settings


@final
class UpdateQueue(SignedCommand):
    """Change settings of a queue, named as in the table of settings. A setting that is missing or None stays.

    The answer leaves when the change is durable. It is the map that `read` returns for the state after the change, with
    `updated`: whether anything changed.
    """

    key: Any
    name: str
    read: Callable[[State], Any]
    changes: Mapping[str, object] = {}
    template: str | None = None
    """The template of the queue; another one is refused."""


@final
class DeleteQueue(SignedCommand):
    """Delete a queue."""

    key: Any
    name: str
    if_unused: bool = False
    if_empty: bool = False


@final
class PurgeQueue(SignedCommand):
    """Remove all waiting messages of a queue."""

    key: Any
    name: str
    scheduled: bool = False
    """Whether those that are scheduled for later are removed too."""


@final
class DeleteSubscription(SignedCommand):
    """Delete a subscription, by its name or by the name of its queue."""

    key: Any
    name: str
    container: str | None = None
    """The container of the subscription; None: not given."""
    force: bool = False
    """True: its receivers are ended. False: a subscription with receivers is refused."""
    authorize: Callable[[Subscription], None] | None = None
    """Raises Refused if the request may not delete the subscription that it names."""
