"""A campaign: brokers are killed while time passes for their messages, under load; some stay down for seconds.

    later     scheduled messages, many of them due at one moment: none comes before its time, each comes
    short     messages with a time to live: none is offered after it; each was received, or is a dead letter once
    ids       a duplicate window that outlasts the campaign: of each id one message comes
    recent    a short window: of each id one message comes within it, and one more after it
    keys      last values: of each key one message waits, no older one is offered, and the newest comes

The senders resume their links, so the broker stores each number once. What the clients saw is judged at the end, with a
tolerance for a busy machine; the events of the log are judged exactly.
"""

import random
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any, Final, final

from ambermq.protocol.amqp10.message.message import Data, Message
from ambermq.protocol.amqp10.performatives.classes import Header, Properties
from ambermq.protocol.amqp10.types.values import Symbol, Timestamp
from ambermq.tools.client.broker_url import BrokerUrl
from ambermq.tools.client.link_client import LinkClient
from ambermq.tools.client.management_client import QueueManagement
from ambermq.tools.dead_letters.message_moves import MessageMoves
from ambermq.tools.dead_letters.selection import Selection
from tests.crash.endpoints.delivery_ledger import DeliveryLedger
from tests.crash.endpoints.exact_sender import ExactSender
from tests.crash.endpoints.noting_consumer import ArrivalLedger, NotingConsumer
from tests.crash.kill_rounds import KillResult, KillRounds

__all__ = ["Timers", "run_timer_campaign"]

_RATE: Final = 120
_GRID_S: Final = 0.25
"""Scheduled messages are due at multiples of this time."""
_KEYS: Final = 20
_WINDOW_S: Final = 1.5
_RECENT: Final = 150
"""The messages between two with one id: they take about as long as the short window."""
_CLOCK_S: Final = 0.005
"""The difference between the clock of the broker and that of the campaign."""
_BUSY_S: Final = 2.0
"""The time for which a delivery may wait for its consumer."""
_LOOKS_MAX: Final = 5

_SETTINGS: Final[dict[str, dict[str, Any]]] = {
    "dead": {},
    "later": {"redelivery_delay_ms": 200},
    "short": {"dead_letter": "dead"},
    "ids": {"dedup_window_ms": 3_600_000},
    "recent": {"dedup_window_ms": round(1000 * _WINDOW_S)},
    "keys": {"last_value": "properties.subject"},
}


def run_timer_campaign(directory: Path, *, seed: int, kills: int, plant: str = "") -> KillResult:
    """Run a campaign in a directory of its own."""
    return Timers(directory, seed=seed, plant=plant).run(kills)


