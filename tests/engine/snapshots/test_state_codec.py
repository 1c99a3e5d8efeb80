"""A state as blocks: nothing is lost, nothing is larger than it must be, and what is missing is found out."""

import sys
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ambermq.engine.entries.entry import Entry
from ambermq.engine.entries.entry_word import WORD_BYTES, make_words, pack_words
from ambermq.engine.model.queue import Queue, new_queue
from ambermq.engine.model.queue_parts.last_values import NO_KEY
from ambermq.engine.model.state import EMPTY_STATE, State
from ambermq.engine.settings.queue_settings import Settings
from ambermq.engine.snapshots.state_codec import ImageFault, image_of, state_of
from ambermq.log.format.checksum import crc32c
from ambermq.snapshot.block_file import BLOCK_BYTES_MAX, Block, BlockKind, encode_block
from ambermq.snapshot.persistent_column import EMPTY_COLUMN
from ambermq.snapshot.persistent_map import PersistentMap
from ambermq.snapshot.persistent_queue import PersistentQueue
from tests.engine.histories import lived


def whole(blocks: Iterator[Block]) -> list[Block]:
    """Blocks as a file gives them back: payloads in one piece."""
    return [Block(int(block.kind), [block.payload]) for block in blocks]


def size_of_image(state: State) -> int:
    """Bytes that the blocks take in a file."""
    return sum(len(part) for block in image_of(state) for part in encode_block(block.kind, block.parts, crc32c))


def filled(count: int, *, queue_count: int = 1, step: int = 1) -> State:
    """A state of queues with `count` messages each, `step` offsets apart."""
    state = EMPTY_STATE
    for number in range(queue_count):
        queue = new_queue(number, f"queue {number}", Settings())
        words = b"".join(make_words(1000 + index * step, [100]) for index in range(count))
        state = state.with_queue(queue.push(words, 100 * count, 0), 5)
    return state


@given(st.integers(0, 1 << 32), st.integers(0, 150))
@settings(deadline=None)
def test_a_state_comes_back_to_the_last_attribute(seed: int, steps: int) -> None:
    """state_of(image_of(s)) == s for random histories."""
    state = lived(seed, steps).state
    assert state_of(image_of(state)) == state
    assert state_of(whole(image_of(state))) == state


@given(st.integers(0, 1 << 32))
@settings(deadline=None)
def test_equal_states_have_equal_images(seed: int) -> None:
    """Maps iterate in the order of hashes; what is written is sorted. How words lie in chunks alone may differ."""
    state = lived(seed, 60).state
    again = state_of(whole(image_of(state)))
    mine, others = (
        [block for block in whole(image_of(each)) if block.kind != BlockKind.WORDS] for each in (state, again)
    )
    assert mine == others


def test_every_attribute_is_known_to_the_image() -> None:
    """A field that State, Queue or Entry gains must be written too: this test fails until it is."""
    assert [*State.__struct_fields__] == [
        *("epoch", "time_us", "queues", "queue_names", "muxers", "muxer_names", "consumers", "producers"),
        *("draws", "subscriptions", "subscription_queues", "no_locals", "links", "receivers", "mode", "stepped_us"),
        "deduplicating",
        *("suspended", "suspended_ids", "suspended_held", "tags"),
        *("uploads", "outcome_annotations_bytes"),
    ]
    assert [*Queue.__struct_fields__] == [
        *("id", "name", "settings", "ready", "returned", "acquired", "entries", "exclusions", "size"),
        *("acquired_count", "acquired_size", "published", "delivered", "accepted", "counters", "lifetime", "consumers"),
        *("aside", "expiries", "runs", "delayed", "scheduled", "levels", "keyed", "ids", "groups", "dues"),
        "outcome_annotations",
    ]
    assert [*Entry.__struct_fields__] == [
        *(
            "count",
            "excluded",
            "annotations",
            "chunks",
            "origin",
            "marks",
            "set_aside_for",
            "expires_us",
            "due_us",
            "priority",
            "attempt",
            "group",
            "returned",
        ),
    ]


def test_a_waiting_message_takes_little() -> None:
    """At most 10 bytes a message on disk, in few queues and in many, and at most 9 in memory once it is back."""
    for state, count in ((filled(20_000), 20_000), (filled(500, queue_count=40), 20_000)):
        assert size_of_image(state) <= 10 * count
    queue = state_of(image_of(filled(20_000))).queues[0].ready
    assert memory_of(queue) <= 9 * 20_000


