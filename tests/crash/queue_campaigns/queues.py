"""A campaign: a broker is killed in the middle of a command on queues, and the result is all or nothing.

    moves           2,500 messages by requests of 1,000: each is on one queue, by whole requests; the command goes on
    redrives        the same for dead letters
    transactions    commits of some KiB and of more than one batch of the log: all of one is there, or nothing
    uploads         a message in many pieces: whole and byte for byte, or not there
    cut-through     the same while a receiver gets it piece by piece: that has whole messages, or nothing of them
    downloads       `receive --to-file` is killed too: the file is whole or not there, and then the message is
    scheduled       each accepted message arrives once, and not before its time
    duplicates      what is sent again after the start is stored once
    last values     of each key one message waits, and none that is older than the newest accepted one

Each kill has queues of its own. Everything random but the moments of the machine comes from one seed.
"""

import hashlib
import random
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from ambermq.protocol.amqp10.errors import DecodeError
from ambermq.protocol.amqp10.message.message import Data, Message, decode_message
from ambermq.protocol.amqp10.performatives.classes import Header, Properties
from ambermq.protocol.amqp10.types.values import Symbol, UInt
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
from tests.interop.proton_transactions import Session, posting

__all__ = ["KINDS", "QueueResult", "run_queue_campaign"]

_MOVED: Final = 2500
_PAGE: Final = 1000
"""The messages of one request."""
_UPLOAD_BYTES: Final = 12 << 20
_COMMITS: Final = ((40, 200), (40, 150_000), (3, 1_300_000))
"""The messages of a transaction, and the size of each: the last ones are stored in pieces."""
_JOB_SECONDS: Final = 120.0
_LOST: Final = "an accepted message is lost"


@dataclass(slots=True)
class QueueResult:
    """What a campaign came to."""

    kinds: Counter[str] = field(default_factory=Counter)
    """The kills in each kind of command."""
    cut_short: int = 0
    """Kills of a command that had not ended."""
    faults: list[str] = field(default_factory=list)


def run_queue_campaign(
    directory: Path, *, seed: int, kills: int, kinds: Sequence[str] = (), plant: str = "", at_end: bool = False
) -> QueueResult:
    """Run a campaign in a directory of its own and return what it came to; `kinds` empty: of all kinds in turn.

    `plant` names a planted fault; `at_end`: the kill comes after the command, when that has surely done something.
    """
    result, chance = QueueResult(), random.Random(seed)
    broker = CampaignBroker(directory / "data", plant=plant)
    try:
        broker.restart()
        for number in range(kills):
            kind = (kinds or list(KINDS))[number % len(kinds or KINDS)]
            name = f"{kind.replace(chr(32), chr(45))}-{number}"
            job = KINDS[kind](broker, name, chance)
            _one_kill(broker, job, kind, _JOB_SECONDS if at_end else chance.uniform(0.0, job.seconds), result)
        broker.kill()
        result.faults += event_faults(broker.directory)
    except StartFailed as failure:
        result.faults.append(str(failure))
    finally:
        broker.kill()
    return result


def _one_kill(broker: CampaignBroker, job: "_Job", kind: str, seconds: float, result: QueueResult) -> None:
    job.prepare()
    work = threading.Thread(target=_run_quietly, args=(job.run,), daemon=True)
    work.start()
    work.join(seconds)
    result.cut_short += work.is_alive()
    broker.kill()
    work.join(_JOB_SECONDS)
    result.kinds[kind] += 1
    result.faults += [f"{kind}: {fault}" for fault in verify_faults(broker.directory)]
    broker.restart()
    result.faults += [f"{kind}: {fault}" for fault in job.faults()]


def _run_quietly(run: Callable[[], None]) -> None:
    with suppress(ToolError, OSError):
        run()


