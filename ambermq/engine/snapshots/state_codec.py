"""The codec of a state: its blocks in a snapshot file, and back to an equal state.

    STATE       {epoch, time_us, mode, and the counts of the muxers, attachments, queues, producers, consumers and
                subscriptions that follow}

The modules of muxers, links, queues and runs of words draw the other blocks.

Rule 1. Queues are written as their packed runs, never as objects: 8 bytes for each message and little more. A value
        that many entries share is written once, with the gaps between their offsets.
Rule 2. Everything is sorted by id or offset, because maps iterate in the order of hashes.
Rule 3. A block is made in a fraction of a millisecond, because a broker may be running.
Rule 4. There can be any number of blocks of one kind. Entries come after their words. Counts are compared with those
        that were written; a difference is an ImageFault, so no caller gets a partial state.
Rule 5. Derived values are not written but computed again: links of a node, groups of a queue, containers of no-local
        subscriptions.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

import msgspec

from ambermq.engine.model.state import EMPTY_STATE, State
from ambermq.engine.model.vhost_mode import VhostMode
from ambermq.engine.snapshots.image_blocks import ImageFault, encode, in_order, json_blocks, map_of
from ambermq.engine.snapshots.link_codec import LinkParts, subscription_rows, suspended_rows, tags_row_count, tags_rows
from ambermq.engine.snapshots.muxer_codec import MuxerParts, attachment_rows, muxer_rows
from ambermq.engine.snapshots.queue_codec import QueueParts, entries_rows, queue_rows
from ambermq.engine.snapshots.word_runs import due_blocks, expiry_blocks, word_blocks
from ambermq.snapshot.block_file import Block, BlockKind
from ambermq.snapshot.persistent_map import PersistentMap

__all__ = ["ImageFault", "image_of", "state_of"]


class Head(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The values of a state that are no tables, and the counts of the rows that follow."""

    epoch: int
    time_us: int
    muxers: int
    attachments: int
    queues: int
    producers: int
    consumers: int
    subscriptions: int = 0
    mode: VhostMode | msgspec.UnsetType = msgspec.UNSET
    """Not written in automatic mode."""
    stepped_us: int | msgspec.UnsetType = msgspec.UNSET
    """Not written if the clock never stepped."""
    suspended: int | msgspec.UnsetType = msgspec.UNSET
    """Not written without suspended links."""
    tags: int | msgspec.UnsetType = msgspec.UNSET
    """The rows of tags. Not written without any."""
    chunks: int | msgspec.UnsetType = msgspec.UNSET
    """The chunk records of messages that are arriving. Not written without them."""


def image_of(state: State) -> Iterator[Block]:
    """Yield the blocks of a state, each below 100 KiB."""
    yield Block(BlockKind.STATE, [encode(_head(state))])
    yield from json_blocks(BlockKind.MUXERS, muxer_rows(state))
    yield from json_blocks(BlockKind.ATTACHMENTS, attachment_rows(state))
    yield from json_blocks(BlockKind.PRODUCERS, in_order(state.producers))
    yield from json_blocks(BlockKind.CONSUMERS, in_order(state.consumers))
    yield from json_blocks(BlockKind.QUEUES, queue_rows(state))
    yield from word_blocks(state)
    yield from due_blocks(state)
    yield from expiry_blocks(state)
    yield from json_blocks(BlockKind.ENTRIES, entries_rows(state))
    yield from json_blocks(BlockKind.SUBSCRIPTIONS, subscription_rows(state))
    yield from json_blocks(BlockKind.SUSPENDED, suspended_rows(state))
    yield from json_blocks(BlockKind.TAGS, tags_rows(state))


def _head(state: State) -> Head:
    return Head(
        state.epoch,
        state.time_us,
        len(state.muxers),
        sum(len(muxer.attachments) for muxer in state.muxers.values()),
        len(state.queues),
        len(state.producers),
        len(state.consumers),
        len(state.subscriptions),
        state.mode or msgspec.UNSET,
        state.stepped_us or msgspec.UNSET,
        len(state.suspended) or msgspec.UNSET,
        tags_row_count(state) or msgspec.UNSET,
        sum(map(len, state.uploads.values())) or msgspec.UNSET,
    )


