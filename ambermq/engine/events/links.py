"""Events of links: producers and consumers attach and detach, and links are suspended, resumed and ended.

The delivery-tags of senders in receiver-settle-mode second are kept and forgotten by the event TagsKept.
"""

from typing import Final, final

from msgspec import Struct, json

from ambermq.engine.entries.entry_word import pack_words
from ambermq.engine.events.event_type import EventType, Facts, IndexKeys, Layout, LinkColumn, SizeBound, field_facts
from ambermq.engine.events.json_meta import encode_json
from ambermq.engine.events.line_template import Choice
from ambermq.engine.events.user_meta import UserMeta, by_meta
from ambermq.engine.model.publish_options import DEFAULT_PUBLISH_OPTIONS, PublishOptions
from ambermq.engine.model.suspended_link import KEEPS_NOTHING, Keeping

__all__ = [
    "ConsumerAttached",
    "ConsumerDetached",
    "LinkEnded",
    "LinkResumed",
    "LinkSuspended",
    "ProducerAttached",
    "ProducerDetached",
    "TagsKept",
]

_CONSUMER_DETACHED: Final = 10
"""The events of link recovery follow `consumer-detached` in lists."""


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


@final
class LinkSuspended(Struct):
    """A link is gone, and its peer may resume it: what it left unsettled stays acquired, or kept, by its id.

    The event of a link that is suspended already sets its end.
    """

    offset: int
    time_us: int
    link: int
    """The id of the producer or consumer."""
    until_us: int = 0
    """When it ends, in elapsed time; 0 while its session or connection lasts."""


@final
class LinkResumed(Struct):
    """A new link goes on with what a suspended one left unsettled; the suspended one is gone."""

    offset: int
    time_us: int
    link: int
    """The id of the suspended link."""
    successor: int
    """The id of the producer or consumer that resumes it."""


@final
class LinkEnded(Struct):
    """A suspended link ended: what it holds is available again with one more failed delivery, its tags are gone."""

    offset: int
    time_us: int
    link: int
    """The id of the suspended link."""


@final
class TagsKept(Struct):
    """The broker keeps delivery-tags of accepted messages, and no longer keeps those that their sender has settled."""

    offset: int
    time_us: int
    producer: int
    """The producer, or the suspended link that it was."""
    kept: tuple[bytes, ...] = ()
    settled: tuple[bytes, ...] = ()


def _tags_meta(event: TagsKept) -> bytes:
    return b"".join([bytes((len(tag),)) + tag for tag in (*event.kept, *event.settled)])


def _read_tags(offset: int, time_us: int, row: tuple[int, ...], meta: bytes) -> TagsKept:
    tags: list[bytes] = []
    position = 0
    while position < len(meta):
        end = position + 1 + meta[position]
        tags.append(meta[position + 1 : end])
        position = end
    return TagsKept(offset, time_us, row[5], tuple(tags[: row[7]]), tuple(tags[row[7] :]))


def _tags_facts(event: TagsKept) -> Facts:
    facts: Facts = {"producer": event.producer}
    facts |= {"kept": [tag.hex() for tag in event.kept]} if event.kept else {}
    return facts | ({"settled": [tag.hex() for tag in event.settled]} if event.settled else {})


_USER: Final = Choice("user", ", user {user!r}")

LinkEvent = (
    ProducerAttached
    | ProducerDetached
    | ConsumerAttached
    | ConsumerDetached
    | LinkSuspended
    | LinkResumed
    | LinkEnded
    | TagsKept
)

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
    EventType(
        event=LinkSuspended,
        number=43,
        name="link-suspended",
        since="0.2.0",
        listed_after=_CONSUMER_DETACHED,
        layout=Layout(ref="link", meta="until as u64, microseconds of elapsed time; 0: not known yet"),
        meta=lambda event: pack_words([event.until_us]),
        read=lambda offset, time_us, row, meta: LinkSuspended(offset, time_us, row[5], int.from_bytes(meta, "little")),
        keys=IndexKeys.NODE,
        link=LinkColumn.REF,
        facts=lambda event: {"link": event.link} | ({"until_us": event.until_us} if event.until_us else {}),
        facts_text="`link`; `until_us`, in elapsed time, if its session or connection has ended",
        line=("link {link:link} suspended", Choice("until_us", ", until {until_us} us of elapsed time", {0: ""})),
        line_facts=lambda event: {"until_us": event.until_us},
    ),
    EventType(
        event=LinkResumed,
        number=44,
        name="link-resumed",
        since="0.2.0",
        listed_after=_CONSUMER_DETACHED,
        layout=Layout(ref="link", meta="successor as i64"),
        meta=lambda event: pack_words([event.successor]),
        read=lambda offset, time_us, row, meta: LinkResumed(offset, time_us, row[5], int.from_bytes(meta, "little")),
        keys=IndexKeys.NODE,
        link=LinkColumn.REF,
        facts=field_facts("link", "successor"),
        facts_text="`link` `successor`",
        line=("link {link:link} resumed by {successor:link}",),
    ),
    EventType(
        event=LinkEnded,
        number=45,
        name="link-ended",
        since="0.2.0",
        listed_after=_CONSUMER_DETACHED,
        layout=Layout(ref="link"),
        keys=IndexKeys.NODE,
        link=LinkColumn.REF,
        facts=field_facts("link"),
        facts_text="`link`",
        line=("suspended link {link:link} ended",),
    ),
    EventType(
        event=TagsKept,
        number=46,
        name="tags-kept",
        since="0.2.0",
        listed_after=_CONSUMER_DETACHED,
        layout=Layout(
            ref="producer",
            count="the kept tags",
            meta="the kept tags, then those that the sender has settled; each after its length as u8",
        ),
        meta=_tags_meta,
        write=lambda draft, event: draft.add(
            46, timestamp_us=event.time_us, ref=event.producer, count=len(event.kept), meta=_tags_meta(event)
        ),
        read=_read_tags,
        bound=SizeBound.SETTLED,
        link=LinkColumn.REF,
        facts=_tags_facts,
        facts_text="`producer`; `kept` and `settled`, the tags in hexadecimal, if there are any",
        line=("delivery-tags of {producer:link}: {tags}",),
        line_facts=lambda event: {"tags": f"{len(event.kept)} kept, {len(event.settled)} settled"},
    ),
)
