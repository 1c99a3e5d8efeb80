"""Events of a whole virtual host and of its log: starts, resets, losses, compactions."""

from typing import Final, final

from msgspec import Struct

from ambermq.engine.entries.entry_word import pack_words, unpack_words
from ambermq.engine.events.event_type import EventType, Facts, IndexKeys, Layout, SizeBound, field_facts
from ambermq.engine.events.line_template import Choice
from ambermq.engine.events.user_meta import UserMeta, by_meta
from ambermq.engine.model.vhost_mode import VhostMode

__all__ = ["ClockStepped", "Compacted", "Lost", "Reset", "Started"]


@final
class Started(Struct):
    """The broker started: acquired messages are available again with one more failed delivery; all links are gone.

    Those that keep what is unsettled over a start are suspended now.
    """

    offset: int
    time_us: int
    epoch: int
    mode: VhostMode = VhostMode.AUTOMATIC
    """The mode of the virtual host: the first start sets it, later ones repeat it."""
    kept: tuple[int, ...] = ()
    """The producers, consumers and suspended links whose deliveries and tags stay as they are."""


def _started_facts(event: Started) -> Facts:
    facts: Facts = {"epoch": event.epoch} | ({"mode": event.mode.text} if event.mode else {})
    return facts | ({"kept": list(event.kept)} if event.kept else {})


@final
class Lost(Struct):
    """The records from `first` to below `end` are lost: a reference to one of them is not an error."""

    offset: int
    time_us: int
    first: int
    end: int


@final
class Reset(Struct):
    """The virtual host is empty: it has no queue, message, muxer or link. Epoch and time go on."""

    offset: int
    time_us: int
    by: str = ""
    """The user that caused it; empty if none is known."""


@final
class Compacted(Struct):
    """History begins at `horizon`: of the events below it, new segments keep only the live messages."""

    offset: int
    time_us: int
    horizon: int
    segments_before: int
    """The number of segments that were replaced ..."""
    segments_after: int
    """... and of those that replace them."""
    records_before: int
    records_after: int
    bytes_before: int
    bytes_after: int


@final
class ClockStepped(Struct):
    """The clock stepped from `old_us` to `time_us`: later events may have earlier times than those before it."""

    offset: int
    time_us: int
    old_us: int


_COUNTS: Final = (
    "segments_before",
    "segments_after",
    "records_before",
    "records_after",
    "bytes_before",
    "bytes_after",
)


def _compacted_meta(event: Compacted) -> bytes:
    return pack_words([getattr(event, name) for name in _COUNTS])


LifecycleEvent = Started | Lost | Reset | Compacted | ClockStepped

TYPES: Final = (
    EventType(
        event=Started,
        number=1,
        name="started",
        layout=Layout(ref="epoch", aux="mode: 0 automatic, 1 advanced", meta="the kept links, i64 each"),
        meta=lambda event: pack_words(event.kept),
        read=lambda offset, time_us, row, meta: Started(
            offset, time_us, row[5], VhostMode(row[8]), tuple(unpack_words(meta))
        ),
        keys=IndexKeys.BROKER,
        facts=_started_facts,
        facts_text="`epoch`; `mode` if it is advanced; `kept`, the links that are suspended now, if there are any",
        line=("the broker started, epoch {epoch}", Choice("mode", ", in {mode} mode")),
    ),
    EventType(
        event=Lost,
        number=17,
        name="lost",
        layout=Layout(ref="first", meta="end as u64"),
        meta=lambda event: pack_words([event.end]),
        read=lambda offset, time_us, row, meta: Lost(offset, time_us, row[5], int.from_bytes(meta, "little")),
        facts=field_facts("first", "end"),
        facts_text="`first` `end`",
        line=("records {first} to {last} are lost",),
        line_facts=lambda event: {"last": event.end - 1},
    ),
    EventType(
        event=Reset,
        number=18,
        name="reset",
        layout=Layout(meta="JSON `{by}`, or empty"),
        meta=by_meta,
        json=UserMeta,
        keys=IndexKeys.BROKER,
        bound=SizeBound.NAMES,
        facts_text="`by`, the user, if it is known",
        line=("the virtual host was reset: all queues, messages and links are gone",),
    ),
    EventType(
        event=Compacted,
        number=19,
        name="compacted",
        layout=Layout(ref="horizon", meta="u64 each: segments, records, bytes, before and after"),
        meta=_compacted_meta,
        read=lambda offset, time_us, row, meta: Compacted(offset, time_us, row[5], *unpack_words(meta)),
        facts=field_facts("horizon", *_COUNTS),
        facts_text=" ".join(f"`{name}`" for name in ("horizon", *_COUNTS)),
        line=(
            "compacted: history begins at offset {horizon}, bytes {bytes_before:,} -> {bytes_after:,}",
            # Segments that are deleted whole are not read: the number of their records is unknown.
            Choice("records_before", ", records {records_before:,} -> {records_after:,}", {0: ""}),
        ),
    ),
    EventType(
        event=ClockStepped,
        number=25,
        name="clock-stepped",
        since="0.2.0",
        layout=Layout(meta="old time as u64, microseconds"),
        meta=lambda event: pack_words([event.old_us]),
        read=lambda offset, time_us, _, meta: ClockStepped(offset, time_us, int.from_bytes(meta, "little")),
        keys=IndexKeys.BROKER,
        facts=field_facts("old_us"),
        facts_text="`old_us`",
        line=("the clock stepped by {seconds} s",),
        line_facts=lambda event: {"seconds": f"{(event.time_us - event.old_us) / 1_000_000:+.3f}"},
    ),
)
