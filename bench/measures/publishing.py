"""`python -m bench.publishing CLASS`: what publishing through a muxer costs in a process of its own, as JSON.

Two engines, each a durable loop over a log in a temporary directory: in one the muxer has 100,000 attachments, in the
other a single one that the same messages match. 10,000 destinations, or values of a property, are published to in turn,
each message by each engine, all of them seen before: decided, applied, written and synced, as the broker does it, but
for sockets. Both send everything to one queue, so they differ in what they match and in nothing else.
"""

import json
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from select import POLLIN, poll
from typing import Final

from ambermq.engine.commands import (
    AttachMember,
    AttachProducer,
    Command,
    DeclareMuxer,
    DeclareQueue,
    Publish,
    PurgeQueue,
)
from ambermq.engine.config import EngineConfig
from ambermq.engine.effects import Effect, ProducerReady, PublishDone, RefusedCommand
from ambermq.engine.loop.durable_loop import DurableLoop
from ambermq.engine.loop.recovery import fold_log
from ambermq.engine.loop.schedule import FULL, SOON
from ambermq.engine.model.attachment import Argument
from ambermq.engine.model.muxer import MuxerKind
from ambermq.engine.model.outcome import OutcomeKind
from ambermq.engine.model.queue import Settings
from ambermq.log.buffer import Buffer
from ambermq.log.config import LogConfig
from ambermq.log.recovery.recovery import Recovery
from ambermq.log.storage.disk import DiskStorage
from ambermq.log.storage.worker_threads import ThreadWorkers
from ambermq.protocol.gateway.links.routing_fields import RoutingFields
from bench.measures.matching import LOADS, MatchLoad

__all__ = ["MEASURES", "main"]

_ATTACHMENTS: Final = 100_000
_KNOWN: Final = 10_000
_ROUNDS: Final = 5
_RUN: Final = 50
"""Messages of one link that come together, where they are told apart by what they hold."""
_BODY: Final = bytes(100)
_FAN_OUT: Final = 1_000
_KIB: Final = 1024


class _Engine:
    """A durable loop that is stepped until it is quiet."""

    def __init__(self, directory: Path) -> None:
        recovery = Recovery.open(DiskStorage(), str(directory), LogConfig(), _now_us())
        state = fold_log(recovery)
        config = EngineConfig(snapshot_bytes=0, snapshot_interval_s=0)
        self.loop = DurableLoop(recovery.log(ThreadWorkers()), state, config, RoutingFields)
        self.loop.start(_now_us())
        self._news = poll()
        self._news.register(self.loop.fileno(), POLLIN)

    def close(self) -> None:
        """End the threads of the log: its directory goes next, and they make files in it."""
        self.loop.log.close()

    def do(self, commands: Iterator[Command]) -> list[Effect]:
        """Let commands happen, a tick whenever one is full, and return what came of them, all of it durable."""
        loop, effects = self.loop, list[Effect]()
        for command in commands:
            loop.submit(command)
            if loop.schedule.due(_now_us()) == FULL:
                effects += loop.step(_now_us())
                effects += loop.completed(_now_us())
        while loop.schedule.due(_now_us()) >= SOON or loop.is_waiting:
            effects += loop.step(_now_us())
            if loop.is_waiting:
                self._news.poll(10)
            effects += loop.completed(_now_us())
        refused = [one for one in effects if isinstance(one, RefusedCommand)]
        assert not refused, refused[0]
        return effects

    def wire(self, kind: MuxerKind, arguments: Iterator[Argument]) -> None:
        """Attach one queue to a muxer by many arguments."""
        self.do(iter([DeclareMuxer("", "m", kind), DeclareQueue("", "q", Settings())]))
        self.do(AttachMember("", "m", "q", argument) for argument in arguments)

    def producers(self, destinations: Sequence[str]) -> list[int]:
        """Attach a producer for each destination."""
        ready = self.do(AttachProducer("", f"/muxers/m/{one}", "bench", one) for one in destinations)
        return [one.producer for one in ready if isinstance(one, ProducerReady)]

    def publish(self, runs: Sequence[tuple[int, list[Buffer]]]) -> float:
        """Publish runs, each by a producer; return the seconds of CPU that it took."""
        began = time.process_time()
        effects = self.do(
            Publish("", producer, 0, list(bodies), [0] * len(bodies), sum(map(len, bodies)))
            for producer, bodies in runs
        )
        seconds = time.process_time() - began
        done = [one for one in effects if isinstance(one, PublishDone)]
        assert all(one.kind is OutcomeKind.ACCEPTED for one in done)
        assert sum(one.count for one in done) == sum(len(bodies) for _, bodies in runs)
        self.do(iter([PurgeQueue("", "q")]))
        return seconds


def _now_us() -> int:
    return time.time_ns() // 1000


def _runs(engine: _Engine, load: MatchLoad) -> list[tuple[int, list[Buffer]]]:
    """Return what is published: a message a producer, or runs of one producer where messages hold what matters."""
    messages = [load.message(number * (_ATTACHMENTS // _KNOWN)) for number in range(_KNOWN)]
    bodies: list[Buffer] = [encoded for _, encoded in messages if encoded is not None]
    if bodies:
        (producer,) = engine.producers(["x"])
        return [(producer, bodies[start : start + _RUN]) for start in range(0, _KNOWN, _RUN)]
    return [(producer, [_BODY]) for producer in engine.producers([destination for destination, _ in messages])]


def _measure_publishing(load: MatchLoad, directory: Path) -> dict[str, float]:
    with closing(_Engine(directory / "one")) as one, closing(_Engine(directory / "many")) as many:
        one.wire(load.kind, iter([load.everything]))
        many.wire(load.kind, map(load.argument, range(_ATTACHMENTS)))
        alone, known = _runs(one, load), _runs(many, load)
        unseen = many.publish(known)
        one.publish(alone)
        # In turn, so that what else the machine does falls on both.
        pairs = [(one.publish(alone), many.publish(known)) for _ in range(_ROUNDS)]
    one_s, many_s = (min(seconds) for seconds in zip(*pairs, strict=True))
    return {"ratio": one_s / many_s, "known": many_s / _KNOWN * 1e6, "unseen": unseen / _KNOWN * 1e6}


def _measure_fan_out(directory: Path) -> dict[str, float]:
    """Return the KiB of log that a message of 1 KiB takes which reaches 1,000 queues."""
    with closing(_Engine(directory / "fan-out")) as engine:
        engine.do(iter([DeclareMuxer("", "m", MuxerKind.SIMPLE)]))
        engine.do(DeclareQueue("", f"q{number}", Settings()) for number in range(_FAN_OUT))
        engine.do(AttachMember("", "m", f"q{number}") for number in range(_FAN_OUT))
        (producer,) = engine.producers(["x"])
        before = engine.loop.log.written_bytes
        engine.do(iter([Publish("", producer, 0, [bytes(_KIB)], [0], _KIB)]))
        queues = engine.loop.state.queues.values()
        assert sum(queue.available for queue in queues) == _FAN_OUT
        return {"log": (engine.loop.log.written_bytes - before) / _KIB}


MEASURES: Final = (*LOADS, "fan-out")
"""What can be measured: classes of muxer, and a message for many queues."""


def main(name: str) -> None:
    """Measure one of MEASURES and print its figures."""
    with tempfile.TemporaryDirectory(prefix="ambermq-bench-") as directory:
        place = Path(directory)
        print(json.dumps(_measure_fan_out(place) if name == "fan-out" else _measure_publishing(LOADS[name], place)))


if __name__ == "__main__":
    main(sys.argv[1])