def test_a_scheduled_message_takes_little() -> None:
    """At most 30 bytes a message on disk, word and time, whatever its time is."""
    queue = new_queue(7, "later", Settings())
    for index in range(3000):
        word = make_words(1000 + 2 * index, [100])
        queue = queue.push(word, 100, 0).schedule(word, pack_words([10**15 + index * 7919 % 3000]))
    state = EMPTY_STATE.with_queue(queue, 5)

    assert size_of_image(state) <= 30 * 3000
    assert state_of(whole(image_of(state))) == state
    assert len(queue.entries) == 0


def test_a_message_with_a_time_to_live_takes_little() -> None:
    """At most 30 bytes a message on disk and no object in memory, whatever its expiry is; what is lost is found."""
    queue = new_queue(7, "quotes", Settings())
    for index in range(3000):
        queue = queue.push(make_words(1000 + index, [100]), 100, 0)
        queue = queue.with_expiries(1000 + index, pack_words([10**15 + index * 7919 % 3000]))
    state = EMPTY_STATE.with_queue(queue, 5)
    blocks = whole(image_of(state))

    assert size_of_image(state) <= 30 * 3000
    assert state_of(blocks) == state
    assert (len(queue.entries), queue.expiries.count) == (0, 3000)
    with pytest.raises(ImageFault, match="expected 3000 expiries, found 0"):
        state_of([block for block in blocks if block.kind != BlockKind.EXPIRIES])


def test_times_in_the_columns_of_an_older_snapshot_are_read() -> None:
    """Snapshots had the time of a scheduled message in its columns; other columns of it stay."""
    queue = new_queue(7, "later", Settings())
    for offset in (1000, 1002):
        queue = queue.push(make_words(offset, [100]), 100, 0).schedule(
            make_words(offset, [100]), pack_words([offset * 1000])
        )
    queue = queue.with_expiries(1002, pack_words([9_000_000]))
    columns = PersistentMap({1000: Entry(due_us=1_000_000), 1002: Entry(due_us=1_002_000, expires_us=9_000_000)})
    older = msgspec.structs.replace(queue, dues=EMPTY_COLUMN, expiries=EMPTY_COLUMN, entries=columns)

    assert state_of(image_of(EMPTY_STATE.with_queue(older, 5))) == EMPTY_STATE.with_queue(queue, 5)


def memory_of(queue: PersistentQueue) -> int:
    """Bytes of the words and of what holds them."""
    return sum(sys.getsizeof(run) for run in queue.chunks())


def test_a_returned_message_takes_little_too() -> None:
    """What was acquired once has columns, alike for most: their value is written once, their offsets as distances."""
    count = 20_000
    queue = filled(count, step=3).queues[0]
    entries = {word >> 16: Entry(count=1) for word in queue.ready}
    state = EMPTY_STATE.with_queue(msgspec.structs.replace(queue, entries=type(queue.entries)(entries)), 5)
    assert state_of(image_of(state)) == state
    assert size_of_image(state) <= 11 * count


def test_blocks_are_bounded() -> None:
    """No block is larger than a reader takes, and JSON is cut small enough not to stop a broker."""
    for block in image_of(filled(3000, queue_count=60)):
        size = sum(map(len, block.parts))
        assert size <= BLOCK_BYTES_MAX
        assert block.kind == BlockKind.WORDS or size < 32 << 10