class _Job:
    """A command, what must be there before it, and what is wrong after a kill."""

    seconds = 0.5
    """The latest moment of the kill."""

    def __init__(self, broker: CampaignBroker, name: str, chance: random.Random) -> None:
        self.broker, self.name, self.chance = broker, name, chance
        self.accepted: list[int] = []

    def prepare(self) -> None:
        """Make what the command needs."""

    def run(self) -> None:
        """Carry the command out."""

    def faults(self) -> list[str]:
        """Return what is wrong with what the next life has."""
        return []

    @contextmanager
    def moves(self) -> Iterator[MessageMoves]:
        with LinkClient.connect(BrokerUrl.parse(self.broker.url)) as client:
            yield MessageMoves(client)

    def declare(self, name: str, **settings: Any) -> None:
        with self.moves() as moves:
            moves.declare(name, settings)

    def send(self, name: str, messages: list[Message]) -> None:
        """Send messages; the numbers of those that are accepted are kept."""
        with LinkClient.connect(BrokerUrl.parse(self.broker.url)) as client:
            publisher = Publisher(client, client.attach_sender(name), on_outcome=self._said, window=200)
            for number, message in enumerate(messages):
                publisher.offer(message.encode(), number)
            publisher.finish()

    def _said(self, number: int, outcome: str) -> None:
        if outcome == "accepted":
            self.accepted.append(number)

    def received(self, name: str, idle_seconds: float = 0.7) -> list[Message]:
        """Receive all that waits."""
        with LinkClient.connect(BrokerUrl.parse(self.broker.url)) as client:
            subscriber = Subscriber(client, client.attach_receiver(name))
            messages = [decode_message(bytes(one)) for one in subscriber.payloads(idle_seconds=idle_seconds)]
            subscriber.finish()
        return messages

    def numbers(self, name: str, idle_seconds: float = 0.7) -> list[int]:
        return [int(str(one.properties and one.properties.message_id)) for one in self.received(name, idle_seconds)]


def _message(number: int, *, subject: str | None = None, annotations: Any = None) -> Message:
    properties = Properties(message_id=str(number), subject=subject)
    body = (Data(b"%d" % number),)
    return Message(header=Header(durable=True), message_annotations=annotations, properties=properties, body=body)


class _Move(_Job):
    operation = "MOVE"

    def prepare(self) -> None:
        self.declare(f"{self.name}-to")
        self.declare(self.name)
        self.send(self.name, [_message(number) for number in range(_MOVED)])

    def run(self) -> None:
        with self.moves() as moves:
            moves.carry_out_on(self.name, self.operation, Selection(), to=f"{self.name}-to")

    def _counts(self) -> tuple[int, int]:
        with self.moves() as moves:
            source, target = (int(moves.read(name)["available"]) for name in (self.name, f"{self.name}-to"))
        return source, target

    def faults(self) -> list[str]:
        source, target = self._counts()
        found = [] if source + target == _MOVED else [f"{source} messages stayed and {target} came, of {_MOVED}"]
        if target % _PAGE and target != _MOVED:
            found.append(f"a part of a request was carried out: {target} messages")
        self.run()
        if self._counts() != (0, _MOVED):
            found.append(f"the same command did not go on: {self._counts()}")
        if self.numbers(f"{self.name}-to") != list(range(_MOVED)):
            found.append("the messages came in another order, twice or not at all")
        return found


class _Redrive(_Move):
    operation = "REDRIVE"

    def prepare(self) -> None:
        self.declare(self.name)
        self.declare(f"{self.name}-to", message_ttl_ms=1, dead_letter=self.name)
        self.send(f"{self.name}-to", [_message(number) for number in range(_MOVED)])
        until = time.monotonic() + _JOB_SECONDS
        while self._counts() != (_MOVED, 0) and time.monotonic() < until:
            time.sleep(0.05)
        with self.moves() as moves:
            moves.update(f"{self.name}-to", {"message_ttl_ms": 0})

    def run(self) -> None:
        with self.moves() as moves:
            moves.carry_out_on(self.name, self.operation, Selection())


class _Transaction(_Job):
    seconds = 1.5

    def prepare(self) -> None:
        self.declare(self.name)
        self.sizes = [self.chance.choice(_COMMITS) for _ in range(6)]
        self.session: Session | None = None

    def run(self) -> None:
        steps = [
            posting(*[f"{number}:{one}:" + "x" * size for one in range(count)], commits=True)
            for number, (count, size) in enumerate(self.sizes)
        ]
        self.session = Session(self.broker.url, self.name, steps)
        self.session.run()

    def faults(self) -> list[str]:
        bodies = [str(one.body[0].value) for one in self.received(self.name, idle_seconds=3.0)]  # type: ignore[union-attr]
        keys = [tuple(map(int, body.split(":")[:2])) for body in bodies]
        counts = Counter(number for number, _ in keys)
        wholes = [count for count, _ in self.sizes]
        found = [
            f"{count} of {wholes[number]} messages of a commit"
            for number, count in counts.items()
            if count != wholes[number]
        ]
        said = 0 if self.session is None else self.session.said.count("committed")
        if len(counts) < said:
            found.append(f"{len(counts)} of {said} commits that were answered")
        if keys != sorted(keys):
            found.append("the messages of commits are not in order")
        return found


