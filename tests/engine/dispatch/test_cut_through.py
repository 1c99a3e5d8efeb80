"""Cut-through: a consumer is reserved for a message that arrives, and acquires it as it is published."""

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ambermq.engine.commands import (
    AttachConsumer,
    BeginTransaction,
    CutThrough,
    DeclareQueue,
    DeleteQueue,
    DetachConsumer,
    DetachProducer,
    EndUpload,
    Publish,
    Settle,
    StoreChunk,
    Transaction,
    UpdateQueue,
    Upload,
)
from ambermq.engine.config import EngineConfig
from ambermq.engine.dispatch.cut_through import ALL_CREDIT
from ambermq.engine.effects import (
    ChunkStored,
    ConsumerReady,
    CutThroughBegun,
    CutThroughEnded,
    Deliver,
    Drained,
    Effect,
    PublishDone,
)
from ambermq.engine.entries.entry_word import pack_words, size_of
from ambermq.engine.entries.outcome import ACCEPTED, OutcomeKind
from ambermq.engine.events import Acquired, Published, Settled
from ambermq.engine.events.registry import NUMBERS
from ambermq.engine.selectors.fields import ABSENT
from ambermq.engine.settings.queue_settings import Settings
from ambermq.engine.snapshots.state_codec import image_of, state_of
from tests.engine.rig import Rig, delivered

PIECE = 100
CONFIG = EngineConfig(chunk_bytes=PIECE)
HEAD = b"head"


class Head:
    """The fields of a message, as far as a selector reads them here."""

    def __init__(self, body: Any, _added: object = (), /) -> None:
        self._is_red = bytes(body[:3]) == b"red"

    def get(self, name: str) -> object:
        return "red" if name == "colour" and self._is_red else ABSENT


def rig_of(**settings: Any) -> Rig:
    rig = Rig(config=CONFIG, fields_of=Head)
    rig.do(DeclareQueue("key", "q", Settings(**{"cut_through": True, **settings})))
    return rig


def upload_of(head: bytes = HEAD) -> Upload:
    return Upload(head, may_cut_through=True)


def piece(producer: int, upload: Upload) -> StoreChunk:
    return StoreChunk("link", producer, upload, bytes(PIECE))


def last(producer: int, upload: Upload, **more: Any) -> Publish:
    return Publish("link", producer, 0, [b"end"], [0], upload.size + 3, upload=upload, **more)


def begun(effects: list[Effect]) -> list[int]:
    """Return the consumers whose deliveries begin."""
    return [effect.consumer for effect in effects if type(effect) is CutThroughBegun]


def ended(effects: list[Effect]) -> list[tuple[int, int]]:
    """Return the consumers whose deliveries are complete or aborted, each with the word of its message."""
    return [(effect.consumer, effect.word) for effect in effects if type(effect) is CutThroughEnded]


def priorities_of(rig: Rig, *priorities: int, name: str = "q", **values: Any) -> list[int]:
    """Attach consumers of these priorities, each with a credit of 5."""
    consumers = []
    for priority in priorities:
        (ready, *_) = rig.do(AttachConsumer("key", name, "container", "link", priority=priority, **values))
        assert type(ready) is ConsumerReady
        rig.loop.set_credit(ready.consumer, 5)
        consumers.append(ready.consumer)
    return consumers


@pytest.mark.parametrize("settled", [False, True])
def test_the_delivery_begins_with_the_first_durable_piece_and_is_acquired_with_the_last(*, settled: bool) -> None:
    """No state has the reservation. The publish, its acquisition and a settled outcome are in one batch."""
    rig = rig_of()
    consumer, producer, upload = rig.consumer(credit=5, settled=settled), rig.producer(), upload_of()
    assert begun(rig.step(piece(producer, upload))) == []
    assert begun(rig.completed()) == [consumer]
    assert not rig.queue().acquired_count
    assert not rig.queue().depth
    assert begun(rig.do(piece(producer, upload))) == []
    effects = rig.do(last(producer, upload))
    ((holder, word),) = ended(effects)
    assert (holder, size_of(word) >= 2 * PIECE - 24, delivered(effects)) == (consumer, True, [])
    assert list(rig.queue().held_by(consumer)) == ([] if settled else [word])
    assert upload.cut_through is None
    assert not rig.loop.demand.cut_throughs
    numbers = [NUMBERS[kind] for kind in (Published, Acquired, *([Settled] if settled else []))]
    assert [batch for batch in rig.batches() if set(numbers) & set(batch)] == [numbers]