def test_a_state_is_read_a_little_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A running broker reads states beside its loop: no single call makes a map of all that is known of entries."""
    queue = filled(5000).queues[0]
    entries = PersistentMap({word >> 16: Entry(count=1) for word in queue.ready})
    state = EMPTY_STATE.with_queue(msgspec.structs.replace(queue, entries=entries), 5)
    made: list[int] = []

    def watched(items: Mapping[Any, Any] | None = None) -> PersistentMap[Any, Any]:
        made.append(len(items or ()))
        return PersistentMap(items or {})

    for module in ("image_blocks", "link_codec", "muxer_codec", "queue_codec", "state_codec"):
        monkeypatch.setattr(f"ambermq.engine.snapshots.{module}.PersistentMap", watched)
    assert state_of(image_of(state)) == state
    assert 0 < max(made) < 5000


@given(st.integers(0, 1 << 32), st.integers(0, 1 << 16))
@settings(deadline=None)
def test_a_missing_block_is_never_half_a_state(seed: int, pick: int) -> None:
    """Whichever block is left out, there is a fault rather than another state."""
    state = lived(seed, 40).state
    blocks = list(image_of(state))
    blocks.pop(pick % len(blocks))
    with pytest.raises(ImageFault):
        state_of(blocks)


@pytest.mark.parametrize(
    "block",
    [
        Block(99, [b"{}"]),
        Block(BlockKind.STATE, [b"not JSON"]),
        Block(BlockKind.STATE, [msgspec.json.encode({"epoch": 1})]),
        Block(BlockKind.QUEUES, [b'[{"id":1,"colour":"red"}]']),
        Block(BlockKind.WORDS, [bytes(7)]),
        Block(BlockKind.WORDS, [(1).to_bytes(8, "little") + bytes(8) + b"\1\0\0\0\2\0\0\0" + bytes(WORD_BYTES)]),
        Block(BlockKind.WORDS, [(1).to_bytes(8, "little") + bytes(8) + b"\7\0\0\0\1\0\0\0" + bytes(WORD_BYTES)]),
        Block(BlockKind.DUES, [bytes(15)]),
        Block(BlockKind.DUES, [pack_words([1, 0])]),
        Block(BlockKind.DUES, [pack_words([1, 2, 5, 6, 7])]),
        Block(BlockKind.DUES, [pack_words([1, 2, 6, 5, 7, 7])]),
        Block(BlockKind.EXPIRIES, [pack_words([1, 2, 6, 5, 7, 7])]),
    ],
)
def test_what_is_no_image_is_refused(block: Block) -> None:
    """Checksums cannot tell that a program wrote nonsense: contents are held against what is expected."""
    with pytest.raises(ImageFault):
        state_of([*image_of(EMPTY_STATE), block] if block.kind != BlockKind.STATE else [block])


def keyed() -> State:
    """Return a state of a last-value queue with a message of each kind."""
    words = [number << 16 | 5 for number in range(100, 106)]
    queue = new_queue(1, "values", Settings(last_value="f"))
    queue = queue.push(pack_words(words[:4]), 20, 0).with_keys(100, [b"a" * 16, b"b" * 16, NO_KEY, b"c" * 16])
    queue = queue.acquire((9,), pack_words(words[:2]))
    queue = queue.push(pack_words(words[4:5]), 5, 0).with_keys(104, [b"a" * 16])
    queue = (
        queue.push(pack_words(words[5:]), 5, 0)
        .schedule(pack_words(words[5:]), pack_words([77] * len(words[5:])))
        .with_keys(105, [b"b" * 16])
    )
    return EMPTY_STATE.with_queue(queue, 5)


def test_the_keys_of_last_values_come_back() -> None:
    """Of messages that wait, are held or scheduled, and what was replaced."""
    state = keyed()
    values = state.queues[1].keyed
    assert values is not None
    assert (values.keys.count, values.newest.count, values.replaced.count) == (4, 3, 1)
    again = state_of(whole(image_of(state)))
    assert again == state
    assert again.queues[1].keyed == values


@pytest.mark.parametrize("is_cut", [False, True])
def test_keys_that_are_missing_are_found_out(is_cut: bool) -> None:
    """By their count, or because a run ends within a row."""
    blocks = whole(image_of(keyed()))
    (at,) = [number for number, block in enumerate(blocks) if block.kind == BlockKind.WORDS]
    payload = blocks[at].payload
    # The last run has the keys, in rows of three words.
    start = payload.rindex((1).to_bytes(8, "little") + bytes(8) + (13).to_bytes(4, "little"))
    less = (int.from_bytes(payload[start + 20 : start + 24], "little") - (1 if is_cut else 3)).to_bytes(4, "little")
    cut = payload[: start + 20] + less + payload[start + 24 : len(payload) - (8 if is_cut else 24)]
    blocks[at] = Block(BlockKind.WORDS, [cut])
    with pytest.raises(ImageFault, match="multiple of 3" if is_cut else "keys, replaced"):
        state_of(blocks)
