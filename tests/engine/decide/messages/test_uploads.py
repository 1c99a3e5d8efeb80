"""Messages that arrive piece by piece: nothing is visible before the last piece, and what ends early is garbage."""

from hypothesis import given
from hypothesis import strategies as st

from ambermq.engine.commands import (
    BeginTransaction,
    DetachProducer,
    Discharge,
    EndUpload,
    Publish,
    StoreChunk,
    Transaction,
    Upload,
)
from ambermq.engine.compaction.live_records import kept_offsets
from ambermq.engine.config import EngineConfig
from ambermq.engine.effects import ChunkStored, PublishDone
from ambermq.engine.entries.outcome import OutcomeKind
from ambermq.engine.events import Chunked, Published, UploadEnded
from ambermq.engine.snapshots.state_codec import image_of, state_of
from tests.engine.rig import Rig, delivered

PIECE = 100
CONFIG = EngineConfig(chunk_bytes=PIECE, batch_bytes_max=4 << 20) if False else EngineConfig(chunk_bytes=PIECE)


def pieces_of(number: int, count: int) -> list[bytes]:
    """Pieces that differ by message and place."""
    return [b"%d.%d" % (number, index) + bytes(PIECE - 8) for index in range(count)]


def store(producer: int, upload: Upload, pieces: list[bytes]) -> list[StoreChunk]:
    return [StoreChunk("link", producer, upload, piece) for piece in pieces]


def last(producer: int, upload: Upload, size: int, body: bytes = b"end", **more: object) -> Publish:
    return Publish("link", producer, 0, [body], [0], size + len(body), upload=upload, **more)  # type: ignore[arg-type]


def test_a_message_is_visible_with_its_last_piece_and_whole() -> None:
    """Each piece is answered when it is durable; then the message is delivered, also after a kill."""
    rig = Rig(config=CONFIG)
    consumer, producer, upload = rig.consumer(credit=5), rig.producer(), Upload(b"")
    pieces = pieces_of(1, 3)
    effects = rig.do(*store(producer, upload, pieces))
    assert [effect.size for effect in effects if type(effect) is ChunkStored] == [len(piece) for piece in pieces]
    assert not delivered(effects)
    assert upload.chunks[0] == upload.id
    assert list(rig.loop.state.uploads) == [upload.id]
    effects = rig.do(last(producer, upload, sum(map(len, pieces))))
    assert delivered(effects) == [(consumer, b"".join(pieces) + b"end")]
    assert not rig.loop.state.uploads
    again = rig.next_life()
    assert delivered(again.do(*[]) + again.do()) == []
    consumer = again.consumer(credit=5)
    assert delivered(again.do()) == [(consumer, b"".join(pieces) + b"end")]


def test_a_start_ends_what_was_arriving() -> None:
    """The fold of the log is the live state before, and has no upload after the start."""
    rig = Rig(config=CONFIG)
    producer, upload = rig.producer(), Upload(b"")
    rig.do(*store(producer, upload, pieces_of(1, 2)))
    assert rig.loop.state.uploads
    assert not rig.next_life().loop.state.uploads


def test_the_end_of_an_upload_is_an_event_once() -> None:
    """Later pieces are dropped, and answered so that they no longer count."""
    rig = Rig(config=CONFIG)
    producer, upload = rig.producer(), Upload(b"")
    rig.do(*store(producer, upload, pieces_of(1, 2)))
    upload.is_ended = True
    rig.do(EndUpload(upload), EndUpload(upload))
    effects = rig.do(*store(producer, upload, pieces_of(1, 1)))
    assert [type(effect) for effect in effects] == [ChunkStored]
    assert not rig.loop.state.uploads
    # An answer syncs what no answer waited for.
    rig.producer("other")
    events, _ = rig.loop.replay(0).read(events_max=1000, bytes_max=1 << 20)
    assert [event.upload for event in events if type(event) is UploadEnded] == [upload.id]


