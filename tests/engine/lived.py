"""A broker's life on a real directory, at random, with what its state was at each moment of it."""

import random
from dataclasses import replace
from pathlib import Path

from msgspec import structs

from ambermq.engine.commands import (
    AttachConsumer,
    AttachProducer,
    DeclareQueue,
    DeleteQueue,
    DetachConsumer,
    DetachProducer,
    EndUpload,
    ExpireLinks,
    MoveMessages,
    Publish,
    PurgeQueue,
    RemoveMessages,
    ResetHost,
    Settle,
    SettleTags,
    StoreChunk,
    Suspension,
    UpdateQueue,
    Upload,
)
from ambermq.engine.config import EngineConfig
from ambermq.engine.effects import Effect
from ambermq.engine.entries.delivery_key import delivery_key
from ambermq.engine.entries.discard_reason import MoveReason
from ambermq.engine.entries.entry import PLAIN
from ambermq.engine.entries.entry_word import pack_words
from ambermq.engine.entries.outcome import ACCEPTED, MODIFIED_FAILED, REJECTED, RELEASED, Outcome
from ambermq.engine.events import Event, Published
from ambermq.engine.fold.apply import apply
from ambermq.engine.loop.durable_loop import DurableLoop
from ambermq.engine.loop.recovery import fold_log
from ambermq.engine.model.state import EMPTY_STATE, State, totals_of
from ambermq.engine.model.suspended_link import Keeping
from ambermq.engine.records.event_fields import next_after
from ambermq.engine.records.reader import events_of
from ambermq.engine.selectors.fields import ABSENT, Added
from ambermq.engine.settings.queue_settings import Settings
from ambermq.log.buffer import Buffer
from ambermq.log.config import LogConfig
from ambermq.log.recovery.recovery import Recovery
from ambermq.log.storage.disk import DiskStorage
from ambermq.log.storage.worker_threads import InlineWorkers
from tests.log.lives import CONFIG

__all__ = ["LIVED", "Lived", "complete", "singles", "states_of"]

LIVED = replace(CONFIG, hot_bytes_max=1 << 16, hot_large_bytes_max=1 << 16)
_ENGINE = EngineConfig(chunk_bytes=1500, dispatch_messages_max=7, dedup_ids_max=20, outcome_annotations_bytes_max=4096)
_READS_MAX = 1000
_NAMES = ("one", "two", "three")
_KEEPINGS = (Keeping(), Keeping(0, 5_000), Keeping(2, 5_000), Keeping(2, 300_000))


class _Fields:
    """The fields of a message: `turn`, one of three or none, and an id, which the next one of some messages has too."""

    def __init__(self, body: Buffer, _added: Added = (), /) -> None:
        self._body = bytes(body[:8])

    def get(self, name: str) -> object:
        number = int(self._body)
        if name == "properties.message-id":
            return number // 3 * 2
        return number % 4 if name == "turn" and number % 4 else ABSENT


