"""A broker on a simulated disk, stepped by hand, and the clients that remember what it promised them."""

import random
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

from ambermq.engine.commands import Publish
from ambermq.engine.config import EngineConfig
from ambermq.engine.effects import (
    ConsumerEnded,
    ConsumerReady,
    Deliver,
    Drained,
    Effect,
    OutcomeApplied,
    ProducerReady,
    ProducersEnded,
    PublishDone,
)
from ambermq.engine.entries.outcome import OutcomeKind
from ambermq.engine.entries.stored_message import StoredMessage
from ambermq.engine.loop.durable_loop import DurableLoop
from ambermq.engine.loop.recovery import fold_log
from ambermq.engine.model.state import EMPTY_STATE, State
from ambermq.engine.routing.router import FieldsOf, no_fields
from ambermq.log.recovery.recovery import Recovery
from ambermq.log.storage.worker_threads import InlineWorkers
from tests.engine.rig import read_large
from tests.log.lives import CONFIG, DIRECTORY
from tests.log.simulated import SimulatedStorage
from tests.model.history import History, check_conservation, words_on

__all__ = ["Broker", "Receiver", "Sender"]

ENGINE = EngineConfig(chunk_bytes=1500, dispatch_messages_max=7, tick_bytes_max=1 << 20)


@dataclass(slots=True)
class Sender:
    """A producer that the broker has told us of."""

    id: int
    name: str


@dataclass(slots=True)
class Receiver:
    """A consumer that the broker has told us of, and what it was sent and has not settled."""

    id: int
    queue: int
    settled: bool
    held: list[int] = field(default_factory=list)
    virgin_offset: int = -1
    """Offset of the last message sent to it that was a first delivery."""