def test_nothing_is_seen_of_what_the_sender_aborts() -> None:
    """The consumer is told at once, and has its credit again when its link gives it."""
    rig = rig_of()
    consumer, producer, upload = rig.consumer(credit=5), rig.producer(), upload_of()
    assert begun(rig.do(piece(producer, upload))) == [consumer]
    upload.is_ended = True
    assert ended(rig.do(EndUpload(upload))) == [(consumer, 0)]
    assert not rig.queue().depth
    rig.loop.set_credit(consumer, 4)
    assert delivered(rig.do(rig.publish(producer, b"next"))) == [(consumer, b"next")]
    rig.next_life()


@pytest.mark.parametrize("why", ["full", "producer"])
def test_a_refusal_with_the_last_piece_aborts(why: str) -> None:
    """Of a queue at its maximum, of a producer that is gone: the sender gets its outcome, the receiver an abort."""
    rig = rig_of(messages_max=1)
    consumer, producer, other, upload = rig.consumer(credit=1), rig.producer(), rig.producer(), upload_of()
    assert begun(rig.do(piece(producer, upload))) == [consumer]
    if why == "full":
        rig.do(rig.publish(other, b"waits"))
    else:
        rig.do(DetachProducer(producer))
    effects = rig.do(last(producer, upload))
    assert [effect.kind for effect in effects if type(effect) is PublishDone] == [OutcomeKind.REJECTED]
    assert ended(effects) == [(consumer, 0)]
    assert not rig.loop.state.uploads
    assert not rig.queue().acquired_count


def test_the_reserved_consumer_gets_nothing_else_and_the_others_go_on() -> None:
    """Whatever credit its link gives before it knows of the delivery; a second message of the queue waits."""
    rig = rig_of()
    first, second = rig.consumer(credit=5), rig.consumer(credit=5)
    producer, other, upload, late = rig.producer(), rig.producer(), upload_of(), upload_of()
    effects = rig.step(piece(producer, upload))
    rig.loop.set_credit(first, 9)
    effects += rig.step(*[rig.publish(other, b"%d" % number) for number in range(3)], piece(other, late))
    effects += rig.completed()
    assert begun(effects) == [first]
    assert delivered(effects) == [(second, b"0"), (second, b"1"), (second, b"2")]
    rig.loop.set_credit(first, 9)
    assert rig.loop.demand.wants[first].credit == 9


def test_a_delivery_does_not_overtake_those_before_it() -> None:
    """A message that must be read from the disk comes first, and the delivery that begins behind it."""
    rig = rig_of()
    producer, upload = rig.producer(), upload_of()
    rig.do(rig.publish(producer, bytes(90)))
    consumer = rig.consumer(credit=5)
    rig.loop.log.bodies.forget(range(1000))
    rig.forget_pages()
    rig.step(piece(producer, upload))
    release = rig.loop._release
    assert consumer in release.queues
    rig.loop.demand.wants[consumer].held_count += ALL_CREDIT
    behind: list[Effect] = [
        CutThroughBegun(consumer, "link", CutThrough(rig.queue().id, consumer, "link", upload)),
        CutThroughEnded(consumer, "link", CutThrough(rig.queue().id, consumer, "link", upload)),
    ]
    assert release.release(behind) == []
    assert [type(one) for one in rig.completed() if type(one) is not ChunkStored] == [Deliver, *map(type, behind)]
    assert rig.loop.demand.wants[consumer].held_count == 0


def test_an_end_does_not_overtake_its_beginning() -> None:
    """Although an abort waits for no sync."""
    rig = rig_of()
    consumer, producer, upload = rig.consumer(credit=5), rig.producer(), upload_of()
    effects = rig.step(piece(producer, upload))
    upload.is_ended = True
    effects += rig.step(EndUpload(upload))
    effects += rig.completed()
    kinds = [type(effect) for effect in effects if type(effect) is not ChunkStored]
    assert (kinds, begun(effects)) == ([CutThroughBegun, CutThroughEnded], [consumer])


