"""Two campaigns of consumers that hold messages, over kills of the broker and losses of consumers.

    groups    the messages of a group come in order, and one consumer at a time holds some of them
    locks     while a lock lasts no other consumer gets the message; what was accepted in time never comes again

Nothing that the broker has stored is lost. The senders resume their links, so no message is stored twice.
"""

import random
from pathlib import Path
from typing import Any, Final, final

from ambermq.protocol.amqp10.message.message import Message
from ambermq.tools.client.broker_url import BrokerUrl
from ambermq.tools.client.link_client import LinkClient
from ambermq.tools.client.management_client import QueueManagement
from tests.crash.endpoints.delivery_ledger import DeliveryLedger
from tests.crash.endpoints.exact_bodies import CHUNK_BYTES, exact_message
from tests.crash.endpoints.exact_sender import ExactSender
from tests.crash.endpoints.holding_ledger import HoldingLedger
from tests.crash.endpoints.watching_consumers import LOCK_MS, GroupConsumer, LockConsumer
from tests.crash.kill_rounds import KillResult, KillRounds

__all__ = ["HELD", "run_holding_campaign"]

_RATE: Final = 300
_CONSUMERS: Final = 3
_GROUPS: Final = 8

HELD: Final[dict[str, tuple[type[GroupConsumer | LockConsumer], dict[str, Any]]]] = {
    "groups": (GroupConsumer, {"groups": True}),
    "locks": (LockConsumer, {"lock_ms": LOCK_MS}),
}
"""The consumers of each campaign, and the settings of its queue."""


def run_holding_campaign(directory: Path, kind: str, *, seed: int, kills: int, plant: str = "") -> KillResult:
    """Run a campaign of this kind in a directory of its own."""
    return _Holdings(directory, kind, seed=seed, plant=plant).run(kills)


@final
class _Holdings(KillRounds):
    POINTS = ("message sent", "message held", "outcome said", "consumer goes", "sender settles")
    CONFIG = f"[engine]\nchunk_bytes = {CHUNK_BYTES}\n"

    def __init__(self, directory: Path, kind: str, *, seed: int, plant: str) -> None:
        if kind == "locks":
            self.LIFE_SECONDS = 3 * LOCK_MS / 1000
        super().__init__(directory, seed=seed, plant=plant)
        self.kind, self.sent, self.held = kind, DeliveryLedger(), HoldingLedger()

    def prepare(self) -> None:
        """See KillRounds."""
        consumer, settings = HELD[self.kind]
        with LinkClient.connect(BrokerUrl.parse(self.broker.url)) as client:
            QueueManagement(client).declare(self.kind, settings)
        chances = [random.Random(self.chance.random()) for _ in range(1 + _CONSUMERS)]
        place: tuple[Any, ...] = (self.kind, lambda: self.broker.url)
        self.sender = ExactSender(
            "out", *place, chances[0], self.moments, ledger=self.sent, rate=_RATE, message_of=self._message
        )
        self.endpoints = [
            self.sender,
            *[
                consumer(f"in-{number}", *place, chance, self.moments, ledger=self.held)
                for number, chance in enumerate(chances[1:])
            ],
        ]

    def stop_sending(self) -> None:
        """See KillRounds."""
        self.sender.is_sending = False

    def progress(self) -> Any:
        """See KillRounds."""
        # A confirmation may be lost in a kill: then its message does not come again. So the queue says what is left.
        if self.sender.is_done and not self._waiting():
            return None
        return len(self.held.done), self.sender.is_done, sum(self.held.deliveries.values())

    def finish(self) -> list[str]:
        """See KillRounds."""
        lost = [number for number in range(self.sent.sent) if not self.held.deliveries[number]]
        self.sender.close()
        self.result.figures.update(
            sent=self.sent.sent,
            confirmed=len(self.held.done),
            deliveries=sum(self.held.deliveries.values()),
            late=self.held.refused,
            attached=sum(one.sessions for one in self.endpoints),
        )
        return [f"lost: {len(lost)} stored messages never came, the first is {lost[0]}"] if lost else []

    def _message(self, number: int) -> Message:
        return exact_message(number, f"g{number % _GROUPS}" if self.kind == "groups" else None)

    def _waiting(self) -> int:
        """Return how many messages the queue has."""
        with LinkClient.connect(BrokerUrl.parse(self.broker.url)) as client:
            found = QueueManagement(client).read(self.kind)
        return int(found["available"]) + int(found["acquired"])
