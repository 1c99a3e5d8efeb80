"""Events of links: producers and consumers attach and detach."""

from typing import Final, final

from msgspec import Struct, json

from ambermq.engine.events.event_type import EventType, Facts, IndexKeys, Layout, LinkColumn, SizeBound, field_facts
from ambermq.engine.events.json_meta import encode_json
from ambermq.engine.events.line_template import Choice
from ambermq.engine.events.user_meta import UserMeta, by_meta
from ambermq.engine.model.publish_options import DEFAULT_PUBLISH_OPTIONS, PublishOptions
from ambermq.engine.model.suspended_link import KEEPS_NOTHING, Keeping

__all__ = ["ConsumerAttached", "ConsumerDetached", "ProducerAttached", "ProducerDetached"]


@final
class ProducerAttached(Struct):
    """A producer attached; its id is the offset of the event."""

    offset: int
    time_us: int
    muxer: int
    """The muxer that it sends to; 0 if each message names its address."""
    destination: str
    """The destination of its messages; empty if each message names its own."""
    container: str
    link: str
    sending: PublishOptions = DEFAULT_PUBLISH_OPTIONS
    node: int = 0
    """The queue or muxer that it sends to, if that one has a lifetime; else 0."""
    owns: int = 0
    """The queue or muxer that was created for it; 0 for none."""
    user: str = ""
    """The user of its connection; empty if none is known."""
    keeping: Keeping = KEEPS_NOTHING
    """How it keeps the delivery-tags that its peer has not settled."""


class _ProducerMeta(Struct, omit_defaults=True):
    sending: PublishOptions | None = None
    destination: str = ""
    container: str = ""
    link: str = ""
    node: int = 0
    owns: int = 0
    user: str = ""
    keeping: Keeping | None = None


_decode_producer: Final = json.Decoder(_ProducerMeta).decode


def _producer_meta(event: ProducerAttached) -> bytes:
    sending = None if event.sending == DEFAULT_PUBLISH_OPTIONS else event.sending
    names = (event.destination, event.container, event.link, event.node, event.owns, event.user)
    return encode_json(_ProducerMeta(sending, *names, _named(event.keeping)))


def _read_producer(offset: int, time_us: int, row: tuple[int, ...], meta: bytes) -> ProducerAttached:
    keys = _decode_producer(meta)
    names = (keys.destination, keys.container, keys.link, keys.sending or DEFAULT_PUBLISH_OPTIONS)
    kept = keys.keeping or KEEPS_NOTHING
    return ProducerAttached(offset, time_us, row[5], *names, keys.node, keys.owns, keys.user, kept)


def _named(keeping: Keeping) -> Keeping | None:
    """Return how a link keeps what is unsettled, None for nothing."""
    return None if keeping == KEEPS_NOTHING else keeping


def _keeping_facts(keeping: Keeping) -> Facts:
    if keeping == KEEPS_NOTHING:
        return {}
    return {"durability": keeping.durability, "timeout_ms": keeping.timeout_ms}


def _producer_facts(event: ProducerAttached) -> Facts:
    facts: Facts = {"producer": event.offset, "muxer": event.muxer, "destination": event.destination}
    facts |= {"container": event.container, "link": event.link}
    facts |= {"user": event.user} if event.user else {}
    facts |= _keeping_facts(event.keeping)
    return facts | ({"owns": event.owns} if event.owns else {})


@final
class ProducerDetached(Struct):
    """A producer detached."""

    offset: int
    time_us: int
    producer: int
    by: str = ""
    """The user that caused it; empty if none is known."""


@final
class ConsumerAttached(Struct):
    """A consumer attached; its id is the offset of the event."""

    offset: int
    time_us: int
    queue: int
    container: str
    link: str
    selector: str = ""
    """The selector for the messages that it receives; empty for all."""
    owns: int = 0
    """The queue or muxer that was created for it; 0 for none."""
    user: str = ""
    """The user of its connection; empty if none is known."""
    is_exclusive: bool = False
    """Whether its queue takes no other consumer while it is there."""
    keeping: Keeping = KEEPS_NOTHING
    """How it keeps its unsettled deliveries."""