def test_a_message_waits_where_others_wait_and_begins_when_they_are_gone() -> None:
    """It is tried at each piece."""
    rig = rig_of()
    producer, upload = rig.producer(), upload_of()
    rig.do(rig.publish(producer, b"before"))
    assert begun(rig.do(piece(producer, upload))) == []
    consumer = rig.consumer(credit=1)
    assert delivered(rig.do()) == [(consumer, b"before")]
    assert begun(rig.do(piece(producer, upload))) == []
    rig.loop.set_credit(consumer, 1)
    assert begun(rig.do(piece(producer, upload))) == [consumer]


@pytest.mark.parametrize("settings", [{"cut_through": False}, {"paused": True}], ids=lambda values: next(iter(values)))
def test_queues_that_do_not_cut_through(settings: dict[str, Any]) -> None:
    """The message is delivered when it is complete, if at all."""
    rig = rig_of(**settings)
    rig.consumer(credit=5)
    producer, upload = rig.producer(), upload_of()
    assert begun(rig.do(piece(producer, upload))) == []
    assert ended(rig.do(last(producer, upload))) == []


def test_the_setting_is_changed_live() -> None:
    """What has begun goes on; a later message does not begin."""
    rig = rig_of()
    consumer, producer, upload = rig.consumer(credit=5), rig.producer(), upload_of()
    assert begun(rig.do(piece(producer, upload))) == [consumer]
    rig.do(UpdateQueue("key", "q", lambda _state: {}, {"cut_through": False}))
    assert [holder for holder, word in ended(rig.do(last(producer, upload))) if word] == [consumer]
    rig.loop.set_credit(consumer, 5)
    assert begun(rig.do(piece(producer, upload_of()))) == []


def test_a_message_that_its_link_or_first_piece_rules_out_does_not_begin() -> None:
    """A scheduled one, one with a group, one of a transaction: the gateway says so; also one to the anonymous terminus.

    One that is posted in a transaction after all is aborted.
    """
    rig = rig_of()
    consumer, producer, upload, transaction = rig.consumer(credit=5), rig.producer(), upload_of(), Transaction(b"t")
    assert begun(rig.do(piece(producer, Upload(HEAD)))) == []
    assert begun(rig.do(piece(producer, upload))) == [consumer]
    rig.do(BeginTransaction(transaction))
    assert ended(rig.do(last(producer, upload, transaction=transaction))) == [(consumer, 0)]


@pytest.mark.parametrize(
    "more", [{"delay_ms": 1000}, {"groups": [7]}, {"expires_ms": 1}], ids=lambda values: next(iter(values))
)
def test_a_message_that_may_not_be_offered_when_it_is_published_is_not_acquired(more: dict[str, Any]) -> None:
    """It is aborted at its receiver, and is on its queue what any such message is."""
    rig = rig_of(groups=True)
    consumer, producer, upload = rig.consumer(credit=5), rig.producer(), upload_of()
    assert begun(rig.do(piece(producer, upload))) == [consumer]
    assert ended(rig.do(last(producer, upload, **more))) == [(consumer, 0)]
    assert not rig.queue().acquired_count
    rig.next_life()


def test_the_next_consumer_in_turn_is_reserved() -> None:
    """In turns, by priority, by selector and, on an exclusive queue, the active one."""
    rig = rig_of()
    consumers = priorities_of(rig, 0, 0)
    producer = rig.producer()
    for turn in (0, 1, 0):
        upload = upload_of()
        assert begun(rig.do(piece(producer, upload))) == [consumers[turn]]
        rig.do(last(producer, upload))
        rig.loop.set_credit(consumers[turn], 5)
    high, upload = priorities_of(rig, 1), upload_of()
    assert begun(rig.do(piece(producer, upload))) == high
    rig.do(last(producer, upload))
    red, upload = priorities_of(rig, 0, selector="colour = 'red'"), upload_of(b"red")
    assert begun(rig.do(piece(producer, upload))) == red
    rig.do(last(producer, upload))
    assert begun(rig.do(piece(producer, upload_of(b"blue")))) == [consumers[1]]


def test_a_selector_does_not_read_long_sections() -> None:
    """The test of megabytes would take more than a tick: such a message is delivered when it is complete."""
    rig = rig_of()
    priorities_of(rig, 0, selector="colour = 'red'")
    assert begun(rig.do(piece(rig.producer(), upload_of(b"red" + bytes(1 << 20))))) == []


