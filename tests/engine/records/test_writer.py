"""Events and their bytes: what is written is read back, and the bytes never change."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from ambermq.engine.entries.entry_word import make_words, pack_words, size_of, total_size, unpack_words
from ambermq.engine.entries.outcome import ACCEPTED, REJECTED, RELEASED, Outcome, OutcomeKind
from ambermq.engine.errors import EngineError
from ambermq.engine.events import (
    Acquired,
    Attached,
    Chunked,
    Compacted,
    ConsumerAttached,
    ConsumerDetached,
    Damaged,
    Detached,
    Drawn,
    Event,
    Lost,
    MuxerDeclared,
    MuxerDeleted,
    MuxerUpdated,
    ProducerAttached,
    ProducerDetached,
    Published,
    Purged,
    QueueDeclared,
    QueueDeleted,
    QueueUpdated,
    Reset,
    Settled,
    Started,
    Subscribed,
)
from ambermq.engine.events.registry import NUMBERS, SKIPPABLE, TYPE_NAMES
from ambermq.engine.fold.apply import fold
from ambermq.engine.model.attachment import Condition
from ambermq.engine.model.lifetime import Lifetime
from ambermq.engine.model.muxer import MuxerKind, Options
from ambermq.engine.model.publish_options import PublishOptions, Unroutable
from ambermq.engine.model.state import EMPTY_STATE
from ambermq.engine.model.subscription import Subscription
from ambermq.engine.records.reader import events_of
from ambermq.engine.records.writer import write_event
from ambermq.engine.settings.queue_settings import Settings
from ambermq.log.config import LogConfig
from ambermq.log.format.batch import Batch, decode_header, encode_batch
from ambermq.log.write.draft import Draft
from tests.engine.events.samples import SAMPLES, WITH_USER, Sample
from tests.engine.world import record_count
from tests.golden import GOLDEN_DIRECTORY

GOLDEN = GOLDEN_DIRECTORY / "events.hex"
NOW_US = 1_700_000_000_000_000
BASE = 1 << 20
NEWER = [sample for sample in SAMPLES if sample.golden]


def batch_of(draft: Draft) -> Batch:
    """Return what was drafted as it is read back."""
    (drafted,) = draft.take()
    records, meta = b"".join(drafted.records), b"".join(drafted.meta)
    content = b"".join(encode_batch(drafted, salt_crc=0, durable_end=0, epoch=1))
    return Batch(decode_header(content), records, meta, 0, 0)


def written(events: list[Event]) -> Batch:
    """Return a batch of these events."""
    draft = Draft(LogConfig(), next_offset=BASE)
    for event in events:
        assert write_event(draft, event) == event.offset
    return batch_of(draft)


def published(
    offset: int, sizes: list[int], *, chunks: tuple[int, ...] = (), whole: int = 0, **columns: object
) -> Event:
    """Return a run of messages, or with `chunks` a large one of `whole` bytes."""
    words = make_words(offset, [whole] if chunks else sizes)
    values: dict[str, object] = {"time_us": NOW_US, "queues": (5,), "producer": 6, "durable": True} | columns
    return Published(
        offset=offset,
        words=words,
        size=total_size(words),
        chunks=chunks,
        bodies=[b"x" * size for size in sizes],
        id_hashes=[7] * len(sizes),
        **values,
    )


def one_of_each() -> list[Event]:
    """Return an event of each record type, and each form of it, one after the other."""
    rest = Outcome(OutcomeKind.MODIFIED, True, True, ((b"\xa3\x01a", b"\x41"),))
    why = Outcome(OutcomeKind.REJECTED, condition="amqp:decode-error", description="ä")
    makers = [
        lambda at: Started(at, NOW_US, 3),
        lambda at: MuxerDeclared(at, NOW_US + 1, "QUEUE", MuxerKind.DESTINATION),
        lambda at: QueueDeclared(at, NOW_US + 2, "größe", Settings()),
        lambda at: QueueDeclared(at, NOW_US + 2, "limited", Settings("normal", 9)),
        lambda at: Attached(at, NOW_US, 4, 5, "größe"),
        lambda at: ProducerAttached(at, NOW_US, 4, "größe", "container", "link"),
        lambda at: ConsumerAttached(at, NOW_US, 5, "container", "link"),
        lambda at: published(at, [3]),
        lambda at: published(at, [0, 2], durable=False),
        lambda at: published(at, [1, 5000], queues=(5, 8)),
        lambda at: Chunked(at, NOW_US, 6, b"chunk"),
        lambda at: published(at, [4], chunks=(BASE + 11,), whole=5004),
        lambda at: published(at, [4], chunks=(BASE + 1, BASE + 2), whole=9000, queues=(5, 8)),
        lambda at: Acquired(at, NOW_US, 5, (9,), make_words(BASE, [3, 4])),
        lambda at: Acquired(at, NOW_US, 5, (9, 10), make_words(BASE, [3, 4, 5])),
        lambda at: Settled(at, NOW_US, 5, 9, ACCEPTED, make_words(BASE, [3])),
        lambda at: Settled(at, NOW_US, 5, 9, RELEASED, make_words(BASE, [3, 4])),
        lambda at: Settled(at, NOW_US, 5, 9, REJECTED, make_words(BASE, [3])),
        lambda at: Settled(at, NOW_US, 5, 9, why, make_words(BASE, [3])),
        lambda at: Settled(at, NOW_US, 5, 9, rest, make_words(BASE, [3])),
        lambda at: Purged(at, NOW_US, 5, BASE + 3),
        lambda at: Damaged(at, NOW_US, 5, pack_words([(1 << 64) - 1])),
        lambda at: Lost(at, NOW_US, 7, 11),
        lambda at: ConsumerDetached(at, NOW_US, 9),
        lambda at: ProducerDetached(at, NOW_US, 6),
        lambda at: Detached(at, NOW_US, 4, 5, BASE + 4, "größe"),
        lambda at: QueueDeleted(at, NOW_US, 5),
        lambda at: Reset(at, NOW_US + 9),
        lambda at: Compacted(at, NOW_US, BASE, 3, 1, 5000, 12, 90_000, 4_200),
        lambda at: Damaged(at, NOW_US, 5, make_words(BASE, [3, 4])),
        lambda at: MuxerDeclared(at, NOW_US, "lossy", MuxerKind.LOSSY, Options(probability=0.5, seed=-7)),
        lambda at: Attached(at, NOW_US, 4, 5),
        lambda at: Attached(at, NOW_US, 4, 5, (Condition("colour", True, "red"), Condition("header.priority"))),
        lambda at: ProducerAttached(at, NOW_US, 0, "", "c", "l", PublishOptions(Unroutable.REJECT, True, True)),
        lambda at: Drawn(at, NOW_US, 4, 17),
        lambda at: MuxerDeleted(at, NOW_US, 4),
        lambda at: QueueDeclared(at, NOW_US, "$temporary.7", Settings("temporary"), Lifetime.ON_CLOSE),
        lambda at: MuxerDeclared(at, NOW_US, "t", MuxerKind.SIMPLE, Options(lifetime=Lifetime.NO_LINKS)),
        lambda at: ProducerAttached(at, NOW_US, 4, "d", "c", "l", node=7, owns=8),
        lambda at: ConsumerAttached(at, NOW_US, 5, "c", "l", "colour = 'red'", 7),
        lambda at: Subscribed(at, NOW_US, 5, Subscription("news.#", "s")),
        lambda at: Subscribed(at, NOW_US, 5, Subscription("news.#", "s", "c", True, True, "a = 1", True)),
        lambda at: QueueUpdated(at, NOW_US, 5, Settings("limited", 10)),
        lambda at: QueueUpdated(at, NOW_US, 5, Settings()),
        lambda at: MuxerUpdated(at, NOW_US, 4, Options(probability=0.25, seed=9)),
        lambda at: MuxerUpdated(at, NOW_US, 4, Options()),
    ]
    events: list[Event] = []
    at = BASE
    for make in makers:
        events.append(make(at))
        at += record_count(events[-1])
    return events


def in_runs_of_one(events: list[Event]) -> list[Event]:
    """Return the same history with each message published by itself, and pieces without their bytes."""
    single: list[Event] = []
    for event in events:
        if type(event) is Chunked:
            single.append(Chunked(event.offset, event.time_us, event.producer, b""))
        elif type(event) is Published:
            for index in range(record_count(event)):
                word = event.words[8 * index : 8 * index + 8]
                single.append(
                    Published(
                        event.offset + index,
                        event.time_us,
                        event.queues,
                        event.producer,
                        word,
                        total_size(word),
                        event.durable,
                        event.chunks,
                    )
                )
        else:
            single.append(event)
    return single


def test_one_of_each_is_read_as_it_was_written() -> None:
    """Every type, every form."""
    events = one_of_each()
    assert {type(event) for event in events} | {type(one.event) for one in NEWER} == set(Event.__args__)
    assert in_runs_of_one(list(events_of(written(events)))) == in_runs_of_one(events)


def test_golden_bytes() -> None:
    """Records and meta of one of each; a type never changes meaning."""
    batch = written(one_of_each())
    lines = [batch.records[at : at + 48].hex() for at in range(0, len(batch.records), 48)] + [batch.meta.hex()]
    assert "\n".join(lines) == GOLDEN.read_text().strip()
    assert {row[9] for row in batch.rows()} | {NUMBERS[type(one.event)] for one in NEWER} == set(TYPE_NAMES)


def test_golden_bytes_of_newer_types() -> None:
    """The record and meta that stand beside a sample."""
    for sample in NEWER:
        batch = written([replace(sample.event, offset=BASE)])
        assert batch.records.hex() + batch.meta.hex() == sample.golden, sample


def test_golden_bytes_of_events_with_users() -> None:
    """A user is one more key of the meta; a reader without users skips it."""
    batches = [written([replace(sample.event, offset=BASE)]) for sample in WITH_USER]
    lines = [f"{batch.records.hex()} {batch.meta.hex()}" for batch in batches]
    assert "\n".join(lines) == (GOLDEN_DIRECTORY / "events_with_users.hex").read_text().strip()
    assert all(b"alice" in batch.meta for batch in batches)


@pytest.mark.parametrize("sample", WITH_USER, ids=lambda sample: type(sample.event).__name__)
def test_no_user_leaves_no_trace(sample: Sample) -> None:
    """The bytes without a user are those of a version that had none: no key, and no meta that was not there."""
    event = replace(sample.event, offset=BASE, **dict.fromkeys({"by", "user"} & {*sample.event.__struct_fields__}, ""))
    batch = written([event])
    assert b'"by"' not in batch.meta
    assert b'"user"' not in batch.meta
    assert b"{}" not in batch.meta


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: type(sample.event).__name__)
def test_each_sample_is_read_as_it_was_written(sample: Sample) -> None:
    """All that an event of its type can say; messages are of the sizes that their words tell."""
    event = replace(sample.event, offset=BASE)
    if type(event) is Published:
        sizes = [size_of(word) for word in unpack_words(event.words)]
        words = make_words(BASE, sizes)
        bodies = [bytes(size) for size in sizes]
        event = replace(event, words=words, size=sum(sizes), bodies=bodies, id_hashes=[0] * len(sizes))
    assert in_runs_of_one(list(events_of(written([event])))) == in_runs_of_one([event])


def test_attachments_of_version_0_1_are_read() -> None:
    """They named a destination in both directions; the one that went is the one with that destination."""
    draft = Draft(LogConfig(), next_offset=BASE)
    for record_type in (NUMBERS[Attached], NUMBERS[Detached]):
        draft.add(record_type, timestamp_us=NOW_US, queue=5, ref=4, meta=b'{"destination":"q"}')
    attached, detached = events_of(batch_of(draft))
    assert attached == Attached(BASE, NOW_US, 4, 5, "q")
    assert detached == Detached(BASE + 1, NOW_US, 4, 5, 0, "q")
    muxer = MuxerDeclared(4, NOW_US, "QUEUE", MuxerKind.DESTINATION)
    assert not fold(EMPTY_STATE, [muxer, attached, detached]).muxers[4].attachments


def test_runs_of_alike_messages_are_joined() -> None:
    """And not across what differs: producer, queue, time, durability, or a record in between."""
    events = [
        published(BASE, [1, 2]),
        published(BASE + 2, [3000]),
        published(BASE + 3, [4], producer=7),
        published(BASE + 4, [5], producer=7, queues=(9,)),
        published(BASE + 5, [6], producer=7, queues=(9,), durable=False),
        published(BASE + 6, [7], producer=7, queues=(9,), durable=False, time_us=NOW_US + 1),
        Purged(BASE + 7, NOW_US, 5, 0),
        published(BASE + 8, [8], producer=7, queues=(9,), durable=False, time_us=NOW_US + 1),
    ]
    joined = list(events_of(written(events)))
    assert joined == [published(BASE, [1, 2, 3000]), *events[2:]]


def test_messages_on_both_sides_of_a_hole_are_two_runs() -> None:
    """Offsets are those of the records, whatever is missing between them."""
    batch = written([published(BASE, [1, 2, 3])])
    third = (9).to_bytes(4, "little") + batch.records[100:]
    holed = batch._replace(records=batch.records[:96] + third)
    assert list(events_of(holed)) == [published(BASE, [1, 2]), published(BASE + 9, [3])]


SIZES = st.lists(
    st.one_of(st.integers(0, 40), st.integers(2040, 2060), st.integers(4000, 5000)), min_size=1, max_size=4
)
WORDS = st.lists(st.integers(0, (1 << 64) - 1), min_size=1, max_size=5, unique=True).map(pack_words)
OUTCOMES = st.builds(
    Outcome,
    st.sampled_from(OutcomeKind),
    st.booleans(),
    st.booleans(),
    st.lists(st.tuples(st.binary(max_size=4), st.binary(max_size=4)), max_size=3).map(tuple),
    st.text(max_size=9),
    st.text(max_size=9),
)


@st.composite
def histories(draw: st.DrawFn) -> list[Event]:
    """Draw events of the hot types at consecutive offsets."""
    events: list[Event] = []
    at = BASE
    for kind in draw(
        st.lists(st.sampled_from(["published", "acquired", "settled", "damaged"]), min_size=1, max_size=9)
    ):
        time_us = NOW_US + draw(st.integers(0, 2))
        match kind:
            case "published":
                queues = draw(st.sampled_from([(5,), (6,), (5, 6)]))
                durable = draw(st.booleans())
                events.append(published(at, draw(SIZES), queues=queues, durable=durable, time_us=time_us))
            case "acquired":
                consumers = tuple(draw(st.lists(st.integers(1, 1 << 40), min_size=1, max_size=3)))
                events.append(Acquired(at, time_us, 5, consumers, draw(WORDS)))
            case "settled":
                events.append(Settled(at, time_us, 5, 9, draw(OUTCOMES), draw(WORDS)))
            case _:
                events.append(Damaged(at, time_us, 5, draw(WORDS)))
        at += record_count(events[-1])
    return events


@settings(max_examples=200, deadline=None)
@given(events=histories())
def test_what_is_written_is_read_back(events: list[Event]) -> None:
    """Up to the joining of runs."""
    assert in_runs_of_one(list(events_of(written(events)))) == in_runs_of_one(events)


def test_an_unknown_type_is_refused_and_named() -> None:
    """A newer version wrote something that this one cannot fold."""
    draft = Draft(LogConfig(), next_offset=BASE)
    draft.add(1, timestamp_us=NOW_US, ref=1)
    draft.add(99, timestamp_us=NOW_US, meta=b"xyz")
    with pytest.raises(EngineError, match=f"record {BASE + 1} has the unknown type 99"):
        list(events_of(batch_of(draft)))


def test_an_unknown_type_that_is_skippable_is_skipped_with_its_meta() -> None:
    """What follows is read as if it were not there."""
    draft = Draft(LogConfig(), next_offset=BASE)
    draft.add(99, timestamp_us=NOW_US, flags=SKIPPABLE, meta=b"xyz")
    event = Settled(BASE + 1, NOW_US, 5, 9, REJECTED, make_words(BASE, [3]))
    write_event(draft, event)
    assert list(events_of(batch_of(draft))) == [event]