class _Upload(_Job):
    seconds = 0.6

    def prepare(self) -> None:
        self.declare(self.name)
        body = self.chance.randbytes(1 << 20) * (_UPLOAD_BYTES >> 20)
        self.payload = Message(header=Header(durable=True), body=(Data(body),)).encode()
        self.digest = hashlib.sha256(body).digest()

    def run(self) -> None:
        with LinkClient.connect(BrokerUrl.parse(self.broker.url)) as client:
            publisher = Publisher(client, client.attach_sender(self.name), on_outcome=self._said)
            size = publisher.piece_bytes
            for start in range(0, len(self.payload), size):
                end = start + size
                publisher.offer_piece(
                    bytes(self.payload[start:end]), 0, is_first=start == 0, is_last=end >= len(self.payload)
                )
            publisher.finish()

    def faults(self) -> list[str]:
        bodies = [_body_of(one) for one in self.received(self.name)]
        found = [] if len(bodies) <= 1 else [f"{len(bodies)} messages for one"]
        if self.accepted and not bodies:
            found.append(_LOST)
        return found + ["another body" for body in bodies if hashlib.sha256(body).digest() != self.digest]


class _CutThrough(_Job):
    """Large messages that leave while they arrive; some of them are never complete."""

    seconds = 1.2

    def prepare(self) -> None:
        self.declare(self.name, cut_through=True)
        self.bodies = [
            b"%08d" % number + self.chance.randbytes(1 << 16) * self.chance.randrange(20, 90) for number in range(12)
        ]
        self.is_complete = [self.chance.random() < 0.75 for _ in self.bodies]
        self.numbers_of = {hashlib.sha256(body).digest(): number for number, body in enumerate(self.bodies)}
        self.arrived: list[int] = []
        """The messages that the receiver got, -1 for one that is not whole."""

    def run(self) -> None:
        receiver = threading.Thread(target=_run_quietly, args=(self._receive,), daemon=True)
        receiver.start()
        for number, is_complete in enumerate(self.is_complete):
            with LinkClient.connect(BrokerUrl.parse(self.broker.url)) as client:
                self._send_one(client, number, is_complete=is_complete)
        receiver.join(_JOB_SECONDS)

    def _receive(self) -> None:
        with LinkClient.connect(BrokerUrl.parse(self.broker.url)) as client:
            subscriber = Subscriber(client, client.attach_receiver(self.name))
            for payload in subscriber.payloads(count=sum(self.is_complete)):
                self.arrived.append(self._number_of(payload))
            subscriber.finish()

    def _number_of(self, payload: bytes | memoryview) -> int:
        try:
            body = _body_of(decode_message(bytes(payload)))
        except DecodeError:
            return -1
        return self.numbers_of.get(hashlib.sha256(body).digest(), -1)

    def _send_one(self, client: LinkClient, number: int, *, is_complete: bool) -> None:
        """Send a message, or as much of it as leaves before its connection is closed."""
        payload = Message(header=Header(durable=True), body=(Data(self.bodies[number]),)).encode()
        publisher = Publisher(client, client.attach_sender(self.name), on_outcome=self._said)
        size, count = publisher.piece_bytes, len(payload) if is_complete else len(payload) * 2 // 3
        for start in range(0, count, size):
            end = start + size
            is_last = is_complete and end >= count
            publisher.offer_piece(payload[start:end], number, is_first=start == 0, is_last=is_last)
        if is_complete:
            publisher.finish()

    def faults(self) -> list[str]:
        with self.moves() as moves:
            published = int(moves.read(self.name)["published"])
            available = int(moves.read(self.name)["available"])
        with LinkClient.connect(BrokerUrl.parse(self.broker.url)) as client:
            subscriber = Subscriber(client, client.attach_receiver(self.name))
            left = [self._number_of(one) for one in subscriber.payloads(count=available, idle_seconds=10.0)]
            subscriber.finish()
        whole = {*left, *self.arrived} - {-1}
        found = ["a message is not whole"] if -1 in (*left, *self.arrived) else []
        found += [f"{_LOST}: {number}" for number in self.accepted if number not in whole]
        found += [f"{number} came, and was never complete" for number in whole if not self.is_complete[number]]
        found += ["a message is there twice"] if len(set(left)) < len(left) else []
        # What was settled before the kill is noted by its receiver.
        return found + ([f"{published} messages were published, not {whole}"] if published != len(whole) else [])


