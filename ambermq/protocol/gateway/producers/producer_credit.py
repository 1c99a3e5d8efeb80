"""The credit of one sender, and what the sender is told while it gets none.

Rule 1. Credit is topped up when half of it is used, up to a limit less the messages whose outcome is not sent.
Rule 2. The limit doubles when the sender waits for credit while messages become durable, and falls back at rest.
Rule 3. A sender to a full queue with the policy `block` gets no credit until that has room again.
Rule 4. The sender is told why it is held back, each reason once, and when that is over.
"""

from typing import Final, final

from ambermq.protocol.amqp10.link.receiver import Receiver
from ambermq.protocol.gateway.links.link_peer import LinkPeer
from ambermq.protocol.server_limits import ServerLimits

__all__ = ["QUEUE_FULL", "ProducerCredit"]

QUEUE_FULL: Final = "queue-full"
"""The reason for a sender whose messages are rejected because a queue has its maximum length."""


@final
class ProducerCredit:
    """The credit of one producer's link."""

    __slots__ = ("_limits", "_link", "_max", "blocked", "is_held", "low", "peer", "queue", "unfinished")

    def __init__(self, peer: LinkPeer, link: Receiver, limits: ServerLimits) -> None:
        self.peer = peer
        self._link = link
        self._limits = limits
        self.unfinished = 0
        """The received messages whose outcome is not sent."""
        self._max = limits.credit_max
        """The credit less the unfinished messages: it adapts to the rate of the sender and the time of a sync."""
        self.low = limits.credit_max - limits.credit_max // 2
        """No credit is granted while more than this is left."""
        self.queue = ""
        """The queue that the link's address names; empty without one."""
        self.is_held = False
        """Whether the sender gets no credit until its queue has room."""
        self.blocked = ""
        """The reason that the peer was told last; empty if it is not held back."""

    def finish(self, count: int) -> None:
        """Count messages that have an outcome."""
        self.unfinished -= count
        if self._link.credit <= self.low:
            self.top_up()

    def grow(self) -> None:
        """Double the credit of a sender that waits for it while messages become durable."""
        credit_max = min(2 * self._max, self._limits.credit_grown_max)
        if credit_max > self._max:
            self._max, self.low = credit_max, credit_max - credit_max // 2

    def top_up(self) -> None:
        """Grant credit up to the limit less the unfinished messages, if half of it is used."""
        if not self.unfinished and self._max > self._limits.credit_max:
            self._max = self._limits.credit_max
            self.low = self._max - self._max // 2
        credit, gateway = self._max - self.unfinished, self.peer.gateway
        if credit - self._link.credit >= self._max // 2 and not gateway.is_credit_stopped:
            if self.queue and self.queue in gateway.full_queues:
                self._hold()
            else:
                self._link.grant(credit)

    def resume(self) -> None:
        """Grant credit again: the queue has room."""
        self.is_held = False
        gateway = self.peer.gateway
        gateway.queue_full_ends += 1
        self.tell_blocked(gateway.blocked)
        self.top_up()

    def close(self) -> None:
        """End the wait for room, because the link has ended."""
        if self.is_held:
            self.peer.gateway.full_queues.get(self.queue, {}).pop(self, None)

    def tell_blocked(self, reason: str) -> None:
        """Report to the peer why it is held back; an empty reason says that this is over."""
        reason = reason or (QUEUE_FULL if self.is_held else "")
        if reason != self.blocked:
            self.blocked = reason
            self._link.tell_blocked(reason)

    def tell_queue_full(self, *, is_full: bool) -> None:
        """Report to the peer that its queue is full, or is not any more."""
        gateway = self.peer.gateway
        if is_full and not self.blocked:
            gateway.queue_full_blocks += 1
            self.tell_blocked(QUEUE_FULL)
        elif not is_full and not self.is_held:
            gateway.queue_full_ends += 1
            self.tell_blocked(gateway.blocked)

    def _hold(self) -> None:
        """Wait for room in the queue, and report it to the peer."""
        gateway = self.peer.gateway
        gateway.full_queues[self.queue][self] = None
        if not self.is_held:
            self.is_held = True
            gateway.queue_full_blocks += 1
            self.tell_blocked(gateway.blocked)
