"""Mixes with messages in pieces, a muxer before queues of different settings, and links that are suspended and resumed.

The laws are those of mix.py. A large message is one message of its queues, or nothing, also for those that receive it
while it arrives (early_receivers.py). What a suspended link holds is held until it is resumed or ends.
"""

import random
from typing import Any

from ambermq.engine.commands import (
    AttachConsumer,
    AttachMember,
    AttachProducer,
    DeclareMuxer,
    DetachConsumer,
    DetachMember,
    EndUpload,
    ExpireLinks,
    Publish,
    ResendHeld,
    StoreChunk,
    Suspension,
    Upload,
)
from ambermq.engine.effects import CutThroughBegun, CutThroughEnded, Deliver, Effect
from ambermq.engine.entries.delivery_key import delivery_key
from ambermq.engine.entries.entry import PLAIN
from ambermq.engine.entries.outcome import ACCEPTED, REJECTED, RELEASED, Outcome
from ambermq.engine.entries.stored_message import StoredMessage
from ambermq.engine.errors import EngineError
from ambermq.engine.model.muxer import MuxerKind
from ambermq.engine.model.suspended_link import UNSETTLED_STATE, Keeping
from ambermq.engine.settings.queue_settings import Settings
from ambermq.engine.settings.setting_conflicts import check_combination
from ambermq.engine.settings.setting_table import changed_settings
from tests.engine.rig import read_large
from tests.model.early_receivers import EarlyReceivers
from tests.model.mix import NAMES, Mix

__all__ = ["WideMix"]

MUXER = "fan"
LINKS = ("first", "second", "third")
"""The names of the links that may be resumed; each has a queue of its own at a time."""
KEEPINGS = (Keeping(UNSETTLED_STATE, 3000), Keeping(UNSETTLED_STATE, 300_000), Keeping(0, 3000))
PIECE_BYTES = 100


