"""Events of queues: declared, updated, deleted, subscribed to a topic."""

from typing import Final, final

from msgspec import Struct, json

from ambermq.engine.errors import EngineError
from ambermq.engine.events.event_type import EventType, Facts, IndexKeys, Layout, SizeBound
from ambermq.engine.events.json_meta import encode_json
from ambermq.engine.events.line_template import LIFETIME, Choice
from ambermq.engine.events.user_meta import UserMeta, by_meta
from ambermq.engine.model.lifetime import Lifetime
from ambermq.engine.model.subscription import Subscription
from ambermq.engine.settings.queue_settings import Settings
from ambermq.engine.settings.setting_table import SETTINGS, settings_text, values_of_settings

__all__ = ["QueueConfigured", "QueueDeclared", "QueueDeleted", "QueueUpdated", "Subscribed"]


@final
class QueueDeclared(Struct):
    """A queue was declared; its id is the offset of the event."""

    offset: int
    time_us: int
    name: str
    settings: Settings
    lifetime: Lifetime = Lifetime.PERMANENT
    by: str = ""
    """The user that caused it; empty if none is known."""


class _QueueMeta(Struct, omit_defaults=True):
    name: str = ""
    settings: Settings | None = None
    by: str = ""


_decode_queue: Final = json.Decoder(_QueueMeta).decode


def _read_declared(offset: int, time_us: int, row: tuple[int, ...], meta: bytes) -> QueueDeclared:
    queue = _decode_queue(meta)
    return QueueDeclared(offset, time_us, queue.name, queue.settings or Settings(), Lifetime(row[8]), queue.by)


def _declared_facts(event: QueueDeclared) -> Facts:
    facts: Facts = {"messages_max": event.settings.messages_max}
    return facts | ({"lifetime": event.lifetime.name.lower()} if event.lifetime else {})


@final
class QueueUpdated(Struct):
    """A queue got other settings; its messages stay."""

    offset: int
    time_us: int
    queue: int
    settings: Settings
    """All settings, changed or not."""
    by: str = ""
    """The user that caused it; empty if none is known."""


def _read_updated(offset: int, time_us: int, row: tuple[int, ...], meta: bytes) -> QueueUpdated:
    queue = _decode_queue(meta)
    return QueueUpdated(offset, time_us, row[4], queue.settings or Settings(), queue.by)


@final
class QueueConfigured(Struct):
    """A queue got settings that the first release does not know; its messages stay."""

    offset: int
    time_us: int
    queue: int
    settings: Settings
    """All settings, changed or not."""
    by: str = ""
    """The user that caused it; empty if none is known."""


def _read_configured(offset: int, time_us: int, row: tuple[int, ...], meta: bytes) -> QueueConfigured:
    queue = _decode_queue(meta)
    return QueueConfigured(offset, time_us, row[4], queue.settings or Settings(), queue.by)


@final
class QueueDeleted(Struct):
    """A queue was deleted with its messages, its attachments, the links to it, and its subscription."""

    offset: int
    time_us: int
    queue: int
    by: str = ""
    """The user that caused it; empty if none is known."""


@final
class Subscribed(Struct):
    """A queue became the queue of a subscription; the subscription ends with the queue."""

    offset: int
    time_us: int
    queue: int
    subscription: Subscription


class _SubscriptionMeta(Struct, omit_defaults=True):
    subscription: Subscription | None = None


_decode_subscription: Final = json.Decoder(_SubscriptionMeta).decode


def _read_subscribed(offset: int, time_us: int, row: tuple[int, ...], meta: bytes) -> Subscribed:
    subscription = _decode_subscription(meta).subscription
    if subscription is None:
        raise EngineError(f"record {offset} of type {row[9]} names no subscription")
    return Subscribed(offset, time_us, row[4], subscription)


def _subscribed_facts(event: Subscribed) -> Facts:
    one = event.subscription
    facts: Facts = {"topic": one.topic, "subscription": one.name}
    facts |= {"shared": one.is_shared, "durable": not one.is_volatile}
    facts |= {"container": one.container} if one.container is not None else {}
    facts |= {"selector": one.selector} if one.selector else {}
    facts |= {"owner": one.owner} if one.owner else {}
    return facts | {"no_local": one.is_no_local}


