"""An endpoint in receiver-settle-mode second whose link ends in several ways, and is attached again by its maps."""

from typing import Any

from ambermq.protocol.amqp10.performatives.classes import Attach, Detach
from tests.crash.endpoints.delivery_ledger import DeliveryLedger
from tests.crash.endpoints.endpoint import Endpoint
from tests.crash.endpoints.link_wire import LinkWire

__all__ = ["ExactLink"]


class ExactLink(Endpoint):
    """What the sender and the receiver have in common."""

    role = ""
    """Its name in moments."""

    def __init__(self, *arguments: Any, ledger: DeliveryLedger) -> None:
        super().__init__(*arguments)
        self.ledger = ledger

    def attach_frame(self) -> Attach:
        """Return the attach with what is unsettled now."""
        raise NotImplementedError

    def attach(self, wire: LinkWire) -> None:
        """Attach the link, and compare both unsettled maps."""
        raise NotImplementedError

    def close(self) -> None:
        """End the link for good, after the endpoint has stopped: the broker keeps nothing of it."""
        with self.connect() as wire:
            wire.attach_link(self.attach_frame())
            wire.detach_link(closed=True)

    def disrupt(self, wire: LinkWire, *, by_detach: bool = False) -> bool:
        """End the link in one of several ways, and attach it again; return whether the connection is to be lost."""
        roll = self.chance.random()
        if roll < 0.4 or by_detach:
            wire.say(Detach(handle=0, closed=False))
            self.moments.reached(f"{self.role} detaches")
            wire.answer(Detach)
        elif roll < 0.6:
            wire.end_session()
        elif roll < 0.8:
            return True
        else:
            # The container is back before the broker knows that its connection is lost.
            with self.connect() as other:
                self.attach(other)
            return True
        self.attach(wire)
        return False