class _ConsumerMeta(Struct, omit_defaults=True):
    container: str = ""
    link: str = ""
    selector: str = ""
    owns: int = 0
    user: str = ""
    exclusive: bool = False
    keeping: Keeping | None = None


_decode_consumer: Final = json.Decoder(_ConsumerMeta).decode


def _consumer_meta(event: ConsumerAttached) -> bytes:
    names = (event.container, event.link, event.selector, event.owns, event.user)
    return encode_json(_ConsumerMeta(*names, event.is_exclusive, _named(event.keeping)))


def _read_consumer(offset: int, time_us: int, row: tuple[int, ...], meta: bytes) -> ConsumerAttached:
    keys = _decode_consumer(meta)
    names = (keys.container, keys.link, keys.selector, keys.owns, keys.user, keys.exclusive)
    return ConsumerAttached(offset, time_us, row[4], *names, keys.keeping or KEEPS_NOTHING)


def _consumer_facts(event: ConsumerAttached) -> Facts:
    facts: Facts = {"consumer": event.offset, "container": event.container, "link": event.link}
    facts |= {"selector": event.selector} if event.selector else {}
    facts |= {"exclusive": True} if event.is_exclusive else {}
    facts |= {"user": event.user} if event.user else {}
    facts |= _keeping_facts(event.keeping)
    return facts | ({"owns": event.owns} if event.owns else {})


@final
class ConsumerDetached(Struct):
    """A consumer detached; its acquired messages are available again with one more failed delivery."""

    offset: int
    time_us: int
    consumer: int
    by: str = ""
    """The user that caused it; empty if none is known."""


_USER: Final = Choice("user", ", user {user!r}")

LinkEvent = ProducerAttached | ProducerDetached | ConsumerAttached | ConsumerDetached

TYPES: Final = (
    EventType(
        event=ProducerAttached,
        number=7,
        name="producer-attached",
        layout=Layout(ref="muxer", meta="JSON `{destination, container, link, sending, node, owns, user, keeping}`"),
        meta=_producer_meta,
        json=_ProducerMeta,
        read=_read_producer,
        bound=SizeBound.NAMES,
        link=LinkColumn.OFFSET,
        facts=_producer_facts,
        facts_text=(
            "`producer` `muxer` `destination` `container` `link`; "
            "`owns`, the id of a queue or muxer that was created for the link; `user` if it is known; "
            "`durability` `timeout_ms` if it keeps what is unsettled"
        ),
        line=("{container}/{link} sends to {destination!r}", _USER),
    ),
    EventType(
        event=ProducerDetached,
        number=8,
        name="producer-detached",
        layout=Layout(ref="producer", meta="JSON `{by}`, or empty"),
        meta=by_meta,
        json=UserMeta,
        bound=SizeBound.NAMES,
        link=LinkColumn.REF,
        facts=field_facts("producer"),
        facts_text="`producer`; `by`, the user that ended the link for its client",
        line=("producer {producer:link} detached",),
    ),
    EventType(
        event=ConsumerAttached,
        number=9,
        name="consumer-attached",
        layout=Layout(queue="queue", meta="JSON `{container, link, selector, owns, user, exclusive, keeping}`"),
        meta=_consumer_meta,
        json=_ConsumerMeta,
        read=_read_consumer,
        bound=SizeBound.NAMES,
        link=LinkColumn.OFFSET,
        queue="queue",
        facts=_consumer_facts,
        facts_text=(
            "`queue` `queue_id` `consumer` `container` `link`; `selector` if it has one; `exclusive` if it is alone; "
            "`owns`, the id of a queue or muxer that was created for the link; `user` if it is known; "
            "`durability` `timeout_ms` if it keeps what is unsettled"
        ),
        line=("{container}/{link} receives from {queue_id:queue}", Choice("selector", " where {selector}"), _USER),
    ),
    EventType(
        event=ConsumerDetached,
        number=10,
        name="consumer-detached",
        layout=Layout(ref="consumer", meta="JSON `{by}`, or empty"),
        meta=by_meta,
        json=UserMeta,
        keys=IndexKeys.NODE,
        bound=SizeBound.NAMES,
        link=LinkColumn.REF,
        facts=field_facts("consumer"),
        facts_text="`consumer`; `by`, the user that ended the link for its client",
        line=("consumer {consumer:link} detached",),
    ),
)