class Lived:
    """One directory, lived in again and again; what was written is durable after `end`, or killed before."""

    sync_share = 0.8
    """The probability that a tick ends with the syncs and reads that it began. At 1 no lock depends on the disk."""
    is_reset = True
    """Whether the virtual host is reset now and then."""

    def __init__(self, directory: Path, seed: int, *, config: LogConfig = LIVED) -> None:
        self.directory = str(directory)
        self.rng = random.Random(seed)
        self.recovery = random.Random(seed)
        """The choices of link recovery."""
        self.now_us = 1_700_000_000_000_000
        self.bodies: dict[bytes, int] = {}
        """Whole bodies that were handed over, in order."""
        self._config = config
        self.start()

    def start(self) -> None:
        """Recover and begin a life."""
        recovery = Recovery.open(DiskStorage(), self.directory, self._config, self.now_us)
        state = fold_log(recovery)
        self.workers = InlineWorkers()
        self.arriving: tuple[int, Upload, bytes] | None = None
        """The producer of a large message that arrives, its pieces, and how it begins."""
        self.loop = DurableLoop(recovery.log(self.workers), state, _ENGINE, _Fields)
        self.loop.start(self.now_us)

    def live(self, steps: int) -> None:
        """Run so many random commands."""
        for _ in range(steps):
            self.now_us += self.rng.choice((0, 40, 1_000_000))
            self.rng.choice(
                (
                    self.attach,
                    self.attach,
                    self.publish,
                    self.publish,
                    self.publish,
                    self.upload,
                    self.take,
                    self.settle,
                    self.seldom,
                )
            )()
            if self.recovery.random() < 0.15:
                self.suspend()
            if self.rng.random() < 0.7:
                self.step()

    def step(self) -> None:
        """End a tick; sometimes what it wrote is synced."""
        self.loop.step(self.now_us)
        if self.rng.random() < self.sync_share:
            complete(self.loop, self.now_us)

    def settle_down(self) -> None:
        """Sync until every record is durable."""
        for _ in range(4):
            self.loop.step(self.now_us)
            self.now_us += 50_000
            complete(self.loop, self.now_us)

    def end(self, *, cleanly: bool = True) -> None:
        """End this life: by a close, or as a SIGKILL does."""
        if cleanly:
            self.loop.log.close()
            return
        log = self.loop.log
        self.workers.close()
        log.bodies.close()
        for spare in (log._spare, *log._housekeeper.spares):
            if spare is not None:
                spare.file.close()
        log._active.file.close()
        log._lock.release()

    def attach(self) -> None:
        """A link comes."""
        name = self.rng.choice(_NAMES)
        if self.rng.random() < 0.5:
            tags = self.tags_kept(f"to {name}")
            keeping = self.recovery.choice(_KEEPINGS)
            self.loop.submit(AttachProducer("key", name, "container", f"to {name}", keeping=keeping, resumes=tags))
        else:
            keys = self.deliveries_held(f"from {name}")
            keeping = self.recovery.choice(_KEEPINGS)
            self.loop.submit(AttachConsumer("key", name, "container", f"from {name}", keeping=keeping, resumes=keys))

    def tags_kept(self, link: str) -> list[bytes] | None:
        """The tags that the sender of a suspended link has not settled; None if it does not resume it."""
        state = self.loop.state
        found = state.suspended_ids.get(("", "container", link, False), 0)
        if self.recovery.random() < 0.3:
            return None
        return [tag for tag in sorted(state.tags.get(found, ())) if self.recovery.random() < 0.7]

    def deliveries_held(self, link: str) -> dict[int, Outcome | None] | None:
        """What the receiver of a suspended link has, with outcomes; None if it does not resume it."""
        state = self.loop.state
        known = state.suspended.get(state.suspended_ids.get(("", "container", link, True), 0))
        queue = None if known is None else state.queues.get(known.queue)
        if self.recovery.random() < 0.3:
            return None
        if known is None or queue is None:
            return {}
        words = [word for word in queue.held_by(known.id) if self.recovery.random() < 0.8]
        outcomes = (None, None, ACCEPTED, REJECTED, RELEASED)
        keys = [delivery_key(word, queue.entries.get(word >> 16, PLAIN).attempt) for word in words]
        return {key: self.recovery.choice(outcomes) for key in keys}

    def suspend(self) -> None:
        """A link is detached, and may be resumed; the session or connection of others ends; tags are settled."""
        state = self.loop.state
        links = sorted((*state.consumers, *state.producers))
        tagged = [
            (link, tag) for link in sorted(state.tags) if link in state.producers for tag in sorted(state.tags[link])
        ]
        match self.recovery.randint(0, 3):
            case 0 if tagged:
                link, tag = self.recovery.choice(tagged)
                self.loop.submit(SettleTags(link, (tag,)))
            case 1:
                self.loop.submit(ExpireLinks(tuple(one.id for one in state.suspended.values() if not one.until_us)))
            case _ if links:
                link = self.recovery.choice(links)
                suspension = self.recovery.choice((Suspension.OPEN, Suspension.OVER))
                if link in state.consumers:
                    self.loop.submit(DetachConsumer(link, suspension=suspension))
                else:
                    self.loop.submit(DetachProducer(link, suspension=suspension))

    def publish(self) -> None:
        """A run is sent, or a large message."""
        producers = sorted(self.loop.state.producers)
        if producers:
            sizes = [self.rng.choice((0, 30, 300)) for _ in range(self.rng.randint(1, 6))]
            if self.rng.random() < 0.1:
                sizes = [4000]
            bodies: list[Buffer] = [
                b"%08d" % (len(self.bodies) + index) + bytes(size) for index, size in enumerate(sizes)
            ]
            self.bodies.update((bytes(body), len(self.bodies)) for body in bodies)
            size = sum(map(len, bodies))
            hashes = [1 + number % 7 for number in range(len(bodies))]
            command = Publish("link", self.rng.choice(producers), 0, bodies, hashes, size)
            if self.rng.random() < 0.15:
                command.delay_ms = self.rng.choice((1, 900, 5000))
                if len(self.bodies) % 2:
                    # Each has a time of its own; the time of the first one may have passed.
                    now_ms, step_ms = self.now_us // 1000 + 1, command.delay_ms
                    command.times_ms = [now_ms + index * step_ms for index in range(len(bodies))]
                    command.time_ms, command.delay_ms = now_ms, 0
            if len(bodies) == 1 and self.recovery.random() < 0.7:
                command.tag = b"tag %d" % self.recovery.randint(0, 9)
            if len(self.bodies) % 3 == 0:
                command.priority = len(self.bodies) % 10
            if len(self.bodies) % 4 == 1:
                command.groups = [(0, 6, 8, 8, 9)[(len(self.bodies) + index) % 5] for index in range(len(bodies))]
            self.loop.submit(command)

    def upload(self) -> None:
        """A piece of a large message comes, or its last one, or its end without a message."""
        producers = sorted(self.loop.state.producers)
        if self.arriving is None and producers:
            self.arriving = self.rng.choice(producers), Upload(b""), b"%08d" % len(self.bodies)
            self.bodies[self.arriving[2]] = len(self.bodies)
        if self.arriving is None:
            return
        producer, upload, body = self.arriving
        if not upload.chunks or self.rng.random() < 0.5:
            piece = bytes(_ENGINE.chunk_bytes) if upload.chunks else body.ljust(_ENGINE.chunk_bytes, b"\0")
            self.loop.submit(StoreChunk("link", producer, upload, piece))
        elif self.rng.random() < 0.3:
            self.loop.submit(EndUpload(upload))
            self.arriving = None
        else:
            # The pieces are counted when they are stored.
            self.step()
            size = upload.size + 200
            last = [bytes(200)]
            self.loop.submit(Publish("link", producer, 0, last, [1 + len(self.bodies) % 7], size, upload=upload))
            self.bodies[body.ljust(size, b"\0")] = len(self.bodies)
            self.arriving = None

    def take(self) -> None:
        """A consumer has credit."""
        consumers = sorted(self.loop.state.consumers)
        if consumers:
            self.loop.set_credit(self.rng.choice(consumers), self.rng.randint(0, 8))

    def settle(self) -> None:
        """A consumer says what became of some messages."""
        held = [
            (consumer, word)
            for queue in self.loop.state.queues.values()
            for consumer, words in queue.acquired.items()
            for word in words
        ]
        if held:
            consumer = self.rng.choice(held)[0]
            words = [word for one, word in held if one == consumer][: self.rng.randint(1, 4)]
            outcome = self.rng.choice((ACCEPTED, ACCEPTED, REJECTED, RELEASED, MODIFIED_FAILED))
            text = str(words[0] % 40)
            if outcome is REJECTED:
                outcome = replace(outcome, condition="app:bad", description=text)
            elif outcome is MODIFIED_FAILED and words[0] % 3:
                outcome = replace(outcome, annotations=((b"\xa3\x01a", b"\xa1\x02" + text.rjust(2).encode()),))
            self.loop.submit(Settle(consumer, pack_words(words), outcome))

    def seldom(self) -> None:
        """A queue is purged, deleted, declared or updated; a link goes."""
        name, state = self.rng.choice(_NAMES), self.loop.state
        consumers, producers = sorted(state.consumers), sorted(state.producers)
        match self.rng.randint(0, 9):
            case 0:
                self.loop.submit(PurgeQueue("key", name, scheduled=self.rng.random() < 0.3))
            case 1:
                self.loop.submit(DeleteQueue("key", name))
            case 2:
                self.loop.submit(DeclareQueue("key", name, Settings(last_value=self.rng.choice(("", "turn")))))
            case 3 if consumers:
                self.loop.submit(DetachConsumer(self.rng.choice(consumers)))
            case 4 if producers:
                self.loop.submit(DetachProducer(self.rng.choice(producers)))
            case 5 if self.rng.random() < 0.2 and self.is_reset:
                self.loop.submit(ResetHost("key"))
            case 6:
                self.loop.submit(UpdateQueue("key", name, totals_of, {"messages_max": self.rng.choice((0, 5, 50))}))
            case 7:
                values: dict[str, object] = {"dead_letter": self.rng.choice((*_NAMES, "none")), "delivery_count_max": 2}
                values["redelivery_delay_ms"] = self.rng.choice((0, 1, 3000))
                values["lock_ms"] = self.rng.choice((0, 2, 3000))
                self.loop.submit(UpdateQueue("key", name, totals_of, values))
            case 8:
                overflow = self.rng.choice(("reject", "drop-head", "dead-letter"))
                window_ms = self.rng.choice((0, 0, 2000, 60_000))
                values = {"overflow": overflow, "dedup_window_ms": window_ms}
                self.loop.submit(UpdateQueue("key", name, totals_of, values))
            case 9:
                self.move(name)

    def move(self, name: str) -> None:
        """Some messages are moved, copied, redriven or removed."""
        queue = self.loop.state.queue_named(name)
        words = [] if queue is None else [word for words in queue.waiting_lists for word in words]
        offsets = [word >> 16 for word in words if self.rng.random() < 0.3]
        to, reason = self.rng.choice(_NAMES), self.rng.choice((MoveReason.MOVED, MoveReason.COPIED))
        if self.rng.random() < 0.3:
            to, reason = "", MoveReason.REDRIVEN
        if self.rng.random() < 0.1:
            self.loop.submit(RemoveMessages("key", name, offsets, scheduled=self.rng.random() < 0.5))
        else:
            self.loop.submit(MoveMessages("key", name, offsets, to, reason))

    def events(self) -> list[Event]:
        """Return every event of a log whose life has ended, as recovery reads it."""
        recovery = Recovery.open(DiskStorage(), self.directory, self._config, self.now_us)
        events = [event for batch in recovery.batches() for event in events_of(batch)]
        recovery.close()
        return events


def complete(loop: DurableLoop, now_us: int) -> list[Effect]:
    """Complete the syncs in flight, and every read of a delivery; return the effects.

    So a delivery leaves at the same time wherever its bodies are: in memory, in a segment, or in a compressed one.
    """
    effects = loop.completed(now_us)
    for _ in range(_READS_MAX):
        if not loop._release.queues:
            return effects
        effects += loop.completed(now_us)
    raise AssertionError(loop)


def singles(events: list[Event]) -> list[Event]:
    """Return events with each run of published messages as so many runs of one."""
    alone: list[Event] = []
    for event in events:
        if type(event) is Published:
            for offset in range(event.offset, next_after(event)):
                word = event.words[(offset - event.offset) * 8 :][:8]
                size = (int.from_bytes(word[:2], "little") & 0x7FF) << (word[1] >> 3)
                alone.append(structs.replace(event, offset=offset, words=word, size=size))
        else:
            alone.append(event)
    return alone


def states_of(events: list[Event]) -> dict[int, State]:
    """Return the state after the event at each offset."""
    state, states = EMPTY_STATE, {}
    for event in singles(events):
        state = states[event.offset] = apply(state, event)
    return states
