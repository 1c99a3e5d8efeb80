"""A campaign: senders and receivers resume their links over kills, and each message is stored and accepted once.

    one        one sender, one receiver: the order is kept too
    shared     two senders, two receivers

All links are in receiver-settle-mode second, with termini of durability unsettled-state that never expire. They are
detached without a close, lose their session or connection, and are taken over by a second connection. A share of the
messages is large: it is cut off in the middle by kills and detaches.
"""

import random
from pathlib import Path
from typing import Any, Final, final

from ambermq.tools.client.broker_url import BrokerUrl
from ambermq.tools.client.link_client import LinkClient
from ambermq.tools.client.management_client import QueueManagement
from tests.crash.endpoints.delivery_ledger import DeliveryLedger
from tests.crash.endpoints.exact_bodies import CHUNK_BYTES
from tests.crash.endpoints.exact_receiver import ExactReceiver
from tests.crash.endpoints.exact_sender import ExactSender
from tests.crash.kill_rounds import KillResult, KillRounds

__all__ = ["run_resumption_campaign"]

_RATE: Final = 400
_QUEUES: Final = {"one": 1, "shared": 2}


def run_resumption_campaign(
    directory: Path, *, seed: int, kills: int, plant: str = "", map_bytes: int = 32 << 10
) -> KillResult:
    """Run a campaign in a directory of its own; `map_bytes` is the limit of the broker's unsettled maps."""
    return _Resumptions(directory, seed=seed, plant=plant, map_bytes=map_bytes).run(kills)


@final
class _Resumptions(KillRounds):
    POINTS = (
        *("message half sent", "message sent", "sender attaches", "sender settles", "sender detaches"),
        *("message half received", "outcome said", "outcome settled", "receiver attaches", "receiver detaches"),
    )

    def __init__(self, directory: Path, *, seed: int, plant: str, map_bytes: int) -> None:
        self.CONFIG = f"[engine]\nchunk_bytes = {CHUNK_BYTES}\n[server]\nunsettled_map_bytes_max = {map_bytes}\n"
        super().__init__(directory, seed=seed, plant=plant)
        self.ledgers = {queue: DeliveryLedger() for queue in _QUEUES}
        self.senders: list[ExactSender] = []
        self.receivers: list[ExactReceiver] = []

    def prepare(self) -> None:
        """See KillRounds."""
        for queue, count in _QUEUES.items():
            for number in range(count):
                options: tuple[Any, ...] = (queue, lambda: self.broker.url)
                name, ledger = f"{queue}-{number}", self.ledgers[queue]
                sender_chance, receiver_chance = (random.Random(self.chance.random()) for _ in range(2))
                self.senders.append(
                    ExactSender(f"{name}-out", *options, sender_chance, self.moments, ledger=ledger, rate=_RATE)
                )
                self.receivers.append(
                    ExactReceiver(f"{name}-in", *options, receiver_chance, self.moments, ledger=ledger)
                )
        self.endpoints = [*self.senders, *self.receivers]

    def stop_sending(self) -> None:
        """See KillRounds."""
        for sender in self.senders:
            sender.is_sending = False
        for receiver in self.receivers:
            receiver.is_ending = True

    def progress(self) -> Any:
        """See KillRounds."""
        left = [len(ledger.left) for ledger in self.ledgers.values()]
        held = [receiver.held for receiver in self.receivers]
        if not any(left) and not any(held) and all(sender.is_done for sender in self.senders):
            return None
        return left, held, [sender.is_done for sender in self.senders]

    def finish(self) -> list[str]:
        """See KillRounds."""
        faults = [fault for queue, ledger in self.ledgers.items() for fault in ledger.faults(queue)]
        for one in (*self.senders, *self.receivers):
            one.close()
        with LinkClient.connect(BrokerUrl.parse(self.broker.url)) as client:
            management = QueueManagement(client)
            for queue in _QUEUES:
                found = management.read(queue)
                left = {key: int(found[key]) for key in ("available", "acquired") if found[key]}
                faults += [f"left: {queue}: the broker has {left}"] if left else []
        ledgers = self.ledgers.values()
        self.result.figures.update(
            sent=sum(ledger.sent for ledger in ledgers),
            accepted=sum(len(ledger.done) for ledger in ledgers),
            deliveries=sum(ledger.deliveries for ledger in ledgers),
            resumed=sum(ledger.resumed for ledger in ledgers),
            attached=sum(one.sessions for one in self.endpoints),
        )
        return faults
