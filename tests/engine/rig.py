"""A durable loop over a simulated disk, stepped by hand."""

import random
from collections.abc import Callable
from dataclasses import replace

from ambermq.engine.commands import AttachConsumer, AttachProducer, Command, Publish, ReportDamage
from ambermq.engine.config import EngineConfig
from ambermq.engine.effects import ConsumerReady, Deliver, Effect, ProducerReady
from ambermq.engine.entries.stored_message import Pieces, StoredMessage
from ambermq.engine.loop.durable_loop import DurableLoop
from ambermq.engine.loop.recovery import fold_log
from ambermq.engine.loop.schedule import SOON, Due
from ambermq.engine.model.queue import Queue
from ambermq.engine.routing.router import FieldsOf, no_fields
from ambermq.engine.time_budget import standing_clock
from ambermq.log.config import LogConfig
from ambermq.log.recovery.recovery import Recovery
from ambermq.log.storage.worker_threads import InlineWorkers
from tests.log.lives import CONFIG, DIRECTORY
from tests.log.simulated import SimulatedStorage

__all__ = ["COLD", "Rig", "delivered", "held", "read_large"]

COLD = replace(CONFIG, hot_bytes_max=600, hot_large_bytes_max=600, cold_bytes_max=4096)
"""Hardly two bodies fit in the hot cache."""


def delivered(effects: list[Effect]) -> list[tuple[int, bytes]]:
    """Return (consumer, body) of every delivery, in order."""
    return [(each.consumer, bytes(body)) for each in effects if type(each) is Deliver for body in each.bodies]


def read_large(loop: DurableLoop, message: Pieces) -> bytes | None:
    """Return a large message, read piece by piece; None if it is damaged."""
    pieces: list[bytes] = []
    for index in range(len(message.offsets)):
        while (piece := loop.piece(message, index)) is None:
            loop.log.completed()
        if not piece:
            return None
        pieces.append(bytes(piece))
    return b"".join(pieces)


class Rig:
    """One life of a broker."""

    is_linkless = True
    """Whether no gateway takes the effects."""

    def __init__(
        self,
        storage: SimulatedStorage | None = None,
        *,
        config: EngineConfig | None = None,
        log_config: LogConfig = COLD,
        fields_of: FieldsOf = no_fields,
        clock_ns: Callable[[], int] = standing_clock,
        now_us: int = 1_000_000,
    ) -> None:
        self.storage = storage or SimulatedStorage(random.Random(0))
        self.now_us = now_us
        recovery = Recovery.open(self.storage, DIRECTORY, log_config, self.now_us)
        self.recovered = fold_log(recovery)
        config = config or EngineConfig()
        self.loop = DurableLoop(recovery.log(InlineWorkers()), self.recovered, config, fields_of, clock_ns)
        self.loop.start(self.now_us)

    @property
    def due(self) -> Due:
        """When the loop wants a step."""
        return self.loop.schedule.due(self.now_us)

    def step(self, *commands: Command) -> list[Effect]:
        """Submit and end the tick; nothing is synced yet."""
        for command in commands:
            self.loop.submit(command)
        return self._whole(self.loop.step(self.now_us))

    def completed(self) -> list[Effect]:
        """Complete the syncs and reads in flight."""
        return self._whole(self.loop.completed(self.now_us))

    def _whole(self, effects: list[Effect]) -> list[Effect]:
        """Read the large messages of deliveries, as a link does while it sends them; report damaged ones."""
        for effect in effects if self.is_linkless else ():
            if type(effect) is Deliver and StoredMessage in map(type, effect.bodies):
                bodies = [
                    read_large(self.loop, body) if isinstance(body, StoredMessage) else body for body in effect.bodies
                ]
                for word in [word for word, body in zip(effect.words, bodies, strict=True) if body is None]:
                    self.loop.submit(ReportDamage(effect.queue, word))
                effect.words = tuple(
                    [word for word, body in zip(effect.words, bodies, strict=True) if body is not None]
                )
                effect.bodies = [body for body in bodies if body is not None]
        return effects

    def do(self, *commands: Command) -> list[Effect]:
        """Submit, end ticks and let syncs end until all is quiet."""
        effects = self.step(*commands) + self.completed()
        while self.due >= SOON or self.loop.is_late:
            effects += self.step() + self.completed()
        return effects

    def producer(self, name: str = "q") -> int:
        (ready,) = self.do(AttachProducer("key", name, "container", "link"))
        assert type(ready) is ProducerReady
        return ready.producer

    def consumer(self, name: str = "q", *, credit: int = 0, settled: bool = False, selector: str = "") -> int:
        (ready,) = self.do(AttachConsumer("key", name, "container", "link", settled, selector))
        assert type(ready) is ConsumerReady
        self.loop.set_credit(ready.consumer, credit)
        return ready.consumer

    def queue(self, name: str = "q") -> Queue:
        queue = self.loop.state.queue_named(name)
        assert queue is not None
        return queue

    def forget_pages(self) -> None:
        """Drop the kernel's page cache."""
        for inode in self.storage._names.values():
            inode.is_cached = False

    def damage(self, body: bytes) -> None:
        """Flip a bit of a stored body."""
        for name in self.storage.listdir(f"{DIRECTORY}/segments"):
            path = f"{DIRECTORY}/segments/{name}"
            at = bytes(self.storage.content(path)).find(body)
            if at >= 0:
                self.storage.damage(path, at, bytes([body[0] ^ 1]))
                return
        raise AssertionError(body)

    def kill(self) -> None:
        """Kill the process: the written bytes stay."""
        self.storage.kill()
        self.loop.log._workers.close()

    def next_life(self, now_us: int = 1_000_000) -> "Rig":
        """Return the life after a SIGKILL; what it has folded is what this one has lived."""
        live = self.loop.state
        self.kill()
        again = Rig(self.storage, now_us=now_us)
        assert again.recovered == live
        return again

    def batches(self) -> list[list[int]]:
        """Return the record types of every batch on the disk, after a SIGKILL."""
        self.kill()
        recovery = Recovery.open(self.storage, DIRECTORY, COLD, self.now_us)
        types = [[row[9] for row in batch.rows()] for batch in recovery.batches()]
        recovery.close()
        return types

    @staticmethod
    def publish(producer: int, *bodies: bytes, durable: bool = True) -> Publish:
        return Publish("link", producer, 0, bodies, [0] * len(bodies), sum(map(len, bodies)), durable)


def held(rig: Rig, count: int) -> tuple[int, list[int]]:
    """Return a consumer and the words that it holds."""
    consumer, producer = rig.consumer(credit=count), rig.producer()
    rig.do(rig.publish(producer, *[b"%d" % number for number in range(count)]))
    return consumer, list(rig.queue().held_by(consumer))