@final
class Timers(KillRounds):
    """The queues, their senders and consumers, and the laws."""

    POINTS = ("message sent", "message held", "outcome said", "consumer goes", "sender settles")
    LIFE_SECONDS = 1.0
    DOWN_SECONDS = 3.0

    def __init__(self, directory: Path, *, seed: int, plant: str) -> None:
        super().__init__(directory, seed=seed, plant=plant)
        names = [name for name in _SETTINGS if name != "dead"]
        self.sent = {name: DeliveryLedger() for name in names}
        self.came = {name: ArrivalLedger() for name in names}
        self.due_s: dict[int, float] = {}
        self.ttl_ms: dict[int, int] = {}
        self.senders: list[ExactSender] = []

    def prepare(self) -> None:
        """See KillRounds."""
        with LinkClient.connect(BrokerUrl.parse(self.broker.url)) as client:
            for name, settings in _SETTINGS.items():
                QueueManagement(client).declare(name, settings)
        message_of = {
            "later": self._later,
            "short": self._short,
            "ids": lambda number: _message(number, f"{number // 40 * 20 + number % 20}"),
            "recent": lambda number: _message(number, f"{number % _RECENT}"),
            "keys": lambda number: _message(number, subject=str(number % _KEYS)),
        }
        consumers = list[NotingConsumer]()
        for name in self.sent:
            chances = [random.Random(self.chance.random()) for _ in range(3)]
            place: tuple[Any, ...] = (name, lambda: self.broker.url)
            ledger, function = self.sent[name], message_of[name]
            sender = ExactSender(
                f"{name}-out", *place, chances[0], self.moments, ledger=ledger, rate=_RATE, message_of=function
            )
            self.senders.append(sender)
            consumers += [
                NotingConsumer(f"{name}-in-{number}", *place, chance, self.moments, ledger=self.came[name])
                for number, chance in enumerate(chances[1:])
            ]
        self.endpoints = [*self.senders, *consumers]

    def _later(self, number: int) -> Message:
        if number not in self.due_s:
            self.due_s[number] = (time.time() + self.chance.uniform(0.2, 5.0)) // _GRID_S * _GRID_S
        due = Timestamp(round(1000 * self.due_s[number]))
        return _message(number, annotations={Symbol("x-opt-delivery-time"): due})

    def _short(self, number: int) -> Message:
        ttl_ms = self.ttl_ms.setdefault(number, self.chance.choice((1, 20, 200, 1000)))
        return _message(number, ttl_ms=ttl_ms)

    def look(self) -> list[str]:
        """See KillRounds: a newer message may take the place of an older one between two looks, but not for long."""
        numbers = list[int]()
        for _ in range(_LOOKS_MAX):
            with LinkClient.connect(BrokerUrl.parse(self.broker.url)) as client:
                rows = list(MessageMoves(client).find("keys", Selection(), reads=True))
            numbers = [int(row["message_id"]) for row in rows]
            if len({number % _KEYS for number in numbers}) == len(numbers):
                return []
        return [f"key: two messages of one key wait: {sorted(numbers, key=lambda number: number % _KEYS)}"]

    def stop_sending(self) -> None:
        """See KillRounds."""
        for sender in self.senders:
            sender.is_sending = False

    def progress(self) -> Any:
        """See KillRounds."""
        left = self._left()
        if not any(left) and all(sender.is_done for sender in self.senders):
            return None
        return left, [len(one.arrivals) for one in self.came.values()], [sender.is_done for sender in self.senders]

    def finish(self) -> list[str]:
        """See KillRounds."""
        for sender in self.senders:
            sender.close()
        with LinkClient.connect(BrokerUrl.parse(self.broker.url)) as client:
            rows = list(MessageMoves(client).find("dead", Selection(), reads=True))
        dead = Counter(int(row["message_id"]) for row in rows)
        self.result.figures.update(
            sent=sum(one.sent for one in self.sent.values()),
            accepted=sum(len(one.accepted) for one in self.sent.values()),
            deliveries=sum(len(one.arrivals) for one in self.came.values()),
            expired=len(dead),
            attached=sum(one.sessions for one in self.endpoints),
        )
        laws = self.wrong_times(), self.wrong_ends(dead), self.wrong_ids(), self.wrong_recent(), self.wrong_keys()
        found = [f"left: {dict(zip(self.sent, self._left(), strict=True))}"] if any(self._left()) else []
        found += [f"twice: {name}: {one.again[0]} came after its end" for name, one in self.came.items() if one.again]
        return found + [fault for one in laws for fault in one[:3]]

    def wrong_times(self) -> list[str]:
        """Scheduled messages that came early, or never."""
        found = [
            f"early: {one.number} came {self.due_s[one.number] - one.at_s:.3f} s before its time"
            for one in self.came["later"].arrivals
            if one.at_s < self.due_s[one.number] - _CLOCK_S
        ]
        return found + _lost("later", self.sent["later"], set(self.came["later"].counts))

    def wrong_ends(self, dead: Counter[int]) -> list[str]:
        """Messages that were offered after their time to live, that ended twice or not at all."""
        sent, came, found = self.sent["short"], self.came["short"], list[str]()
        for one in came.arrivals:
            ttl_ms = self.ttl_ms[one.number]
            late_s = one.at_s - sent.accepted.get(one.number, one.at_s) - ttl_ms / 1000
            if late_s > _BUSY_S:
                found.append(f"expired: {one.number} came {late_s:.1f} s after its end")
            if one.ttl_ms is None or not 1 <= one.ttl_ms <= ttl_ms:
                found.append(f"ttl: {one.number} with {ttl_ms} ms to live came with {one.ttl_ms}")
        found += [f"twice: {number} is {count} dead letters" for number, count in dead.items() if count > 1]
        found += [f"twice: {number} was accepted, and is a dead letter" for number in sorted(came.done & dead.keys())]
        return found + _lost("short", sent, came.counts.keys() | dead.keys())

    def wrong_ids(self) -> list[str]:
        """Ids of which two messages came, or none."""
        by_id = defaultdict[int, set[int]](set)
        for number in self.came["ids"].counts:
            by_id[number // 40 * 20 + number % 20].add(number)
        found = [f"id: {numbers} have one id" for numbers in by_id.values() if len(numbers) > 1]
        stored = {number for number in self.sent["ids"].accepted if number // 40 * 20 + number % 20 in by_id}
        return found + _lost("ids", self.sent["ids"], stored)

    def wrong_recent(self) -> list[str]:
        """Messages that came within the window of another one, or did not come long after it."""
        sent, came, found = self.sent["recent"], self.came["recent"].counts, list[str]()
        before: dict[int, int] = {}
        for number in range(sent.sent):
            known, at_s = before.get(number % _RECENT), sent.sent_s[number]
            if number in came:
                if known is not None and sent.accepted.get(number, 0) - sent.sent_s[known] < _WINDOW_S - _CLOCK_S:
                    found.append(f"window: {number} came within the window of {known}")
                before[number % _RECENT] = number
            elif number in sent.accepted and (known is None or at_s - sent.accepted[known] > _WINDOW_S + _CLOCK_S):
                found.append(f"lost: recent: {number} is no duplicate, and never came")
        return found

    def wrong_keys(self) -> list[str]:
        """Messages that came long after a newer one of their key was stored; newest ones that never came."""
        sent, came, found = self.sent["keys"], self.came["keys"], list[str]()
        for one in came.arrivals:
            newer = [
                number
                for number in range(one.number + _KEYS, sent.sent, _KEYS)
                if sent.accepted.get(number, one.at_s) < one.at_s - _BUSY_S
            ]
            found += [f"replaced: {one.number} came after {newer[0]} of its key"] if newer else []
        newest = set(range(max(0, sent.sent - _KEYS), sent.sent))
        return found + [f"lost: keys: {number}, the newest of its key" for number in newest - came.counts.keys()]

    def _left(self) -> list[int]:
        """Return how many messages each queue has."""
        with LinkClient.connect(BrokerUrl.parse(self.broker.url)) as client:
            found = [QueueManagement(client).read(name) for name in self.sent]
        return [int(one["available"]) + int(one["acquired"]) + int(one.get("scheduled") or 0) for one in found]


def _message(
    number: int,
    message_id: str = "",
    *,
    subject: str | None = None,
    ttl_ms: int | None = None,
    annotations: dict[Any, Any] | None = None,
) -> Message:
    return Message(
        header=Header(durable=True, ttl=ttl_ms),
        message_annotations=annotations,
        properties=Properties(message_id=message_id or str(number), subject=subject),
        body=(Data(b"%d" % number),),
    )


def _lost(name: str, sent: DeliveryLedger, found: set[int]) -> list[str]:
    """Return a fault if stored messages were not found."""
    lost = sorted(set(range(sent.sent)) - found)
    return [f"lost: {name}: {len(lost)} stored messages, the first is {lost[0]}"] if lost else []