class WideMix(Mix):
    """One directory through random commands and kills."""

    def __init__(self, seed: int) -> None:
        self.large = self.read_large = self.fanned = self.resumed = 0
        """Large messages that were handed over and read, members of the muxer, resumed links that held something."""
        self._uploads: list[tuple[int, Upload, int]] = []
        self.early = EarlyReceivers(random.Random(seed))
        super().__init__(seed)

    def _live(self, now_us: int) -> None:
        self._uploads = []
        self.early.messages.clear()
        super()._live(now_us)

    def _settings(self) -> Settings:
        settings = super()._settings()
        early = changed_settings(settings, {"cut_through": True})
        try:
            check_combination(early)
        except EngineError:
            return settings
        return early if self.rng.random() < 0.9 else settings

    def _come_back(self) -> None:
        super()._come_back()
        self._submit(DeclareMuxer("key", MUXER, MuxerKind.SIMPLE))
        for name in NAMES[:3]:
            self._submit(AttachMember("key", MUXER, name))
        self._submit(AttachProducer("key", f"/muxers/{MUXER}", "container", "to all"))

    def _command(self) -> None:
        roll = self.rng.random()
        if roll < 0.12:
            self._upload()
        elif roll < 0.2:
            self._suspend()
        elif roll < 0.3:
            self._attach_resuming()
        elif roll < 0.34:
            self._wire()
        else:
            super()._command()

    def _some_held(self) -> tuple[int, list[int]] | None:
        found = super()._some_held()
        # What suspended links hold has no outcome before it is resumed.
        return found if found is not None and found[0] in self.rig.loop.state.consumers else None

    def whole(self, body: Any) -> bytes:
        """See Mix."""
        if not isinstance(body, StoredMessage):
            return super().whole(body)
        message = read_large(self.rig.loop, body)
        assert message is not None, "a piece is damaged"
        self.read_large += 1
        return message

    # -- large messages

    def _awaited_producer(self) -> int:
        """Return a producer whose message may be cut through: its queue is empty, and a consumer gets credit; or 0."""
        loop, state = self.rig.loop, self.rig.loop.state
        wants = [one for one in loop.demand.wants.values() if one.consumer not in self.early.messages]
        self.rng.shuffle(wants)
        for want in wants:
            queue = state.queues[want.queue]
            if not queue.settings.cut_through or queue.settings.paused or queue.available:
                continue
            for producer in self.producers:
                known = state.producers.get(producer)
                if known is not None and loop.router.plain_route(state, known.muxer, known.destination) == (queue.id,):
                    loop.set_credit(want.consumer, 9)
                    return producer
        return 0

    def _upload(self) -> None:
        """Store a piece of a large message, or its last one, or end it without a message."""
        if self.producers and len(self._uploads) < 3 and self.rng.random() < 0.4:
            upload = Upload(b"%08d" % self.count, may_cut_through=self.rng.random() < 0.9)
            self._uploads.append((self._awaited_producer() or self.rng.choice(self.producers), upload, self.count))
            self.count += 1
        if not self._uploads:
            return
        if self.rng.random() < 0.2:
            self.early.give_up(self.rig.loop)
        one = self.rng.choice(self._uploads)
        producer, upload, number = one
        roll = self.rng.random()
        if not upload.chunks or roll < 0.4:
            piece = (b"" if upload.chunks else b"%08d" % number).ljust(PIECE_BYTES, b"%d" % (number % 10))
            self._submit(StoreChunk("link", producer, upload, piece))
            # The pieces are counted when they are stored.
            self._do()
            return
        self._uploads.remove(one)
        if roll < 0.5:
            upload.is_ended = True
            self._submit(EndUpload(upload))
            return
        durable, within = self.rng.random() < 0.8, None
        if self.transactions and self.rng.random() < 0.3:
            within = self.rng.choice(self.transactions)
        last = bytes(self.rng.choice((1, 60)))
        size = upload.size + len(last)
        command = Publish((within, durable), producer, number, [last], [1 + number // 2], size, durable)
        command.upload = upload
        command.priority = self.rng.choice((4, 4, 0, 9))
        if self.rng.random() < 0.2:
            command.ttl_ms = self.rng.choice((1, 30_000))
        command.transaction = None if within is None else within.transaction
        self.large += 1
        self._submit(command)

    def _credit(self) -> None:
        # The link of a receiver that waits for a message that arrives holds its credit back.
        wants = sorted(self.rig.loop.demand.wants.keys() - self.early.messages.keys())
        if wants:
            self.rig.loop.set_credit(self.rng.choice(wants), self.rng.randint(0, 9), draining=self.rng.random() < 0.1)

    def _take(self, effects: list[Effect]) -> None:
        for effect in effects:
            super()._take([effect])
            if type(effect) is CutThroughBegun:
                self.ledger.early.add(effect.cut_through.upload.id)
                self.early.begin(self.rig.loop, effect)
            elif type(effect) is CutThroughEnded:
                places = self.ledger.places.get(effect.cut_through.queue, {})
                self.early.end(self.rig.loop, effect, self.bodies, places)

    def _delivered(self, deliver: Deliver) -> None:
        super()._delivered(deliver)
        assert deliver.is_resumed or deliver.consumer not in self.early.messages, "two deliveries of a link mix"

    def _check_quiet(self) -> None:
        super()._check_quiet()
        self.early.check(self.rig.loop)

    # -- the muxer

    def _wire(self) -> None:
        name = self.rng.choice(NAMES)
        if self.rng.random() < 0.4:
            self._submit(DetachMember("key", MUXER, name))
        else:
            self._submit(AttachMember("key", MUXER, name))
            self.fanned += 1

    # -- links that are resumed

    def _attach_resuming(self) -> None:
        """Attach a link that keeps what is unsettled; if it is suspended, resume it, or return what it held."""
        link = self.rng.choice(LINKS)
        state = self.rig.loop.state
        known = state.suspended.get(state.suspended_ids.get(("", "container", link, True), 0))
        queue = None if known is None else state.queues.get(known.queue)
        resumes: dict[int, Outcome | None] | None = {}
        name = self.rng.choice(NAMES)
        if self.rng.random() < 0.2:
            resumes = None
        elif known is not None and queue is not None:
            name = queue.name
            words = [word for word in queue.held_by(known.id) if self.rng.random() < 0.9]
            outcomes = (None, None, ACCEPTED, REJECTED, RELEASED)
            resumes = {
                delivery_key(word, queue.entries.get(word >> 16, PLAIN).attempt): self.rng.choice(outcomes)
                for word in words
            }
            self.resumed += bool(words)
        if len(state.consumers) < 14:
            keeping = self.rng.choice(KEEPINGS)
            self._submit(AttachConsumer("key", name, "container", link, keeping=keeping, resumes=resumes))

    def _suspend(self) -> None:
        """Detach a link that may be resumed, end sessions of such links, or send again what one holds."""
        state = self.rig.loop.state
        links = [one for one in sorted(state.consumers) if state.consumers[one].link in LINKS]
        roll = self.rng.random()
        if roll < 0.3:
            self._submit(ExpireLinks(tuple(one.id for one in state.suspended.values() if not one.until_us)))
        elif links:
            consumer = self.rng.choice(links)
            queue = state.queues.get(state.consumers[consumer].queue)
            if roll < 0.5 and queue is not None:
                self._submit(ResendHeld(consumer, None, tuple(queue.held_by(consumer))))
            else:
                suspension = self.rng.choice((Suspension.OPEN, Suspension.OVER))
                self._submit(DetachConsumer(consumer, suspension=suspension))