def test_only_a_few_selectors_are_tested() -> None:
    """Thousands of them at each piece would take more than a tick."""
    for count in (32, 33):
        rig = rig_of()
        priorities_of(rig, *[0] * count, selector="colour = 'red'")
        assert len(begun(rig.do(piece(rig.producer(), upload_of(b"red"))))) == (count == 32)


def test_of_an_exclusive_queue_the_active_consumer_is_reserved() -> None:
    """The others wait, whatever credit they have."""
    rig = rig_of(exclusive=True)
    first, second = priorities_of(rig, 0, 3)
    rig.do()
    producer = rig.producer()
    assert begun(rig.do(piece(producer, upload := upload_of()))) == [first]
    assert begun(rig.do(DetachConsumer(first), piece(producer, upload))) == []
    rig.do()
    assert begun(rig.do(piece(producer, upload))) == [second]


def test_a_rate_counts_the_delivery() -> None:
    """One message a second: the next one waits for its time."""
    rig = rig_of()
    (consumer,) = priorities_of(rig, 0, rate=1.0)
    producer, upload = rig.producer(), upload_of()
    assert begun(rig.do(piece(producer, upload))) == [consumer]
    rig.do(last(producer, upload))
    rig.loop.set_credit(consumer, 5)
    assert delivered(rig.do(rig.publish(producer, b"next"))) == []
    rig.now_us += 1_000_000
    assert delivered(rig.do()) == [(consumer, b"next")]


def test_a_drain_is_answered_when_the_delivery_is_complete() -> None:
    """Until then the engine answers none: the link does."""
    rig = rig_of()
    consumer, producer, upload = rig.consumer(credit=5), rig.producer(), upload_of()
    rig.step(piece(producer, upload))
    rig.loop.set_credit(consumer, 5, draining=True)
    effects = rig.do()
    assert [type(effect) for effect in effects if type(effect) is Drained] == []
    rig.do(last(producer, upload))
    rig.loop.set_credit(consumer, 3, draining=True)
    assert [type(effect) for effect in rig.do()] == [Drained]


def test_the_message_of_a_consumer_that_goes_is_for_the_others() -> None:
    """Another one is reserved at the next piece. Without one, the queue has the message, and no failed delivery."""
    rig = rig_of()
    first, second, producer, upload = rig.consumer(credit=5), rig.consumer(credit=5), rig.producer(), upload_of()
    assert begun(rig.do(piece(producer, upload))) == [first]
    assert begun(rig.do(DetachConsumer(first), piece(producer, upload))) == [second]
    rig.do(DetachConsumer(second))
    effects = rig.do(last(producer, upload))
    assert ended(effects) == []
    assert (len(rig.queue().ready), len(rig.queue().entries)) == (1, 1)
    third = rig.consumer(credit=1)
    assert delivered(rig.do()) == [(third, bytes(2 * PIECE) + b"end")]


def test_a_link_ends_what_it_will_not_complete() -> None:
    """The message is one for any consumer; it may begin again."""
    rig = rig_of()
    consumer, producer, upload = rig.consumer(credit=5), rig.producer(), upload_of()
    rig.do(piece(producer, upload))
    assert upload.cut_through is not None
    rig.loop.stop_cut_through(upload.cut_through)
    assert ended(rig.do(last(producer, upload))) == []
    rig.loop.set_credit(consumer, 1)
    assert delivered(rig.do()) == [(consumer, bytes(PIECE) + b"end")]


def test_the_deletion_of_the_queue_ends_everything() -> None:
    """Its consumer and its producer end; the pieces are garbage."""
    rig = rig_of()
    rig.consumer(credit=5)
    producer, upload = rig.producer(), upload_of()
    rig.do(piece(producer, upload))
    rig.do(DeleteQueue("key", "q"))
    assert not rig.loop.demand.cut_throughs
    assert upload.cut_through is None
    upload.is_ended = True
    assert ended(rig.do(EndUpload(upload))) == []
    # An answer has the event written at once.
    rig.producer("other")
    rig.next_life()