QueueEvent = QueueDeclared | QueueUpdated | QueueConfigured | QueueDeleted | Subscribed

TYPES: Final = (
    EventType(
        event=QueueDeclared,
        number=2,
        name="queue-declared",
        layout=Layout(aux="lifetime", meta="JSON `{name, settings, by}`"),
        meta=lambda event: encode_json(_QueueMeta(event.name, event.settings, event.by)),
        json=_QueueMeta,
        read=_read_declared,
        bound=SizeBound.NAMES,
        queue="offset",
        facts=_declared_facts,
        facts_text=(
            "`queue` `queue_id` `messages_max`; `lifetime` if the queue ends by itself; `by`, the user, if it is known"
        ),
        line=(
            "queue {queue!r} declared",
            Choice("messages_max", ", at most {messages_max:,} messages", {0: ""}),
            LIFETIME,
        ),
    ),
    EventType(
        event=QueueUpdated,
        number=23,
        name="queue-updated",
        layout=Layout(queue="queue", meta="JSON `{settings, by}`"),
        meta=lambda event: encode_json(_QueueMeta(settings=event.settings, by=event.by)),
        json=_QueueMeta,
        read=_read_updated,
        bound=SizeBound.NAMES,
        queue="queue",
        facts=lambda event: {"messages_max": event.settings.messages_max},
        facts_text="`queue` `queue_id` `messages_max`; `by`, the user, if it is known",
        line=(
            "queue {queue_id:queue} updated, ",
            Choice("messages_max", "at most {messages_max:,} messages", {0: "no maximum length of its own"}),
        ),
    ),
    EventType(
        event=QueueConfigured,
        number=26,
        name="queue-configured",
        since="0.2.0",
        listed_after=23,
        layout=Layout(queue="queue", meta="JSON `{settings, by}`"),
        meta=lambda event: encode_json(_QueueMeta(settings=event.settings, by=event.by)),
        json=_QueueMeta,
        read=_read_configured,
        bound=SizeBound.NAMES,
        queue="queue",
        facts=lambda event: values_of_settings(event.settings),
        facts_text=f"`queue` `queue_id` {' '.join(f'`{name}`' for name in SETTINGS)}; `by`, the user, if it is known",
        line=("queue {queue_id:queue} configured: {settings}",),
        line_facts=lambda event: {"settings": settings_text(event.settings)},
    ),
    EventType(
        event=QueueDeleted,
        number=3,
        name="queue-deleted",
        layout=Layout(queue="queue", meta="JSON `{by}`, or empty"),
        meta=by_meta,
        json=UserMeta,
        keys=IndexKeys.NODE,
        bound=SizeBound.NAMES,
        queue="queue",
        facts_text="`queue` `queue_id`; `by`, the user, if it is known",
        line=("queue {queue_id:queue} deleted",),
    ),
    EventType(
        event=Subscribed,
        number=22,
        name="subscribed",
        layout=Layout(queue="queue", meta="JSON `{subscription}`"),
        meta=lambda event: encode_json(_SubscriptionMeta(event.subscription)),
        json=_SubscriptionMeta,
        read=_read_subscribed,
        bound=SizeBound.NAMES,
        queue="queue",
        facts=_subscribed_facts,
        facts_text=(
            "`queue` `queue_id` `topic` `subscription` `shared` `durable` `no_local`; "
            "`container` `selector` `owner` if there are any"
        ),
        line=(
            "{queue_id:queue} subscribes ",
            Choice("container", "{container}/"),
            "{subscription} to topic {topic!r}",
            Choice("selector", " where {selector}"),
            Choice("durable", texts={True: " (durable", False: " (volatile"}),
            Choice("shared", texts={True: ", shared"}),
            ")",
            Choice("no_local", texts={True: ", without its own messages"}),
        ),
    ),
)
