"""Queues with random mixes of settings under random commands, on a simulated disk, with kills and power cuts.

After each tick the laws hold: the fold of the log is the live state, each message is in one place (ledger.py), limits
hold, locks end, last values and ids are single. Everything random comes from one seed.
"""

import random
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from ambermq.engine.commands import (
    COMMITTED,
    AttachConsumer,
    AttachProducer,
    BeginTransaction,
    DeclareQueue,
    DeleteQueue,
    DetachConsumer,
    Discharge,
    MoveMessages,
    Publish,
    PurgeQueue,
    RemoveMessages,
    Settle,
    Transaction,
    UpdateQueue,
)
from ambermq.engine.config import EngineConfig
from ambermq.engine.effects import Answered, ConsumerReady, Deliver, Effect, ProducerReady, PublishDone
from ambermq.engine.entries.discard_reason import MoveReason
from ambermq.engine.entries.entry import Entry
from ambermq.engine.entries.entry_word import pack_words, unpack_words
from ambermq.engine.entries.outcome import ACCEPTED, MODIFIED_FAILED, REJECTED, RELEASED, Outcome, OutcomeKind
from ambermq.engine.errors import EngineError
from ambermq.engine.events import Event, Published, QueueConfigured
from ambermq.engine.fold.apply import apply
from ambermq.engine.loop.schedule import SOON
from ambermq.engine.model.state import State, totals_of
from ambermq.engine.settings.queue_settings import Settings
from ambermq.engine.settings.setting_conflicts import check_combination
from ambermq.engine.settings.setting_table import SETTINGS, changed_settings
from ambermq.engine.snapshots.state_codec import image_of, state_of
from ambermq.log.buffer import Buffer
from tests.engine.rig import Rig
from tests.log.simulated import SimulatedStorage
from tests.model.laws.ledger import Ledger
from tests.model.laws.queue_laws import check_keys, check_limits, check_served
from tests.model.message_fields import MessageFields

__all__ = ["Mix"]

NAMES = ("one", "two", "three", "four")
VALUES: dict[str, tuple[object, ...]] = {
    "messages_max": (1, 3, 10),
    "bytes_max": (200, 2000),
    "overflow": ("drop-head", "dead-letter", "block"),
    "delivery_count_max": (1, 2, 4),
    "dead_letter": NAMES,
    "message_ttl_ms": (5, 2000, 60_000),
    "redelivery_delay_ms": (1, 900, 20_000),
    "redelivery_backoff": (2, 10),
    "redelivery_delay_ms_max": (500, 30_000),
    "exclusive": (True,),
    "auto_delete": (True,),
    "expires_ms": (3000, 100_000),
    "paused": (True,),
    "priorities": (True,),
    "last_value": ("turn",),
    "non_destructive": (True,),
    "dedup_window_ms": (10, 5000, 600_000),
    "lock_ms": (3, 1500),
    "groups": (True,),
    "group_rebalance": (True,),
}
"""What settings are drawn from; without a draw a setting is off."""
RARE = {
    "paused": 0.03,
    "message_ttl_ms": 0.15,
    "non_destructive": 0.08,
    "auto_delete": 0.08,
    "expires_ms": 0.1,
    "last_value": 0.2,
}
OFTEN = {"dead_letter": 0.6, "groups": 0.5, "priorities": 0.5, "messages_max": 0.5}
STAYS = ("priorities", "groups")
"""Settings that no update changes here: the order law of a message would have a history."""
OUTCOMES = (
    *(ACCEPTED, ACCEPTED, REJECTED, RELEASED, MODIFIED_FAILED, MODIFIED_FAILED),
    Outcome(OutcomeKind.MODIFIED, undeliverable_here=True),
    Outcome(OutcomeKind.MODIFIED, delivery_failed=True, undeliverable_here=True),
)
LATE_US = 60_000
"""So late a lock may end: timers are rounded, and a lock within a transaction is looked at again later."""
ENGINE = EngineConfig(
    lazy_write_ms=0,
    dispatch_messages_max=7,
    tick_changes_max=16,
    scan_messages_max=6,
    groups_max=2,
    dead_letter_moves_max=4,
)


