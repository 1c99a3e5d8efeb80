"""`python -m bench.measures.publishing CLASS`: measure publishing through a muxer in a separate process; print JSON.

There are two engines, each a durable loop over a log in a temporary directory. The muxer of one has 100,000
attachments, that of the other a single one that the same messages match. Each engine publishes to 10,000 destinations,
or with 10,000 values of a property, which it has seen before. Messages are decided, applied, written and synced as in
the broker, but without sockets. Both send all messages to one queue, so they differ only in matching.
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
from ambermq.engine.entries.outcome import OutcomeKind
from ambermq.engine.loop.durable_loop import DurableLoop
from ambermq.engine.loop.recovery import fold_log
from ambermq.engine.loop.schedule import FULL, SOON
from ambermq.engine.model.attachment import Argument
from ambermq.engine.model.muxer import MuxerKind
from ambermq.engine.settings.queue_settings import Settings
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
"""The messages of a run, for a class that matches their fields."""
_BODY: Final = bytes(100)
_FAN_OUT: Final = 1_000
_KIB: Final = 1024


class _Engine:
    """A durable loop that is stepped until it is idle."""

    def __init__(self, directory: Path) -> None:
        recovery = Recovery.open(DiskStorage(), str(directory), LogConfig(), _now_us())
        state = fold_log(recovery)
        config = EngineConfig(snapshot_bytes=0, snapshot_interval_s=0)
        self.loop = DurableLoop(recovery.log(ThreadWorkers()), state, config, RoutingFields)
        self.loop.start(_now_us())
        self._poll = poll()
        self._poll.register(self.loop.fileno(), POLLIN)

    def close(self) -> None:
        """End the threads of the log, which create files in its directory: the directory is removed next."""
        self.loop.log.close()

    def run(self, commands: Iterator[Command]) -> list[Effect]:
        """Run commands, with a tick whenever one is full; return their effects when all are durable."""
        loop, effects = self.loop, list[Effect]()
        for command in commands:
            loop.submit(command)
            if loop.schedule.due(_now_us()) == FULL:
                effects += loop.step(_now_us())
                effects += loop.completed(_now_us())
        while loop.schedule.due(_now_us()) >= SOON or loop.is_waiting:
            effects += loop.step(_now_us())
            if loop.is_waiting:
                self._poll.poll(10)
            effects += loop.completed(_now_us())
        refused = [one for one in effects if isinstance(one, RefusedCommand)]
        assert not refused, refused[0]
        return effects

    def attach(self, kind: MuxerKind, arguments: Iterator[Argument]) -> None:
        """Attach one queue to a muxer with many arguments."""
        self.run(iter([DeclareMuxer("", "m", kind), DeclareQueue("", "q", Settings())]))
        self.run(AttachMember("", "m", "q", argument) for argument in arguments)

    def producers(self, destinations: Sequence[str]) -> list[int]:
        """Attach a producer for each destination."""
        ready = self.run(AttachProducer("", f"/muxers/m/{one}", "bench", one) for one in destinations)
        return [one.producer for one in ready if isinstance(one, ProducerReady)]

    def publish(self, runs: Sequence[tuple[int, list[Buffer]]]) -> float:
        """Publish runs, each from a producer; return the CPU seconds."""
        began = time.process_time()
        effects = self.run(
            Publish("", producer, 0, list(bodies), [0] * len(bodies), sum(map(len, bodies)))
            for producer, bodies in runs
        )
        seconds = time.process_time() - began
        done = [one for one in effects if isinstance(one, PublishDone)]
        assert all(one.kind is OutcomeKind.ACCEPTED for one in done)
        assert sum(one.count for one in done) == sum(len(bodies) for _, bodies in runs)
        self.run(iter([PurgeQueue("", "q")]))
        return seconds


def _now_us() -> int:
    return time.time_ns() // 1000


def _runs(engine: _Engine, load: MatchLoad) -> list[tuple[int, list[Buffer]]]:
    """Return the runs to publish: a message from each producer, or runs of one producer if fields are matched."""
    messages = [load.message(number * (_ATTACHMENTS // _KNOWN)) for number in range(_KNOWN)]
    bodies: list[Buffer] = [encoded for _, encoded in messages if encoded is not None]
    if bodies:
        (producer,) = engine.producers(["x"])
        return [(producer, bodies[start : start + _RUN]) for start in range(0, _KNOWN, _RUN)]
    return [(producer, [_BODY]) for producer in engine.producers([destination for destination, _ in messages])]


def _measure_publishing(load: MatchLoad, directory: Path) -> dict[str, float]:
    with closing(_Engine(directory / "one")) as one, closing(_Engine(directory / "many")) as many:
        one.attach(load.kind, iter([load.everything]))
        many.attach(load.kind, map(load.argument, range(_ATTACHMENTS)))
        alone, known = _runs(one, load), _runs(many, load)
        unseen = many.publish(known)
        one.publish(alone)
        # In turn, so that other load of the machine affects both.
        pairs = [(one.publish(alone), many.publish(known)) for _ in range(_ROUNDS)]
    one_s, many_s = (min(seconds) for seconds in zip(*pairs, strict=True))
    return {"ratio": one_s / many_s, "known": many_s / _KNOWN * 1e6, "unseen": unseen / _KNOWN * 1e6}


def _measure_fan_out(directory: Path) -> dict[str, float]:
    """Return the KiB of log for a message of 1 KiB to 1,000 queues."""
    with closing(_Engine(directory / "fan-out")) as engine:
        engine.run(iter([DeclareMuxer("", "m", MuxerKind.SIMPLE)]))
        engine.run(DeclareQueue("", f"q{number}", Settings()) for number in range(_FAN_OUT))
        engine.run(AttachMember("", "m", f"q{number}") for number in range(_FAN_OUT))
        (producer,) = engine.producers(["x"])
        before = engine.loop.log.written_bytes
        engine.run(iter([Publish("", producer, 0, [bytes(_KIB)], [0], _KIB)]))
        queues = engine.loop.state.queues.values()
        assert sum(queue.available for queue in queues) == _FAN_OUT
        return {"log": (engine.loop.log.written_bytes - before) / _KIB}


MEASURES: Final = (*LOADS, "fan-out")
"""The measurements: classes of muxers, and a message for many queues."""


def main(name: str) -> None:
    """Measure one of MEASURES and print its figures."""
    with tempfile.TemporaryDirectory(prefix="ambermq-bench-") as directory:
        place = Path(directory)
        print(json.dumps(_measure_fan_out(place) if name == "fan-out" else _measure_publishing(LOADS[name], place)))


if __name__ == "__main__":
    main(sys.argv[1])
