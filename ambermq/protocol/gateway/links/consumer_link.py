"""A link on which a peer receives: deliveries go out on it, the peer's outcomes come back as Settle commands.

Rule 1. The engine is told no more than what the link can take now: its credit, the session's window, free output. So
        credit behind a closed window acquires nothing.
Rule 2. A delivery's token is the queue's word; the session alone knows which delivery-id it went by.
Rule 3. What was never delivered before goes out byte for byte; only a redelivered message gets a new header.
"""

from collections import deque
from collections.abc import Sequence
from typing import Final, NamedTuple, final

from ambermq.engine.commands import Settle
from ambermq.engine.effects import ConsumerReady, Deliver, OutcomeApplied
from ambermq.engine.model.entry import Entry
from ambermq.engine.model.entry_word import pack_words
from ambermq.engine.model.outcome import ACCEPTED
from ambermq.protocol.amqp10.errors import DecodeError
from ambermq.protocol.amqp10.events import Disposed
from ambermq.protocol.amqp10.link.sender import Sender
from ambermq.protocol.amqp10.message.redelivery import with_header
from ambermq.protocol.amqp10.performatives.classes import Accepted, Rejected
from ambermq.protocol.amqp10.types.decode import Buffer, decode
from ambermq.protocol.gateway.links.attach_terms import ConsumingTerms
from ambermq.protocol.gateway.links.link_peer import ConsumerPeer
from ambermq.protocol.gateway.links.outcome_mapping import outcome_of

__all__ = ["ConsumerLink", "redelivered"]

_REJECTED: Final = Rejected()


class _Delivery(NamedTuple):
    """A run that waits for its link."""

    words: Sequence[int]
    payloads: Sequence[Buffer]
    settled: bool


@final
class ConsumerLink:
    """One consumer of the engine and the link that it receives on."""

    __slots__ = (
        "_backlog",
        "_granted_low",
        "backlog_count",
        "consumer",
        "granted",
        "is_closed",
        "is_open",
        "link",
        "message_bytes",
        "peer",
        "terms",
    )

    def __init__(self, peer: ConsumerPeer["ConsumerLink"], link: Sender, terms: ConsumingTerms) -> None:
        self.peer = peer
        self.link = link
        self.terms = terms
        self.consumer = 0
        """The engine's id, 0 until it is attached."""
        self.is_open = True
        self.is_closed = False
        """The peer detached for good."""
        self._backlog: deque[_Delivery] = deque()
        self.granted = 0
        """What the engine was told last, less what it has sent since."""
        self._granted_low = peer.gateway.limits.grant_messages // 2
        """With less than that it should hear more, where there is more."""
        self.message_bytes = 0
        """About the size of its messages: that of the queue's at first, then of the large ones among those sent."""
        self.backlog_count = 0
        """Deliveries that left the engine and found the window used up by another link meanwhile."""

    def accept(self, ready: ConsumerReady) -> None:
        """Answer the attach."""
        self.link.accept(source=self.terms.source_of(ready), target=self.terms.target)

    @property
    def is_starved(self) -> bool:
        """The engine was told to wait, but the link can take something now."""
        return self.granted <= 0 < self.link.sendable

    def top_up(self) -> None:
        """Set the engine's credit to what the link can take now beyond its backlog, within the limits."""
        if self.backlog_count:
            self.flush()
        if not self.is_open or not self.consumer or self.peer.is_paused:
            return
        link, gateway = self.link, self.peer.gateway
        limits = gateway.limits
        bytes_max = limits.grant_bytes // (self.message_bytes or 1)
        sendable = max(link.sendable - self.backlog_count, 0)
        self.granted = min(sendable, limits.grant_messages, bytes_max or 1)
        if not self.granted:
            link.session.await_room()
        gateway.engine.set_credit(self.consumer, self.granted, draining=link.drain)
        if link.drain:
            self.end_drain()

    def deliver(self, effect: Deliver) -> bool:
        """Send a run of deliveries, as far as the link can take it now.

        Returns True when the engine should hear anew what the link can take: half of what it was told is used up.
        """
        if not self.is_open or not effect.words:
            return False
        payloads = effect.bodies
        # One message stands for the run: up at once, down slowly.
        self.message_bytes = max(len(payloads[0]), self.message_bytes * 7 // 8)
        if effect.entries is not None:
            payloads = [redelivered(body, entry) for body, entry in zip(payloads, effect.entries, strict=True)]
        link, count = self.link, len(payloads)
        if not self._backlog and link.offer_run(effect.words, payloads, effect.settled):
            self.granted -= count
            if link.drain:
                self.end_drain()
            return self.granted < self._granted_low and link.credit > self.granted
        self._backlog.append(_Delivery(effect.words, payloads, effect.settled))
        self.backlog_count += count
        return True

    def flush(self) -> None:
        """Send what waits for the link, as far as it can take it now."""
        while self._backlog and (count := self.link.sendable):
            words, payloads, settled = self._backlog.popleft()
            if len(words) > count:
                self._backlog.appendleft(_Delivery(words[count:], payloads[count:], settled))
            self.link.send_run(words[:count], payloads[:count], settled)
            self.backlog_count -= min(count, len(words))

    def end_drain(self) -> None:
        """Answer a drain whose credit is used up: its receiver waits for the flow, not for the last transfer.

        So does one that has not settled for so long that it can be sent nothing more.
        """
        if self.link.drain and (not self.link.credit or self.link.session.is_full):
            self.link.drained()

    def unsent(self) -> bytes:
        """Return the words that never reached the peer and go back to the queue, packed."""
        return b"".join([pack_words(words) for words, _, settled in self._backlog if not settled])

    def command(self, event: Disposed) -> Settle | None:
        """Return the command for the peer's outcome over a run, None where it says nothing final."""
        if type(event.state) is Accepted:
            outcome = ACCEPTED
        else:
            if event.state is None and not event.settled:
                return None
            said = outcome_of(event.state, self.terms.default_outcome)
            if said is None and event.settled:
                # Settled in a state that is not final: the delivery is over all the same.
                said = outcome_of(None, self.terms.default_outcome)
            if said is None:
                return None
            outcome = said
        reply = None if event.settled else (self, event.first_id, len(event.tokens), event.state)
        return Settle(self.consumer, pack_words(event.tokens), outcome, reply)

    @staticmethod
    def answer(effect: OutcomeApplied) -> None:
        """Settle a run whose receiver waits for it (receiver-settle-mode second), with the outcome that was applied.

        Why it rejects the receiver knows: with an error the answer would say that the outcome could not be applied.
        """
        consuming, first_id, count, state = effect.reply
        if consuming.is_open:
            consuming.link.settle_sent(first_id, count, _REJECTED if type(state) is Rejected else state)


def redelivered(body: Buffer, entry: Entry | None) -> Buffer:
    """Return a message as it goes out: with the header and annotations that its columns ask for."""
    if entry is None or not (entry.count or entry.annotations):
        return body
    try:
        annotations = {decode(key)[0]: decode(value)[0] for key, value in entry.annotations}
        return with_header(body, delivery_count=entry.count, annotations=annotations or None)
    except DecodeError:
        # What stands behind the durable flag was never read: a header that nobody can read goes out as it came.
        return body
