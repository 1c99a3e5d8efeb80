"""A campaign: long commands are killed several times each, and the same command goes on until it has done all.

    redrives    `dlq redrive` to where the messages came from
    edits       `dlq redrive --set`: edited copies take the places of the messages
    moves       `queue move`, while a sender sends to the source and a receiver takes from the target

A kill hits the broker or the command, after some of its requests. Then each message is on one of both queues, or was
received; only whole requests were carried out; what the command prints at its end is what was left for it.
"""

import json
import random
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, ClassVar, Final

from ambermq.log.buffer import Buffer
from ambermq.protocol.amqp10.message.message import Data, Message, decode_message
from ambermq.protocol.amqp10.performatives.classes import Header, Properties
from ambermq.tools.client.broker_url import BrokerUrl
from ambermq.tools.client.link_client import LinkClient
from ambermq.tools.dead_letters.message_moves import MessageMoves
from ambermq.tools.dead_letters.selection import Selection
from ambermq.tools.messages.publisher import Publisher
from ambermq.tools.messages.subscriber import Subscriber
from ambermq.tools.terminal.child_command import child_command
from ambermq.tools.terminal.errors import ToolError
from tests.crash.broker import CampaignBroker, StartFailed, verify_faults
from tests.crash.event_laws import event_faults
from tests.crash.kill_rounds import KillResult

__all__ = ["JOBS", "run_job_campaign"]

_PAGE: Final = 1000
"""The messages of one request."""
_COUNT: Final = 4500
_KILLS_EACH: Final = 3
"""The kills of one job."""
_REQUEST_SECONDS: Final = 0.1
"""The longest time of a request."""
_WAIT_SECONDS: Final = 120.0
_LOOKS_MAX: Final = 10
_RECOVERING_SHARE: Final = 0.2


def run_job_campaign(directory: Path, *, seed: int, kills: int, kinds: tuple[str, ...] = ()) -> KillResult:
    """Run a campaign in a directory of its own; `kinds` empty: jobs of all kinds in turn."""
    chance, result = random.Random(seed), KillResult()
    broker = CampaignBroker(directory / "data")
    kinds = kinds or tuple(JOBS)
    try:
        broker.restart()
        number = 0
        while result.kills < kills:
            kind = kinds[number % len(kinds)]
            job = JOBS[kind](broker, f"{kind}-{number}", chance, result)
            result.faults += [f"{kind}: {fault}" for fault in job.faults(min(_KILLS_EACH, kills - result.kills))]
            number += 1
        broker.kill()
        result.faults += event_faults(broker.directory)
    except StartFailed as failure:
        result.faults.append(str(failure))
    finally:
        broker.kill()
    return result