def test_pieces_of_a_producer_that_is_gone_are_refused() -> None:
    """As its messages are; a publish of what was stored before ends the upload."""
    rig = Rig(config=CONFIG)
    producer, upload = rig.producer(), Upload(b"")
    rig.do(*store(producer, upload, pieces_of(1, 1)))
    rig.do(DetachProducer(producer))
    (refused,) = rig.do(*store(producer, upload, pieces_of(1, 1)))
    assert type(refused) is ChunkStored
    assert refused.condition == "amqp:not-found"
    (done,) = rig.do(last(producer, upload, PIECE))
    assert type(done) is PublishDone
    assert done.kind is OutcomeKind.REJECTED
    assert not rig.loop.state.uploads


def test_the_size_is_that_of_the_whole_message() -> None:
    """A queue that takes no such message refuses it, and nothing of it stays live."""
    rig = Rig(config=CONFIG)
    producer, upload = rig.producer(), Upload(b"")
    queue = rig.queue()
    rig.do(*store(producer, upload, pieces_of(1, 3)))
    rig.do(last(producer, upload, upload.size))
    assert rig.queue().size - queue.size >= 3 * PIECE - 24
    assert len(kept_offsets(rig.loop.state)) == 4


def test_a_transaction_takes_uploads_and_a_rollback_ends_them() -> None:
    """The commit publishes the pieces that are on the disk; their bytes do not count as memory."""
    for fails in (False, True):
        rig = Rig(config=CONFIG)
        consumer, producer, upload = rig.consumer(credit=5), rig.producer(), Upload(b"")
        transaction = Transaction(b"t")
        pieces = pieces_of(1, 2)
        rig.do(BeginTransaction(transaction), *store(producer, upload, pieces))
        rig.do(last(producer, upload, upload.size, transaction=transaction))
        assert transaction.size == len(b"end")
        assert rig.loop.state.uploads
        effects = rig.do(Discharge("key", transaction, fails))
        assert delivered(effects) == ([] if fails else [(consumer, b"".join(pieces) + b"end")])
        assert not rig.loop.state.uploads
        rig.next_life()


def test_open_uploads_are_live_and_in_snapshots() -> None:
    """A compaction whose base is a snapshot keeps pieces whose message is published later."""
    rig = Rig(config=CONFIG)
    producer, upload = rig.producer(), Upload(b"")
    rig.do(*store(producer, upload, pieces_of(1, 3)))
    state = rig.loop.state
    assert list(kept_offsets(state)) == upload.chunks
    assert state_of(image_of(state)) == state


@given(st.lists(st.tuples(st.integers(0, 2), st.sampled_from(["piece", "publish", "abort", "kill"])), max_size=25))
def test_interleaved_uploads_with_cuts_and_kills(steps: list[tuple[int, str]]) -> None:
    """What is delivered is each published message as a whole, in order; a kill ends what was arriving, and no more."""
    rig = Rig(config=CONFIG)
    producers = [rig.producer() for _ in range(3)]
    uploads: list[tuple[Upload, list[bytes]]] = [(Upload(b""), []) for _ in range(3)]
    published: list[bytes] = []
    for number, (index, action) in enumerate(steps):
        upload, pieces = uploads[index]
        if action == "piece":
            pieces += pieces_of(number, 1)
            rig.do(*store(producers[index], upload, pieces[-1:]))
        elif action == "kill":
            rig = rig.next_life()
            producers = [rig.producer() for _ in range(3)]
            uploads = [(Upload(b""), []) for _ in range(3)]
        elif action == "abort":
            upload.is_ended = True
            # An answer has the event written at once, so that a kill does not lose it.
            rig.do(EndUpload(upload))
            rig.producer()
            uploads[index] = Upload(b""), []
        elif pieces:
            rig.do(last(producers[index], upload, upload.size, b"%d" % number))
            published.append(b"".join(pieces) + b"%d" % number)
            uploads[index] = Upload(b""), []
    open_ones = {upload.id for upload, pieces in uploads if pieces}
    assert set(rig.loop.state.uploads) == open_ones
    rig.consumer(credit=100)
    assert [body for _, body in delivered(rig.do())] == published
    kinds = {Chunked, Published, UploadEnded}
    events, _ = rig.loop.replay(0).read(events_max=10_000, bytes_max=1 << 22)
    assert all(type(event) in kinds or event.offset >= 0 for event in events)
