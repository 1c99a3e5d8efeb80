"""What the records of a batch name."""

from hypothesis import given
from hypothesis import strategies as st

from ambermq.engine.entries.entry_word import make_words, pack_words, unpack_words
from ambermq.engine.entries.outcome import ACCEPTED, REJECTED, Outcome, OutcomeKind
from ambermq.engine.events import (
    Acquired,
    Attached,
    Chunked,
    ConsumerDetached,
    Damaged,
    Detached,
    Event,
    Published,
    Purged,
    QueueDeleted,
    Reset,
    Settled,
    Started,
)
from ambermq.engine.records.index_keys import BROKER, bucket_key, node_key, touches_of
from ambermq.engine.records.reader import events_of
from ambermq.engine.records.writer import write_event
from ambermq.log.config import LogConfig
from ambermq.log.format.batch import Batch, decode_header, encode_batch
from ambermq.log.write.draft import Draft

_FAILED = Outcome(OutcomeKind.MODIFIED, delivery_failed=True)
_entries = st.lists(st.integers(0, 3000), min_size=1, max_size=40, unique=True)
_runs = st.builds(lambda first, count: list(range(first, first + count)), st.integers(0, 3000), st.integers(1, 600))
_words = (_entries | _runs).map(lambda entries: pack_words([entry << 16 | 7 for entry in entries]))
_ids = st.integers(1, 50)
_events = st.lists(
    st.one_of(
        st.builds(Acquired, st.just(0), st.just(1), _ids, st.lists(_ids, min_size=1, max_size=3).map(tuple), _words),
        st.builds(Settled, st.just(0), st.just(1), _ids, _ids, st.sampled_from((ACCEPTED, REJECTED, _FAILED)), _words),
        st.builds(Damaged, st.just(0), st.just(1), _ids, _words),
        st.builds(Purged, st.just(0), st.just(1), _ids, st.integers(0, 3000)),
        st.builds(QueueDeleted, st.just(0), st.just(1), _ids),
        st.builds(ConsumerDetached, st.just(0), st.just(1), _ids),
        st.builds(Attached, st.just(0), st.just(1), _ids, _ids, st.text(max_size=5)),
        st.builds(Started, st.just(0), st.just(1), _ids),
        st.builds(Reset, st.just(0), st.just(1)),
        st.builds(Chunked, st.just(0), st.just(1), _ids, st.binary(max_size=5)),
        st.builds(
            lambda bodies: Published(
                0, 1, (3,), 4, make_words(0, [len(body) for body in bodies]), 9, True, (), bodies, [1] * len(bodies)
            ),
            st.lists(st.binary(max_size=9), min_size=1, max_size=4),
        ),
    ),
    max_size=12,
)


def batch_of(events: list[Event], base_offset: int = 1000) -> Batch:
    """Write events into one batch and read it back."""
    draft = Draft(LogConfig(), next_offset=base_offset)
    for event in events:
        write_event(draft, event)
    (drafted,) = draft.take()
    records, meta = b"".join(drafted.records), b"".join(drafted.meta)
    encoded = encode_batch(drafted, salt_crc=0, durable_end=0, epoch=1)
    return Batch(decode_header(b"".join(encoded)), records, meta, 1, 4096)


def naive(event: Event) -> set[int]:
    """The keys of what an event names, an object a word."""
    match event:
        case Acquired() | Settled() | Damaged():
            return {bucket_key(word >> 16) for word in unpack_words(event.words)}
        case Purged() | QueueDeleted():
            return {node_key(event.queue)}
        case Attached() | Detached():
            return {node_key(event.member)}
        case ConsumerDetached():
            return {node_key(event.consumer)}
        case Started() | Reset():
            return {node_key(BROKER)}
    return set()


@given(_events)
def test_each_record_touches_what_its_event_names(events: list[Event]) -> None:
    """The law: the fast reading of a batch finds what the events themselves say, each pair once, offsets rising."""
    if not events:
        return
    batch = batch_of(events)
    found = list(touches_of(batch))
    assert len(found) == len(set(found))
    assert [offset for _, offset in found] == sorted(offset for _, offset in found)
    assert set(found) == {(key, event.offset) for event in events_of(batch) for key in naive(event)}


def test_keys_of_entries_and_of_nodes_never_meet() -> None:
    """A bucket of the largest offset lies below any queue's key."""
    assert bucket_key((1 << 48) - 1) < node_key(BROKER)