class _Job:
    """One command over its kills. Messages are numbered."""

    options: ClassVar[tuple[str, ...]] = ()
    is_whole = True
    """Whether a request is carried out as a whole."""
    is_quiet = True
    """Whether nothing goes on beside the command."""

    def __init__(self, broker: CampaignBroker, name: str, chance: random.Random, result: KillResult) -> None:
        self.broker, self.name, self.chance, self.result = broker, name, chance, result
        self.target = f"{name}-to"
        self.received: Counter[int] = Counter()
        self.sent = set[int]()
        """The numbers of messages that the source had, or may have had."""
        self.stored = set[int]()
        """Those of which the broker said that it has stored them."""
        self.known = set[int]()
        """Those that were stored before the last look at the queues."""

    def faults(self, kills: int) -> list[str]:
        """Run the job with so many kills, and then to its end; return what is wrong."""
        self.prepare()
        found, before = list[str](), self._places()
        for _ in range(kills):
            if len(before[0]) <= _PAGE:
                break
            is_broker = self.chance.random() < 0.7
            self._kill_within(before, is_broker=is_broker)
            after = self._places()
            found += self._wrong(before, after)
            before = after
        return found + self._end(before)

    def prepare(self) -> None:
        """Make both queues, with the messages on the source."""
        raise NotImplementedError

    def command(self) -> list[str]:
        """Return the arguments of the command."""
        raise NotImplementedError

    def stop(self) -> None:
        """End what goes on beside the command."""

    def _kill_within(self, before: tuple[list[int], list[int]], *, is_broker: bool) -> None:
        """Start the command, and kill it or the broker after some requests."""
        command = self._start()
        requests = self.chance.randrange(max(1, len(before[0]) // _PAGE))
        self._await_requests(command, len(before[0]) - _PAGE * requests)
        time.sleep(self.chance.uniform(0.0, _REQUEST_SECONDS))
        self.result.points["the broker" if is_broker else "the command"] += 1
        self.result.kills += 1
        self.result.figures["cut short"] += command.poll() is None
        if is_broker:
            self.broker.kill()
            self.result.faults += verify_faults(self.broker.directory)
            while self.chance.random() < _RECOVERING_SHARE:
                self.broker.launch()
                time.sleep(self.chance.uniform(0.0, 0.6))
                self.broker.kill()
                self.result.killed_recovering += 1
            command.communicate(timeout=_WAIT_SECONDS)
            self.broker.restart()
        else:
            command.kill()
            command.communicate()

    def _start(self) -> "subprocess.Popen[bytes]":
        command = child_command(*self.command(), *self.options, "--output", "json", "--url", self.broker.url)
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def _await_requests(self, command: "subprocess.Popen[bytes]", left: int) -> None:
        """Wait until at most so many messages are on the source, or the command has ended."""
        until = time.monotonic() + _WAIT_SECONDS
        with self.moves() as moves:
            while command.poll() is None and time.monotonic() < until:
                if int(moves.read(self.name)["available"]) < max(left, 1):
                    return

    def _places(self) -> tuple[list[int], list[int]]:
        """Return the numbers of the messages on both queues; a request of a killed command may still be under way."""
        before = None
        with self.moves() as moves:
            for _ in range(_LOOKS_MAX):
                self.known = set(self.stored)
                source, target = (self._numbers(moves, name) for name in (self.name, self.target))
                # A message that moves between both looks is seen twice.
                if before == (source, target) if self.is_quiet else not set(source) & set(target):
                    break
                before = source, target
        return source, target

    def _numbers(self, moves: MessageMoves, name: str) -> list[int]:
        return [int(row["message_id"]) for row in moves.find(name, Selection(), reads=True)]

    def _wrong(self, before: tuple[list[int], list[int]], after: tuple[list[int], list[int]]) -> list[str]:
        """Return what is wrong with the places after a kill."""
        source, target = after
        found = [f"{number} is there {count} times" for number, count in Counter(source + target).items() if count > 1]
        lost = self.known - set(source) - set(target) - set(self.received)
        found += [f"{len(lost)} messages are on neither queue, the first is {min(lost)}"] if lost else []
        invented = {*source, *target} - self.sent
        found += [f"{len(invented)} messages were never sent"] if invented else []
        done = len(before[0]) - len(source)
        if self.is_whole and self.is_quiet and done % _PAGE and source:
            found.append(f"a part of a request was carried out: {done} messages")
        return found[:3]

    def _end(self, before: tuple[list[int], list[int]]) -> list[str]:
        """Run the command to its end; return what is wrong."""
        self.stop()
        before = self._places()
        command = self._start()
        out, error = command.communicate(timeout=_WAIT_SECONDS)
        if command.returncode:
            return [f"the same command did not go on: {error.decode()[-300:]}"]
        said = json.loads(out)["moved"]
        after = self._places()
        found = self._wrong(before, after)
        found += [] if said == len(before[0]) else [f"it said {said} messages were moved, of {len(before[0])}"]
        found += [] if not after[0] else [f"{len(after[0])} messages stayed"]
        is_ordered = after[1] == sorted(after[1])
        return found + ([] if is_ordered else ["the messages came in another order"])

    @contextmanager
    def moves(self) -> Iterator[MessageMoves]:
        with LinkClient.connect(BrokerUrl.parse(self.broker.url)) as client:
            yield MessageMoves(client)

    def send(self, name: str, numbers: range) -> None:
        """Send messages, and keep those that are accepted."""
        with LinkClient.connect(BrokerUrl.parse(self.broker.url)) as client:
            publisher = Publisher(client, client.attach_sender(name), on_outcome=self._said, window=500)
            for number in numbers:
                self.sent.add(number)
                publisher.offer(_message(number), number)
            publisher.finish()

    def _said(self, number: int, outcome: str) -> None:
        if outcome == "accepted":
            self.stored.add(number)


def _message(number: int) -> Buffer:
    properties = Properties(message_id=str(number))
    return Message(header=Header(durable=True), properties=properties, body=(Data(b"%d" % number),)).encode()


class _Redrive(_Job):
    def prepare(self) -> None:
        """See _Job: the messages expire, so their queue is where they go back to."""
        with self.moves() as moves:
            moves.declare(self.name, {})
            moves.declare(self.target, {"message_ttl_ms": 1, "dead_letter": self.name})
            self.send(self.target, range(_COUNT))
            until = time.monotonic() + _WAIT_SECONDS
            while int(moves.read(self.name)["available"]) < _COUNT and time.monotonic() < until:
                time.sleep(0.05)
            moves.update(self.target, {"message_ttl_ms": 0})

    def command(self) -> list[str]:
        """See _Job."""
        return ["dlq", "redrive", self.name]


class _Edit(_Redrive):
    options = ("--set", "subject=again", "--keep-id")
    is_whole = False


class _Move(_Job):
    """Under load; the sender and the receiver live through each kill."""

    is_quiet = False

    def prepare(self) -> None:
        """See _Job."""
        with self.moves() as moves:
            moves.declare(self.name, {})
            moves.declare(self.target, {})
        self.send(self.name, range(_COUNT))
        self._is_running = True
        self._confirmed = set[int]()
        self._threads = [
            threading.Thread(target=self._again, args=(one,), daemon=True) for one in (self._feed, self._take)
        ]
        for thread in self._threads:
            thread.start()

    def command(self) -> list[str]:
        """See _Job."""
        return ["queue", "move", self.name, self.target]

    def stop(self) -> None:
        """See _Job."""
        self._is_running, self.is_quiet = False, True
        for thread in self._threads:
            thread.join(_WAIT_SECONDS)

    def _again(self, work: Any) -> None:
        while self._is_running:
            with suppress(ToolError, OSError):
                work()
            time.sleep(0.02)

    def _feed(self) -> None:
        while self._is_running:
            first = max(self.sent) + 1
            self.send(self.name, range(first, first + 20))
            time.sleep(0.05)

    def _take(self) -> None:
        with LinkClient.connect(BrokerUrl.parse(self.broker.url)) as client:
            subscriber = Subscriber(client, client.attach_receiver(self.target))
            for payload in subscriber.payloads(count=50, idle_seconds=0.1):
                message = decode_message(bytes(payload))
                self.received[int(str(message.properties and message.properties.message_id))] += 1
            subscriber.finish()
        time.sleep(0.1)


JOBS: Final[dict[str, type[_Job]]] = {"redrives": _Redrive, "edits": _Edit, "moves": _Move}