def _body_of(message: Message) -> bytes:
    return b"".join(bytes(part.value) for part in message.body)  # type: ignore[union-attr,arg-type]


class _Download(_Upload):
    seconds = 1.5

    def prepare(self) -> None:
        super().prepare()
        super().run()
        self.path = self.broker.directory.with_name(f"{self.name}.copy")

    def run(self) -> None:
        command = child_command("receive", self.name, "--to-file", str(self.path), "--url", self.broker.url)
        with subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as child:
            with suppress(subprocess.TimeoutExpired):
                child.wait(self.chance.uniform(0.3, 2.0))
            child.kill()

    def faults(self) -> list[str]:
        is_there = self.path.exists()
        found = super().faults()
        if not is_there:
            return found
        # Its settlement may be lost in the kill, so the message may be there, too.
        found = [fault for fault in found if fault != _LOST]
        is_whole = hashlib.sha256(self.path.read_bytes()).digest() == self.digest
        return found if is_whole else [*found, "the file of a killed client is not whole"]


class _Scheduled(_Job):
    def prepare(self) -> None:
        self.declare(self.name)
        self.delays_ms = [self.chance.randrange(300, 4000) for _ in range(200)]
        self.began = 0.0

    def run(self) -> None:
        self.began = time.time()
        delay = Symbol("x-opt-delivery-delay")
        self.send(self.name, [_message(one, annotations={delay: UInt(ms)}) for one, ms in enumerate(self.delays_ms)])

    def faults(self) -> list[str]:
        found, arrived = list[str](), Counter[int]()
        until = max(time.time(), self.began + max(self.delays_ms) / 1000) + 1.0
        with LinkClient.connect(BrokerUrl.parse(self.broker.url)) as client:
            subscriber = Subscriber(client, client.attach_receiver(self.name))
            while time.time() < until:
                for payload in subscriber.payloads(idle_seconds=0.3):
                    message = decode_message(bytes(payload))
                    number = int(str(message.properties and message.properties.message_id))
                    arrived[number] += 1
                    if time.time() < self.began + self.delays_ms[number] / 1000:
                        found.append(f"{number} came early")
            subscriber.finish()
        lost = set(self.accepted) - set(arrived)
        found += [f"{len(lost)} scheduled messages are lost"] if lost else []
        return found + [f"{number} came {count} times" for number, count in arrived.items() if count > 1]


class _Duplicates(_Job):
    def prepare(self) -> None:
        self.declare(self.name, dedup_window_ms=600_000)

    def run(self) -> None:
        self.send(self.name, [_message(number) for number in range(2000)])

    def faults(self) -> list[str]:
        self.run()
        return (
            [] if sorted(self.numbers(self.name)) == list(range(2000)) else ["a message is there twice, or not at all"]
        )


class _LastValues(_Job):
    keys = 20

    def prepare(self) -> None:
        self.declare(self.name, last_value="properties.subject")

    def run(self) -> None:
        self.send(self.name, [_message(number, subject=str(number % self.keys)) for number in range(4000)])

    def faults(self) -> list[str]:
        numbers = self.numbers(self.name)
        newest = {number % self.keys: number for number in sorted(self.accepted)}
        waiting = {number % self.keys: number for number in numbers}
        found = [] if len(waiting) == len(numbers) else ["two messages of one key wait"]
        old = [key for key, number in newest.items() if waiting.get(key, -1) < number]
        return found + ([f"{len(old)} keys have an older message than the accepted one"] if old else [])


KINDS: Final[dict[str, type[_Job]]] = {
    "moves": _Move,
    "redrives": _Redrive,
    "transactions": _Transaction,
    "uploads": _Upload,
    "cut-through": _CutThrough,
    "downloads": _Download,
    "scheduled": _Scheduled,
    "duplicates": _Duplicates,
    "last values": _LastValues,
}