def state_of(blocks: Iterable[Block]) -> State:
    """Return the state of the blocks, with its queues in full chunks. Raises ImageFault."""
    parts = _Parts()
    for block in blocks:
        take = parts.take.get(block.kind)
        if take is None:
            raise ImageFault(f"a snapshot block has the unknown kind {block.kind}")
        try:
            take(block.payload)
        except (msgspec.DecodeError, RecursionError) as error:
            raise ImageFault(f"a snapshot block of kind {block.kind} cannot be decoded: {error}") from error
    return parts.state()


class _Parts:
    """The contents of the blocks read so far."""

    def __init__(self) -> None:
        self.head: Head | None = None
        muxers, links, queues = MuxerParts(), LinkParts(), QueueParts()
        self.muxers, self.links, self.queues = muxers, links, queues
        self.take: dict[int, Callable[[bytes], None]] = {
            BlockKind.STATE: self.take_head,
            BlockKind.MUXERS: muxers.take_muxers,
            BlockKind.ATTACHMENTS: muxers.take_attachments,
            BlockKind.PRODUCERS: links.take_producers,
            BlockKind.CONSUMERS: links.take_consumers,
            BlockKind.QUEUES: queues.take_queues,
            BlockKind.WORDS: queues.words.take_words,
            BlockKind.DUES: queues.words.take_dues,
            BlockKind.EXPIRIES: queues.words.take_expiries,
            BlockKind.ENTRIES: queues.take_entries,
            BlockKind.SUBSCRIPTIONS: links.take_subscriptions,
            BlockKind.SUSPENDED: links.take_suspended,
            BlockKind.TAGS: links.take_tags,
        }

    def take_head(self, payload: bytes) -> None:
        """Decode the first block."""
        self.head = msgspec.json.decode(payload, type=Head)

    def state(self) -> State:
        """Return the state. Raises ImageFault if a part is missing."""
        head = self.head
        if head is None:
            raise ImageFault("the first block of the snapshot is missing")
        attachments = sum(map(len, self.muxers.attachments.values()))
        links = self.links
        of_links = (len(links.producers), len(links.consumers), len(links.subscriptions))
        counts = (len(self.muxers.rows), attachments, len(self.queues.rows), *of_links)
        expected = (head.muxers, head.attachments, head.queues, head.producers, head.consumers, head.subscriptions)
        if counts != expected:
            what = "muxers, attachments, queues, producers, consumers, subscriptions"
            raise ImageFault(f"{what}: expected {expected}, found {counts}")
        if (len(links.suspended), len(links.tags)) != (head.suspended or 0, head.tags or 0):
            found = len(links.suspended), len(links.tags)
            raise ImageFault(f"suspended, tags: expected {(head.suspended or 0, head.tags or 0)}, found {found}")
        uploads = self.queues.words.uploads()
        if (chunks := sum(map(len, uploads.values()))) != (head.chunks or 0):
            raise ImageFault(f"chunks of arriving messages: expected {head.chunks or 0}, found {chunks}")
        rows = self.queues.rows
        consumers = Counter(one.queue for one in links.consumers.values())
        queues = {row.id: self.queues.queue(row, consumers[row.id]) for row in rows}
        return EMPTY_STATE.with_fields(
            epoch=head.epoch,
            time_us=head.time_us,
            mode=VhostMode.AUTOMATIC if head.mode is msgspec.UNSET else head.mode,
            stepped_us=head.stepped_us or 0,
            deduplicating=PersistentMap({row.id: None for row in rows if row.settings.dedup_window_ms}),
            queues=PersistentMap(queues),
            queue_names=PersistentMap({row.name: row.id for row in rows if row.named}),
            uploads=map_of(uploads),
            outcome_annotations_bytes=sum([queue.outcome_annotations.size for queue in queues.values()]),
            **self.muxers.fields(),
            **links.fields({row.id for row in rows}),
        )
