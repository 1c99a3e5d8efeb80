"""Consumers that hold messages for a while: one that watches groups, one that watches locks."""

import time
from typing import Any, Final, final

from ambermq.protocol.amqp10.performatives.classes import Accepted, DeliveryState, Rejected
from ambermq.protocol.amqp10.types.values import Symbol
from ambermq.tools.client.broker_url import BrokerUrl
from ambermq.tools.client.link_client import LinkClient
from ambermq.tools.client.management_client import QueueManagement
from ambermq.tools.terminal.errors import ToolError
from tests.crash.endpoints.holding_ledger import HoldingLedger
from tests.crash.endpoints.plain_consumer import Came, PlainConsumer

__all__ = ["LOCK_MS", "GroupConsumer", "LockConsumer"]

LOCK_MS: Final = 500
_FOREVER_S: Final = 1e12
_LOCKED_UNTIL: Final = Symbol("x-opt-locked-until")


class _Watching(PlainConsumer):
    """What both have in common."""

    def __init__(self, *arguments: Any, ledger: HoldingLedger) -> None:
        super().__init__(*arguments)
        self.ledger = ledger

    def group_of(self, one: Came) -> str:
        """Return the group of a message."""
        raise NotImplementedError

    def note_arrival(self, one: Came, until_s: float) -> None:
        """Note a delivery that is held until a time at most, in the broker's clock."""
        count = (one.message.header.delivery_count if one.message.header else 0) or 0
        fault = self.ledger.arrived(
            self.group_of(one), one.number, self.name, self.url, count=count, now_s=time.time(), until_s=until_s
        )
        if fault:
            self.note(fault)

    def saying(self, one: Came) -> None:
        """See PlainConsumer."""
        self.ledger.leaves(self.group_of(one), one.number, self.name)

    def lost(self) -> None:
        """See Endpoint."""
        self.ledger.gone(self.name)


@final
class GroupConsumer(_Watching):
    """Gets all messages of its groups in order, and no other consumer gets one of them meanwhile."""

    def group_of(self, one: Came) -> str:
        """See _Watching."""
        return str(one.message.properties and one.message.properties.group_id)

    def came(self, one: Came) -> None:
        """See PlainConsumer."""
        self.note_arrival(one, _FOREVER_S)
        one.until_s = time.monotonic() + self.chance.choice((0.0, 0.0, 0.01, 0.05))

    def said(self, one: Came, state: DeliveryState | None) -> None:
        """See PlainConsumer."""
        if not isinstance(state, Accepted):
            self.note(f"outcome: {one.number} was accepted, and answered {state!r}")
        self.ledger.answered(one.number, is_accepted=True)


@final
class LockConsumer(_Watching):
    """Says some outcomes too late, and renews some locks."""

    credit = 20

    def group_of(self, one: Came) -> str:
        """See _Watching."""
        return str(one.number)

    def came(self, one: Came) -> None:
        """See PlainConsumer."""
        annotations: Any = one.message.message_annotations or {}
        until_ms = annotations.get(_LOCKED_UNTIL)
        if until_ms is None:
            self.note(f"lock: {one.number} came without x-opt-locked-until")
            until_ms = 0
        self.note_arrival(one, int(until_ms) / 1000)
        roll, wait_s = self.chance.random(), 0.0
        if roll < 0.05:
            wait_s = 2 * LOCK_MS / 1000
        elif roll < 0.1:
            # Near the end of the lock.
            wait_s = max(0.0, int(until_ms) / 1000 - time.time() + self.chance.uniform(-0.01, 0.01))
        elif roll < 0.12 and self._renew(one):
            wait_s = LOCK_MS / 1000
        one.until_s = time.monotonic() + wait_s

    def said(self, one: Came, state: DeliveryState | None) -> None:
        """See PlainConsumer."""
        if not isinstance(state, Accepted | Rejected):
            self.note(f"outcome: {one.number} was accepted, and answered {state!r}")
        self.ledger.answered(one.number, is_accepted=isinstance(state, Accepted))

    def _renew(self, one: Came) -> bool:
        """Renew the lock of a delivery; return whether the broker says so."""
        try:
            with LinkClient.connect(BrokerUrl.parse(self.url)) as client:
                answer = QueueManagement(client).request(
                    "RENEW-LOCK", "org.ambermq.queue", {"name": self.address}, {"delivery_tags": [one.tag]}
                )
        except ToolError:
            return False
        self.ledger.extend(self.group_of(one), one.number, self.name, int(answer[1]["locked_until"]) / 1000)
        return True
