"""Events of link recovery: links are suspended, resumed and ended; delivery-tags of senders are kept and forgotten."""

from typing import Final, final

from msgspec import Struct

from ambermq.engine.entries.entry_word import pack_words
from ambermq.engine.events.event_type import EventType, Facts, IndexKeys, Layout, LinkColumn, SizeBound, field_facts
from ambermq.engine.events.line_template import Choice

__all__ = ["LinkEnded", "LinkResumed", "LinkSuspended", "TagsKept"]

_CONSUMER_DETACHED: Final = 10
"""The events follow `consumer-detached` in lists."""


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
    """The broker keeps delivery-tags of stored messages, and no longer keeps those that their sender has settled."""

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


RecoveryEvent = LinkSuspended | LinkResumed | LinkEnded | TagsKept

TYPES: Final = (
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