class Receivers:
    """Consumers as their links are: what each has begun, completed and settled, and the credit that it gives."""

    def __init__(self, rig: Rig) -> None:
        self.rig = rig
        self.credit: dict[int, int] = {}
        self.sending: dict[int, Upload] = {}
        """The message of each consumer whose delivery has begun."""
        self.got: list[int] = []
        """The words of complete messages, in the order of deliveries."""
        self.aborted: list[Upload] = []

    def take(self, effects: list[Effect]) -> None:
        for effect in effects:
            if type(effect) is CutThroughBegun and effect.consumer in self.credit:
                upload = effect.cut_through.upload
                if not effect.cut_through.is_ended or upload.id not in self.rig.loop.state.uploads:
                    self.sending[effect.consumer] = upload
            elif type(effect) is CutThroughEnded and effect.consumer in self.credit:
                upload = effect.cut_through.upload
                assert self.sending.pop(effect.consumer, upload) is upload
                if effect.word:
                    self.got.append(effect.word)
                else:
                    self.aborted.append(upload)
            elif type(effect) is Deliver:
                assert effect.consumer not in self.sending, "frames of two deliveries would mix"
                self.got += effect.words
        for consumer, credit in self.credit.items():
            self.rig.loop.set_credit(consumer, 0 if consumer in self.sending else credit)

    def take_all(self) -> None:
        """Carry out effects until there are none."""
        while effects := self.rig.do():
            self.take(effects)


_STEPS = st.lists(
    st.tuples(st.integers(0, 2), st.sampled_from(["piece"] * 4 + ["last", "abort", "small", "come", "go", "settle"])),
    min_size=5,
    max_size=60,
)


@settings(max_examples=50)
@given(steps=_STEPS, settled=st.booleans(), ticks=st.randoms(use_true_random=False))
def test_each_message_is_delivered_once_and_what_is_aborted_leaves_nothing(
    steps: list[tuple[int, str]], ticks: random.Random, *, settled: bool
) -> None:
    """For all interleavings of pieces, ends, consumers and outcomes: the fold of the log is the live state."""
    rig = rig_of()
    receivers, producers = Receivers(rig), [rig.producer() for _ in range(3)]
    uploads = [upload_of() for _ in range(3)]
    dropped: list[Upload] = []
    published = 0
    for index, action in steps:
        commands: list[Any] = []
        upload = uploads[index]
        if action == "piece":
            commands.append(piece(producers[index], upload))
        elif action == "last" and upload.chunks:
            commands.append(last(producers[index], upload))
            uploads[index], published = upload_of(), published + 1
        elif action == "abort":
            upload.is_ended = True
            commands.append(EndUpload(upload))
            dropped.append(upload)
            uploads[index] = upload_of()
        elif action == "small":
            commands.append(rig.publish(producers[index], b"small"))
            published += 1
        elif action == "come" and len(receivers.credit) < 3:
            receivers.take_all()
            receivers.credit[rig.consumer(settled=settled)] = ticks.choice((1, 2, 9))
        elif action == "go" and receivers.credit:
            consumer = ticks.choice(list(receivers.credit))
            del receivers.credit[consumer]
            receivers.sending.pop(consumer, None)
            held = list(rig.queue().held_by(consumer))
            receivers.got = [word for word in receivers.got if word not in held]
            commands.append(DetachConsumer(consumer))
        elif action == "settle":
            for consumer in receivers.credit:
                words = [word for word in rig.queue().held_by(consumer) if word in receivers.got]
                commands += [Settle(consumer, pack_words(words), ACCEPTED)] if words else []
        receivers.take(rig.step(*commands) if ticks.random() < 0.3 else rig.do(*commands))
        assert len(rig.loop.demand.cut_throughs) <= 1
    receivers.take_all()
    for upload in uploads:
        upload.is_ended = True
        receivers.take(rig.do(EndUpload(upload)))
        dropped.append(upload)
    assert not receivers.sending
    assert not rig.loop.state.uploads
    assert all(upload in dropped for upload in receivers.aborted)
    assert state_of(image_of(rig.loop.state)) == rig.loop.state
    for consumer in receivers.credit:
        receivers.credit[consumer] = 1000
    if not receivers.credit:
        receivers.credit[rig.consumer(settled=settled)] = 1000
    receivers.take([])
    receivers.take_all()
    assert len(set(receivers.got)) == len(receivers.got) <= published
    # What is sent settled does not come back when its consumer goes.
    assert len(receivers.got) == published or (settled and "go" in [action for _, action in steps])
    rig.producer("other")
    rig.next_life()