@dataclass(slots=True)
class Open:
    """A transaction, and the numbers of the messages that it has taken."""

    transaction: Transaction
    numbers: list[int] = field(default_factory=list)
    is_promised: bool = False
    """Whether the broker has answered that it is committed."""


class Mix:
    """One directory through random commands and kills."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.storage = SimulatedStorage(random.Random(seed))
        self.used: Counter[str] = Counter()
        """How often each setting was in a declared or updated queue, for the coverage of a run."""
        self.ledger = Ledger()
        self.bodies: dict[int, bytes] = {}
        """Offset of a publish record -> the message."""
        self.count = 0
        """The messages that were handed over; each begins with its number."""
        self.delivered = 0
        self._stored = set[int]()
        self._promised = set[int]()
        """Durable messages that the broker has accepted, or whose transaction it has committed."""
        self._discharged: list[Open] = []
        """The transactions that were in doubt when power was lost."""
        self._refused = set[int]()
        self._ids: dict[tuple[int, int], int] = {}
        self._locks: dict[tuple[int, int], int] = {}
        self._selecting = frozenset[int]()
        self._next = 0
        self._folded: State | None = None
        self._live(1_000_000)

    def _live(self, now_us: int) -> None:
        self.rig = Rig(self.storage, config=ENGINE, fields_of=MessageFields, now_us=now_us)
        self.rig.is_linkless = False
        self.producers: list[int] = []
        self.transactions: list[Open] = []
        self._locks.clear()
        self._folded = self._folded or self.rig.recovered
        self._come_back()
        self._do()
        self._discharged.clear()
        lost = self._promised - self._stored
        assert all(number ^ 1 in self._stored for number in lost), "a promised message is lost"

    def _come_back(self) -> None:
        """Declare the queues that are not there, and attach the usual clients."""
        for name in NAMES:
            if self.rig.loop.state.queue_named(name) is None:
                self._submit(DeclareQueue("key", name, self._settings()))
            self._submit(AttachProducer("key", name, "container", f"to {name}"))
            self._submit(AttachConsumer("key", name, "container", "in"))

    def end(self) -> None:
        """End the last life."""
        self.rig.kill()

    def run(self, steps: int) -> None:
        """Run so many random ticks."""
        for number in range(steps):
            self.rig.now_us += self.rng.choice((0, 0, 50, 2000, 2000, 700_000, 700_000, 5_000_000))
            for _ in range(self.rng.randint(1, 5)):
                self._command()
            self._do()
            if number % 8 == 0:
                state = self.rig.loop.state
                assert state_of(image_of(state)) == state
            roll = self.rng.random()
            if roll < 0.03:
                assert self.rig.loop.state == self._folded
                self.rig.kill()
                self._live(self.rig.now_us + 1000)
            elif roll < 0.08:
                self._cut_power()

    def _cut_power(self) -> None:
        """Lose power after some ticks, some of them synced: what was promised is there, all of a commit or nothing."""
        rig = self.rig
        for _ in range(self.rng.randint(1, 4)):
            self._command()
            if self.transactions and self.rng.random() < 0.5:
                self._discharge(self.transactions[-1])
            effects = rig.step()
            if self.rng.random() < 0.7:
                rig.loop.log.write(rig.now_us)
            if self.rng.random() < 0.3:
                rig.loop.log.request_sync()
                effects += rig.completed()
            self._take([effect for effect in effects if type(effect) is not Deliver])
        self.storage.crash(self.rng)
        rig.loop.log._workers.close()
        in_doubt = [*self.transactions, *self._discharged]
        self._live(rig.now_us + 1000)
        for one in in_doubt:
            missing = set(one.numbers) - self._stored
            is_committed = one.is_promised or len(missing) < len(one.numbers)
            # A message whose id was there already is accepted, and not stored.
            assert not is_committed or all(number ^ 1 in self._stored for number in missing), "a part is committed"

    # -- what clients do

    def _command(self) -> None:
        weights = {
            self._publish: 7,
            self._attach: 3,
            self._credit: 7,
            self._settle: 7,
            self._transact: 2,
            self._manage: 2,
            self._move: 1,
            self._detach: 1,
        }
        self.rng.choices(list(weights), list(weights.values()))[0]()

    def _submit(self, command: Any) -> None:
        self.rig.loop.submit(command)

    def _settings(self) -> Settings:
        """Return a random mix that a queue may have."""
        while True:
            names = [name for name in SETTINGS if name in VALUES]
            chosen = [name for name in names if self.rng.random() < RARE.get(name, OFTEN.get(name, 0.25))]
            settings = changed_settings(Settings(), {name: self.rng.choice(VALUES[name]) for name in chosen})
            try:
                check_combination(settings)
            except EngineError:
                continue
            self.used.update(chosen)
            return settings

    def _manage(self) -> None:
        name, roll = self.rng.choice(NAMES), self.rng.random()
        if roll < 0.3:
            self._submit(DeclareQueue("key", name, self._settings()))
        elif roll < 0.45:
            self._submit(DeleteQueue("key", name))
            self._submit(DeclareQueue("key", name, self._settings()))
        elif roll < 0.55:
            self._submit(PurgeQueue("key", name, scheduled=self.rng.random() < 0.3))
        else:
            names = [one for one in VALUES if SETTINGS[one].is_changeable and one not in STAYS]
            changes = {one: self.rng.choice((*VALUES[one], SETTINGS[one].default)) for one in self.rng.sample(names, 2)}
            if self.rng.random() < 0.5:
                changes["paused"] = False
            self._submit(UpdateQueue("key", name, totals_of, changes))

    def _attach(self) -> None:
        name = self.rng.choice(NAMES)
        if self.rng.random() < 0.4:
            self._submit(AttachProducer("key", name, "container", f"to {name}"))
        elif len(self.rig.loop.state.consumers) < 12:
            selector = "colour = 'red'" if self.rng.random() < 0.2 else ""
            priority = self.rng.choice((0, 0, 5))
            settled = self.rng.random() < 0.2
            self._submit(AttachConsumer("key", name, "container", "in", settled, selector, priority=priority))

    def _messages(self, within: Open | None = None) -> Publish | None:
        if not self.producers:
            return None
        count, first = self.rng.randint(1, 5), self.count
        self.count += count
        bodies: list[Buffer] = [b"%08d" % (first + one) + bytes(self.rng.choice((0, 40, 300))) for one in range(count)]
        hashes = [1 + (first + one) // 2 for one in range(count)]
        producer, size = self.rng.choice(self.producers), sum(map(len, bodies))
        durable = self.rng.random() < 0.8
        command = Publish((within, durable), producer, first, bodies, hashes, size, durable)
        command.priority = self.rng.choice((4, 4, 0, 7, 9))
        if self.rng.random() < 0.15:
            command.ttl_ms = self.rng.choice((1, 900, 30_000))
        if self.rng.random() < 0.2:
            command.delay_ms = self.rng.choice((1, 900, 8000))
        if self.rng.random() < 0.5:
            command.groups = [self.rng.choice((0, 6, 8, 10, 9)) for _ in bodies]
        command.transaction = None if within is None else within.transaction
        return command

    def _publish(self) -> None:
        command = self._messages()
        if command is not None:
            self._submit(command)

    def _credit(self) -> None:
        wants = sorted(self.rig.loop.demand.wants)
        if wants:
            self.rig.loop.set_credit(self.rng.choice(wants), self.rng.randint(0, 9), draining=self.rng.random() < 0.1)

    def _some_held(self) -> tuple[int, list[int]] | None:
        retired = {key for one in self.transactions for key in one.transaction.retirements}
        held = [
            (consumer, [word for word in words if (consumer, word) not in retired])
            for queue in self.rig.loop.state.queues.values()
            for consumer, words in sorted(queue.acquired.items())
        ]
        held = [one for one in held if one[1]]
        if not held:
            return None
        consumer, words = self.rng.choice(held)
        return consumer, self.rng.sample(words, self.rng.randint(1, len(words)))

    def _settle(self) -> None:
        found = self._some_held()
        if found:
            self._submit(Settle(found[0], pack_words(found[1]), self.rng.choice(OUTCOMES)))

    def _transact(self) -> None:
        if not self.transactions or (len(self.transactions) < 3 and self.rng.random() < 0.3):
            one = Open(Transaction(b"%d" % self.count))
            self.transactions.append(one)
            self._submit(BeginTransaction(one.transaction))
            return
        one = self.rng.choice(self.transactions)
        roll = self.rng.random()
        if roll < 0.4:
            command = self._messages(one)
            if command is not None:
                self._submit(command)
        elif roll < 0.7:
            if found := self._some_held():
                for word in found[1]:
                    is_settled = self.rng.random() < 0.5
                    one.transaction.retire(found[0], word, self.rng.choice(OUTCOMES), is_settled=is_settled)
        else:
            self._discharge(one)

    def _discharge(self, one: Open) -> None:
        self.transactions.remove(one)
        self._discharged.append(one)
        # A lock that has ended within a transaction is looked at again a moment after it.
        retired = self._locks.keys() & one.transaction.retirements.keys()
        self._locks.update({key: max(self._locks[key], self.rig.now_us) for key in retired})
        self._submit(Discharge(one, one.transaction, self.rng.random() < 0.3))

    def _move(self) -> None:
        name = self.rng.choice(NAMES)
        queue = self.rig.loop.state.queue_named(name)
        if queue is None:
            return
        offsets = [word >> 16 for words in queue.waiting_lists for word in words if self.rng.random() < 0.5]
        roll = self.rng.random()
        if roll < 0.2:
            self._submit(RemoveMessages("key", name, offsets, scheduled=self.rng.random() < 0.5))
        elif roll < 0.6:
            self._submit(MoveMessages("key", name, offsets, "", MoveReason.REDRIVEN))
        else:
            reason = self.rng.choice((MoveReason.MOVED, MoveReason.COPIED))
            self._submit(MoveMessages("key", name, offsets, self.rng.choice(NAMES), reason))

    def _detach(self) -> None:
        consumers = sorted(self.rig.loop.state.consumers)
        if consumers:
            self._submit(DetachConsumer(self.rng.choice(consumers)))

    # -- what the broker does

    def _do(self) -> None:
        """Run ticks until all is quiet, and check the laws."""
        rig, loop = self.rig, self.rig.loop
        for _ in range(200):
            effects = rig.step()
            loop.log.write(rig.now_us)
            while loop.log.durable_end < loop.log.log_end:
                loop.log.request_sync()
                effects += rig.completed()
            effects += rig.completed()
            loop.log.write(rig.now_us)
            self._check()
            self._take(effects)
            is_timer_due = loop.schedule.timer_us <= rig.now_us
            if not (rig.due >= SOON or loop.is_late or loop.is_waiting or is_timer_due):
                break
        else:
            raise AssertionError("the loop does not rest")
        self._check_quiet()

    def _take(self, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case ProducerReady():
                    self.producers.append(effect.producer)
                case ConsumerReady() if effect.selector is not None:
                    self._selecting |= {effect.consumer}
                case PublishDone():
                    self._publish_done(effect)
                case Answered() if isinstance(effect.key, Open):
                    effect.key.is_promised = effect.value == COMMITTED
                    self._promised.update(effect.key.numbers if effect.key.is_promised else ())
                case Deliver():
                    self._delivered(effect)
                case _:
                    pass

    def _publish_done(self, done: PublishDone) -> None:
        numbers = range(done.first_id, done.first_id + done.count)
        if done.kind is not OutcomeKind.ACCEPTED:
            self._refused.update(numbers)
            return
        within, durable = done.link
        if within is not None:
            within.numbers += numbers
        elif durable:
            self._promised.update(numbers)

    def _delivered(self, deliver: Deliver) -> None:
        self.delivered += len(deliver.words)
        for word, body in zip(deliver.words, deliver.bodies, strict=True):
            assert self.whole(body) == self.bodies[self.ledger.origins[word >> 16]]
            if deliver.lock_ms and not deliver.settled:
                self._locks[deliver.consumer, word] = self.rig.now_us + 1000 * deliver.lock_ms

    def _check(self) -> None:
        """Fold the events that are new, note each, and hold the result against the live state."""
        loop = self.rig.loop
        events: list[Event] = []
        while self._next < loop.durable_end:
            # One read ends with its segment.
            some, self._next = loop.replay(self._next).read(events_max=1 << 20, bytes_max=1 << 30)
            events += some
        state = self._folded
        assert state is not None
        for event in events:
            self.ledger.note(state, event, self._selecting)
            if type(event) is Published:
                self._note_bodies(state, event)
            elif type(event) is QueueConfigured:
                window_ms = state.queues[event.queue].settings.dedup_window_ms
                if window_ms != event.settings.dedup_window_ms:
                    # A longer window brings no id back that is forgotten.
                    self._ids = {key: since for key, since in self._ids.items() if key[0] != event.queue}
            state = apply(state, event)
        self._folded = state
        assert not loop.log.draft.record_count
        assert state == loop.state
        self.ledger.check(state)
        for queue in state.queues.values():
            check_limits(queue, self.ledger)
        self.ledger.published.clear()

    def _note_bodies(self, state: State, event: Published) -> None:
        words = unpack_words(event.words)
        entries = [Entry(chunks=event.chunks)] if event.chunks else None
        while (bodies := self.rig.loop.messages(words, entries)) is None:
            self.rig.completed()
        for word, body in zip(words, bodies, strict=True):
            self.bodies[word >> 16] = whole = self.whole(body)
            number = int(whole[:8])
            assert number not in self._stored
            self._stored.add(number)
            for queue in event.queues:
                window_us = 1000 * state.queues[queue].settings.dedup_window_ms
                before = self._ids.get((queue, number // 2))
                is_in_window = before is not None and state.elapsed_us(event.time_us) - before < window_us
                assert not is_in_window or queue in self.ledger.restless, "a duplicate is stored"
                if window_us:
                    self._ids[queue, number // 2] = state.elapsed_us(event.time_us)

    def whole(self, body: Any) -> bytes:
        """Return a message as it was sent."""
        assert isinstance(body, bytes | bytearray | memoryview)
        return bytes(body)

    def _check_quiet(self) -> None:
        """Check what holds when nothing is under way."""
        loop = self.rig.loop
        assert not self._stored & self._refused
        for (consumer, word), until_us in list(self._locks.items()):
            one = loop.state.consumers.get(consumer)
            queue = loop.state.queues.get(one.queue) if one is not None else None
            if queue is None or not queue.settings.lock_ms or word not in list(queue.held_by(consumer)):
                del self._locks[consumer, word]
            elif until_us + LATE_US < self.rig.now_us:
                retired = any((consumer, word) in each.transaction.retirements for each in self.transactions)
                assert retired, "a lock does not end"
        for queue in loop.state.queues.values():
            if queue.settings.last_value and queue.keyed is not None:
                check_keys(queue, self.bodies, self.ledger)
            if queue.settings.exclusive:
                continue
            if queue.id not in loop.demand.dirty and not queue.settings.paused and not queue.has_groups:
                check_served(queue, loop)