class Broker:
    """One directory through many lives."""

    def __init__(self, seed: int, fields_of: FieldsOf = no_fields) -> None:
        self.rng = random.Random(seed)
        self._fields_of = fields_of
        self.storage = SimulatedStorage(self.rng)
        self.now_us = 1_000_000
        self.history = History()
        self.senders: list[Sender] = []
        self.makers: list[int] = []
        """Producers whose dynamic node gets no messages."""
        self.receivers: dict[int, Receiver] = {}
        self.published: dict[bytes, str] = {}
        """Every body that was ever handed over -> the queue's name."""
        self.accepted: dict[bytes, bool] = {}
        """Bodies whose sender was told `accepted` -> whether a power loss may take them."""
        self.excused: set[bytes] = set()
        """Bodies that a client asked to remove, or that were volatile when power was lost."""
        self._open(at_least=0)

    def end(self) -> None:
        """End the threads of the last life."""
        self.loop.log._workers.close()

    @contextmanager
    def _noting(self) -> Iterator[None]:
        """Note each event that the loop applies meanwhile.

        The functions of the fold are replaced for single calls of the loop. A test that fails leaves none replaced.
        """
        with (
            mock.patch("ambermq.engine.loop.logged_state.APPLY", defaultdict(lambda: self._apply)),
            mock.patch("ambermq.engine.dispatch.dispatch.acquired", self._apply),
            mock.patch("ambermq.engine.dispatch.dispatch.settled", self._apply),
        ):
            yield

    def _apply(self, state: State, event: Any) -> State:
        return self.history.apply(state, event)

    # -- lives

    def _open(self, *, at_least: int) -> None:
        recovery = Recovery.open(self.storage, DIRECTORY, CONFIG, self.now_us)
        state = fold_log(recovery)
        self._check_prefix(state, recovery.valid_end, at_least=at_least)
        self.loop = DurableLoop(recovery.log(InlineWorkers()), state, ENGINE, self._fields_of)
        with self._noting():
            self.loop.start(self.now_us)
        self.senders.clear()
        self.makers.clear()
        self.receivers.clear()

    def die(self, ending: str, *, is_whole: bool = True) -> None:
        """End this life by "crash" (power loss) or "kill" and recover; `is_whole`: nothing failed before."""
        log = self.loop.log
        at_least = log.log_end if ending == "kill" and is_whole else log.durable_end
        if ending == "crash":
            self.storage.crash(self.rng)
            self.excused.update(body for body, is_volatile in self.accepted.items() if is_volatile)
        else:
            self.storage.kill()
        log._workers.close()
        self._open(at_least=at_least)
        self._check_messages()

    def close(self) -> None:
        """End this life cleanly and recover."""
        self.loop.log.close()
        self._open(at_least=self.loop.log.log_end)
        self._check_messages()

    def _check_prefix(self, state: State, valid_end: int, *, at_least: int) -> None:
        """The fold of what was found is the live state as it was at the end of some event, past all that was promised.

        `at_least` is the end of what must have survived: all that was written, or all that was durable.
        """
        assert valid_end >= at_least
        assert state == self.history.states.get(valid_end, EMPTY_STATE)
        self.history.forget_from(valid_end)

    def _check_messages(self) -> None:
        """All that was accepted is on its queue, once, byte for byte, or was asked to end; nothing else is."""
        found: list[bytes] = []
        for queue in self.loop.state.queues.values():
            check_conservation(queue)
            for word in words_on(queue):
                body = self.read(queue.entries[word >> 16].chunks if word >> 16 in queue.entries else (), word >> 16)
                assert body == self.history.bodies[word >> 16]
                assert self.published[body] == queue.name
                found.append(body)
        assert len(found) == len(set(found))
        assert set(self.accepted) - self.excused <= set(found)

    def read(self, chunks: Iterable[int], offset: int) -> bytes:
        """Return a message as the log holds it."""
        bodies = self.loop.log.bodies
        wanted = [*chunks, offset]
        run = bodies.get_run(wanted)
        for _ in range(3):
            if run is None:
                self.loop.log.completed()
                run = bodies.get_run(wanted)
        assert run is not None
        return b"".join(run)

    # -- what clients do

    def publish(self, sender: Sender, sizes: list[int], *, durable: bool, settled: bool) -> None:
        """Hand over a run of messages; each begins with a number of its own."""
        first = len(self.published)
        bodies = [b"%08d" % (first + index) + bytes(size) for index, size in enumerate(sizes)]
        self.published.update((body, sender.name) for body in bodies)
        size = sum(map(len, bodies))
        link = (first, bodies, durable)
        self.loop.submit(Publish(link, sender.id, first, bodies, [0] * len(bodies), size, durable, settled))

    def excuse(self, bodies: Iterable[bytes]) -> None:
        """Note that a client asked to remove these bodies."""
        self.excused.update(bodies)

    def body_at(self, word: int) -> bytes:
        """Return what a word stands for."""
        return self.history.bodies.get(word >> 16, b"")

    # -- what the broker does

    def step(self, elapsed_us: int) -> None:
        """End a tick."""
        self.now_us += elapsed_us
        with self._noting():
            effects = self.loop.step(self.now_us)
        assert not effects or not self.loop.log.draft.record_count
        self._leave(effects)
        self._check_state()

    def completed(self) -> None:
        """Complete the syncs and reads in flight."""
        with self._noting():
            effects = self.loop.completed(self.now_us)
        self._leave(effects)

    def _leave(self, effects: list[Effect]) -> None:
        durable_end = self.loop.log.durable_end
        for effect in effects:
            assert effect.after <= durable_end or type(effect) is Deliver
            match effect:
                case PublishDone():
                    self._publish_done(effect, durable_end)
                case ProducerReady() if effect.address:
                    assert effect.producer < durable_end
                    self.makers.append(effect.producer)
                case ProducerReady():
                    assert effect.producer < durable_end
                    self.senders.append(Sender(effect.producer, effect.key))
                case ConsumerReady():
                    assert effect.consumer < durable_end
                    consumer = self.loop.state.consumers.get(effect.consumer)
                    if consumer is not None:
                        self.receivers[effect.consumer] = Receiver(effect.consumer, consumer.queue, effect.key)
                case ConsumerEnded():
                    self.receivers.pop(effect.consumer, None)
                case ProducersEnded():
                    self.senders = [sender for sender in self.senders if sender.id not in effect.producers]
                case Deliver():
                    self._deliver(effect, durable_end)
                case OutcomeApplied():
                    since, entries = effect.reply
                    assert all(self.history.settled_end(entry, since=since) <= durable_end for entry in entries)
                case Drained():
                    self._drained(effect)
                case _:
                    pass

    def _publish_done(self, done: PublishDone, durable_end: int) -> None:
        first, sent, durable = done.link
        start = done.first_id - first  # a run may end in several outcomes: what a full queue has no room for is refused
        bodies = sent[start : start + done.count]
        assert len(bodies) == done.count
        if done.kind is not OutcomeKind.ACCEPTED:
            self.published = {body: name for body, name in self.published.items() if body not in bodies}
            return
        offsets = {body: offset for offset, body in self.history.bodies.items()}
        for body in bodies:
            assert offsets[body] < (durable_end if durable else self.loop.log.log_end)
            self.accepted[body] = not durable

    def _deliver(self, effect: Deliver, durable_end: int) -> None:
        receiver = self.receivers.get(effect.consumer)
        if receiver is None:
            return
        assert len(effect.words) == len(effect.bodies)
        for word, body in zip(effect.words, effect.bodies, strict=True):
            offset = word >> 16
            whole = read_large(self.loop, body) if isinstance(body, StoredMessage) else bytes(body)
            # None: a piece of it must be read from the disk first.
            assert whole is None or whole == self.history.bodies[offset]
            assert offset < durable_end or offset in self.history.volatile
            assert word not in receiver.held
            if self.history.acquisitions[effect.queue, offset] == 1:
                assert offset > receiver.virgin_offset
                receiver.virgin_offset = offset
            if effect.settled:
                assert 0 < self.history.settled_end((effect.queue, offset), since=0) <= durable_end
            else:
                receiver.held.append(word)

    def _drained(self, effect: Drained) -> None:
        assert not self.loop.demand.wants[effect.consumer].draining or effect.consumer not in self.receivers

    def _check_state(self) -> None:
        """Check conservation, and that no consumer with credit waits for a message that it could have."""
        loop = self.loop
        for queue in loop.state.queues.values():
            check_conservation(queue)
            if queue.id in loop.demand.dirty:
                continue
            for want in loop.demand.rings.get(queue.id, ()):
                if want.credit > 0:
                    assert not queue.ready
                    excluded = [queue.entries[word >> 16].excluded for word in queue.returned]
                    assert all(want.consumer in each for each in excluded)
