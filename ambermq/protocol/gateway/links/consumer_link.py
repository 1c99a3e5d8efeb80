"""A link on which a peer receives: it sends deliveries, and turns the peer's outcomes into Settle commands.

Rule 1. The engine's credit is what the link can take now: its credit, the session's window, free output. So credit
        behind a closed window acquires no messages.
Rule 2. A delivery's token is the word of the queue entry; only the session knows its delivery-id.
        Deliveries that had been dealt before the receiver took its credit back return to the queue.
Rule 3. A message is sent byte for byte as it is stored. Only a redelivered message gets a new header.
Rule 4. A large message takes turns with other links (gateway/large). Later deliveries of the link wait in its backlog.
Rule 5. The delivery of a large message may begin while that arrives (early_deliveries.py).
"""

from collections import deque
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple, Protocol, final

from ambermq.engine.commands import ReportDamage, ResendHeld, Settle
from ambermq.engine.effects import (
    ConsumerReady,
    CutThroughBegun,
    CutThroughEnded,
    Deliver,
    LocksExpired,
    OutcomeApplied,
)
from ambermq.engine.entries.entry import PLAIN, Entry
from ambermq.engine.entries.entry_word import pack_words, unpack_words
from ambermq.engine.entries.outcome import ACCEPTED, RELEASED, Outcome, OutcomeKind
from ambermq.engine.entries.stored_message import StoredMessage
from ambermq.protocol.amqp10.errors import DecodeError
from ambermq.protocol.amqp10.events import Disposed
from ambermq.protocol.amqp10.link.resumption import UnsettledMap
from ambermq.protocol.amqp10.link.sender import Sender
from ambermq.protocol.amqp10.message.redelivery import KEPT_TTL, with_header
from ambermq.protocol.amqp10.performatives.classes import Accepted, DeliveryState, Rejected, TransactionalState
from ambermq.protocol.amqp10.spec import TransactionCondition
from ambermq.protocol.amqp10.types.decode import Buffer, decode
from ambermq.protocol.amqp10.types.values import Timestamp
from ambermq.protocol.gateway.large.arriving_message import ArrivingMessage
from ambermq.protocol.gateway.large.message_stream import MessageStream
from ambermq.protocol.gateway.large.turn_budget import TurnBudget, Wait
from ambermq.protocol.gateway.links.attach_terms import ConsumingTerms, offered_by, properties_of
from ambermq.protocol.gateway.links.delivery_locks import ExpiredDeliveries, attempts_of, late_state, tag_prefix
from ambermq.protocol.gateway.links.early_deliveries import EarlyDeliveries
from ambermq.protocol.gateway.links.link_peer import ConsumerPeer
from ambermq.protocol.gateway.links.outcome_mapping import outcome_of
from ambermq.protocol.gateway.recovery.resumed_deliveries import ResumedDeliveries, tag_of

__all__ = ["LOCKED_UNTIL", "SEQUENCE_NUMBER", "ConsumerLink", "Follower", "redelivered"]

LOCKED_UNTIL: Final = "x-opt-locked-until"
"""The message annotation that says when the lock of a delivery ends."""
SEQUENCE_NUMBER: Final = "x-opt-sequence-number"
"""The message annotation by which clients of Service Bus name a message of a queue."""

_REJECTED: Final = Rejected()
_FAILED_MAX: Final = 1024


class Follower(Protocol):
    """The source that serves the link of a non-destructive queue."""

    def wake(self) -> None:
        """Serve the link soon: its peer has given credit."""

    def end(self) -> None:
        """Stop: the link has ended."""


class _Delivery(NamedTuple):
    """A run of deliveries in the backlog of a link."""

    words: Sequence[int]
    payloads: Sequence[Buffer]
    settled: bool
    large: "_Large | None" = None
    """The single message of the run, if it is large; then there are no payloads."""
    attempt: int = 0
    """The attempt of a delivery of a queue with locks, for its delivery-tag."""


class _Large(NamedTuple):
    """A large message of the backlog."""

    message: StoredMessage | ArrivingMessage
    entry: Entry | None
    elapsed_us: int
    queue: int
    added: Mapping[str, Any] | None = None
    """Further message annotations."""


_SENDING: Final = _Delivery((), (), settled=True)
"""The first one of a backlog while a large message is being sent: its delivery counts as sent."""


@final
class ConsumerLink:
    """One consumer of the engine, and its link."""

    __slots__ = (
        "_again",
        "_backlog",
        "_early",
        "_expired",
        "_failed",
        "_granted_low",
        "_stream",
        "backlog_count",
        "bytes",
        "consumer",
        "follower",
        "granted",
        "is_closed",
        "is_lost",
        "is_open",
        "is_service_bus",
        "link",
        "message_bytes",
        "messages",
        "peer",
        "resumed",
        "terms",
        "traffic",
        "unsettled",
    )

    def __init__(self, peer: ConsumerPeer["ConsumerLink"], link: Sender, terms: ConsumingTerms) -> None:
        self.peer = peer
        self.link = link
        self.terms = terms
        self.traffic = peer.gateway.traffic
        """The messages of the virtual host."""
        self.messages = self.bytes = 0
        """The messages that were delivered to it, and their bytes."""
        self.consumer = 0
        """The engine's id; 0 until the consumer is attached."""
        self.follower: Follower | None = None
        """What serves the link if its queue is non-destructive; then the engine delivers nothing."""
        self.is_open = True
        self.is_closed = False
        """Whether the peer closed the link."""
        self.is_lost = False
        """Whether its connection is lost. Deliveries that arrive before the end of its consumer return unsent."""
        self.is_service_bus = False
        """Whether its client is one of Service Bus: it knows other conditions and annotations."""
        self._expired: ExpiredDeliveries | None = None
        """Its deliveries whose locks have expired; None if there was none."""
        self._early: EarlyDeliveries | None = None
        """Its deliveries that began while their messages arrived; None if there was none."""
        self._failed: set[int] = set()
        """The words that the peer modified as failed deliveries; at most _FAILED_MAX."""
        self._again: set[int] = set()
        """Those of them that were delivered to it again, and have no outcome since."""
        self._backlog: deque[_Delivery] = deque()
        self._stream: MessageStream | None = None
        """The large message that is first in the backlog; None if another one is."""
        self.granted = 0
        """The engine's credit: the last grant less the deliveries since."""
        self._granted_low = peer.gateway.limits.grant_messages // 2
        """The engine gets a new grant when less than this is left, if the link has more credit."""
        self.message_bytes = 0
        """The approximate size of its messages: first the average of the queue, then that of the large ones sent."""
        self.backlog_count = 0
        """The deliveries in the backlog: another link had used up the session's window."""
        self.unsettled: UnsettledMap | None = None
        """The unsettled map of the peer's attach."""
        self.resumed: ResumedDeliveries | None = None
        """What is to be sent again; None for a link that resumes nothing."""

    def accept(self, ready: ConsumerReady) -> None:
        """Answer the attach."""
        link, theirs = self.link, self.unsettled
        link.accept(
            source=self.terms.source_of(ready),
            target=self.terms.target,
            offered_capabilities=offered_by(self.terms),
            properties=properties_of(ready),
            unsettled=None if theirs is None else {tag_of(key): None for key in ready.held},
            unsettled_bytes_max=self.peer.gateway.limits.unsettled_map_bytes_max,
        )
        if theirs is not None:
            is_incomplete = link.is_incomplete or (link.remote is not None and link.remote.incomplete_unsettled)
            self.resumed = ResumedDeliveries(ready.held, theirs, is_incomplete=is_incomplete)
            self.unsettled = None

    @property
    def backlog_bytes(self) -> int:
        """The size of the deliveries in the backlog."""
        if not self._backlog:
            return 0
        return sum(sum(map(len, delivery.payloads)) for delivery in self._backlog)

    @property
    def is_starved(self) -> bool:
        """Return whether the engine has no credit although the link can take deliveries."""
        return self.granted <= 0 < self.link.sendable

    def top_up(self) -> None:
        """Set the engine's credit to what the link can take now beyond its backlog, within the limits."""
        if self._backlog:
            self.flush()
            self._return_surplus()
        if not self.is_open or not self.consumer or self.peer.is_paused:
            return
        if self.follower is not None:
            self.follower.wake()
            return
        link, gateway = self.link, self.peer.gateway
        limits = gateway.limits
        if self.resumed is not None and not self._resume(self.resumed):
            return
        if self._early is not None and self._early.is_sending:
            self._hold_back()
            return
        bytes_max = limits.grant_bytes // (self.message_bytes or 1)
        sendable = max(link.sendable - self.backlog_count, 0)
        self.granted = min(sendable, limits.grant_messages, bytes_max or 1)
        if not self.granted:
            link.session.await_room()
        gateway.engine.set_credit(self.consumer, self.granted, draining=link.drain)
        if link.drain:
            self.end_drain()
            self._return_surplus()

    def deliver(self, effect: Deliver) -> bool:
        """Send a run of deliveries, or add it to the backlog.

        Return whether the engine needs a new grant: half of the last one is used.
        """
        if effect.is_resumed:
            return self._deliver_again(effect)
        if not self.is_open or not effect.words:
            if self.is_lost:
                self._backlog.append(_Delivery(effect.words, (), effect.settled))
            return False
        if effect.locked_until_ms or self.is_service_bus or self._expired is not None:
            return self._deliver_locked(effect)
        payloads = effect.bodies
        # One message stands for the run. The figure rises at once, and falls slowly.
        size = len(payloads[0])
        self.message_bytes = max(size, self.message_bytes * 7 // 8)
        traffic = self.traffic
        if effect.entries is not None:
            traffic.messages_redelivered += sum(entry is not None and entry.count > 0 for entry in effect.entries)
            payloads = [
                body if isinstance(body, StoredMessage) else redelivered(body, entry, effect.elapsed_us)
                for body, entry in zip(payloads, effect.entries, strict=True)
            ]
            if self._failed:
                self._again |= self._failed.intersection(effect.words)
            if StoredMessage in map(type, payloads):
                return self._deliver_large(effect, payloads)
        link, count = self.link, len(payloads)
        if count > 1:
            size = sum(map(len, payloads))
        traffic.messages_out += count
        traffic.bytes_out += size
        self.messages += count
        self.bytes += size
        if not self._backlog and link.offer_run(effect.words, payloads, effect.settled):  # type: ignore[arg-type]  # of a run without entries all are whole
            self.granted -= count
            if link.drain:
                self.end_drain()
            return self.granted < self._granted_low and link.credit > self.granted
        self._backlog.append(_Delivery(effect.words, payloads, effect.settled))  # type: ignore[arg-type]  # as above
        self.backlog_count += count
        return True

    def deliver_early(self, effect: CutThroughBegun) -> None:
        """Begin the delivery of a message that arrives."""
        if not self.is_open:
            return
        cut_through, early = effect.cut_through, self._early or EarlyDeliveries()
        if self.is_service_bus:
            # Its deliveries have an annotation with the place of the message, which is not known yet.
            cut_through.upload.may_cut_through = False
            self.peer.gateway.engine.stop_cut_through(cut_through)
        elif not cut_through.upload.is_ended:
            self._early = early
            large = _Large(early.begin(cut_through), None, 0, effect.cut_through.queue)
            self._backlog.append(_Delivery((), (), cut_through.settled, large))
            self.backlog_count += 1
        self.top_up()

    def follow(self) -> None:
        """Send what has arrived of the message that arrives."""
        if self._stream is not None:
            self.peer.gateway.sources.wake_stream(self)

    def end_early(self, effect: CutThroughEnded) -> None:
        """Complete the delivery of a message that was published, or abort that of one that will not be."""
        early, cut_through, word = self._early, effect.cut_through, effect.word
        if early is None or early.message is None or early.message.cut_through is not cut_through:
            self.top_up()
            return
        message, outcome = early.message, early.end()
        if not self.is_open:
            if self.is_lost and word:
                # What is not sent returns without a failed delivery.
                self._name(message, word)
            return
        if outcome is not None:
            if word:
                self._count(outcome, 1)
                self.peer.gateway.engine.settle(Settle(self.consumer, pack_words((word,)), outcome))
        elif word:
            self._complete(message, word)
        else:
            self._abort(message)
        self.top_up()

    def _complete(self, message: ArrivingMessage, word: int) -> None:
        """Send the rest of a message that is published."""
        key, stream = message.cut_through.key, self._stream
        is_known_by_key = not self._name(message, word)
        if is_known_by_key and self._early is not None and not message.cut_through.settled:
            self._early.note_word(key, word)
        if stream is not None and stream.token == key:
            stream.complete(word, is_known_by_key=is_known_by_key)
        else:
            message.complete(word)
        size = len(message)
        self.traffic.messages_cut_through += 1
        self.message_bytes = max(size, self.message_bytes)
        self._count_sent(1, size)

    def _name(self, message: ArrivingMessage, word: int) -> bool:
        """Set the word of a message in the backlog; return False if its first frame is sent."""
        for index, one in enumerate(self._backlog):
            if one.large is not None and one.large.message is message:
                self._backlog[index] = one._replace(words=(word,))
                return True
        return False

    def _abort(self, message: ArrivingMessage) -> None:
        """End the delivery of a message that will not be published, or whose rest cannot be sent."""
        stream = self._stream
        if stream is not None and stream.token == message.cut_through.key:
            stream.abort()
            self._end_stream(stream)
            return
        for one in self._backlog:
            if one.large is not None and one.large.message is message:
                self._backlog.remove(one)
                self.backlog_count -= 1
                return

    def _hold_back(self) -> None:
        """Take no delivery while one is being sent whose message arrives."""
        self.granted = 0
        self.peer.gateway.engine.set_credit(self.consumer, 0)
        self.link.session.await_room()
        if self.link.drain and self._stream is not None and self._stream.is_begun:
            self.link.drained()

    def _deliver_locked(self, effect: Deliver) -> bool:
        """Send a run of deliveries with their locks, as many as the link can take; return as `deliver` does.

        The others return to the queue: the time of a lock does not pass in a backlog.
        """
        words, until_ms = effect.words, effect.locked_until_ms
        entries = effect.entries or (None,) * len(words)
        added = [self._annotations(word, until_ms) for word in words]
        if StoredMessage in map(type, effect.bodies):
            return self._deliver_large(effect, effect.bodies, added)
        payloads = [
            redelivered(body, entry, effect.elapsed_us, more)
            for body, entry, more in zip(effect.bodies, entries, added, strict=True)
            if not isinstance(body, StoredMessage)
        ]
        link, traffic, attempts = self.link, self.traffic, attempts_of(effect.entries, len(words))
        count = 0 if self._backlog else min(max(link.sendable, 0), len(words))
        start = 0
        while start < count:
            end = start + 1
            while end < count and attempts[end] == attempts[start]:
                end += 1
            link.use_tag_prefix(tag_prefix(attempts[start]))
            link.send_run(words[start:end], payloads[start:end], effect.settled)
            start = end
        link.use_tag_prefix(tag_prefix(0))
        self.message_bytes = max(len(payloads[0]), self.message_bytes * 7 // 8)
        size = sum(map(len, payloads[:count]))
        traffic.messages_redelivered += sum([entry is not None and entry.count > 0 for entry in entries[:count]])
        traffic.messages_out += count
        traffic.bytes_out += size
        self.messages += count
        self.bytes += size
        self.granted -= count
        if self._failed:
            self._again |= self._failed.intersection(words[:count])
        if count < len(words):
            if effect.settled:
                # They left the queue when they were acquired.
                self._backlog.append(_Delivery(words[count:], payloads[count:], effect.settled))
                self.backlog_count += len(words) - count
            else:
                self.peer.gateway.engine.settle(Settle(self.consumer, pack_words(words[count:]), RELEASED))
            return True
        if link.drain:
            self.end_drain()
        return self.granted < self._granted_low and link.credit > self.granted

    def _annotations(self, word: int, until_ms: int) -> dict[str, Any]:
        """Return the message annotations that a delivery has for its lock, and for a client of Service Bus."""
        added: dict[str, Any] = {LOCKED_UNTIL: Timestamp(until_ms)} if until_ms else {}
        return added | ({SEQUENCE_NUMBER: word >> 16} if self.is_service_bus else {})

    def expire(self, effect: LocksExpired) -> None:
        """Note deliveries whose locks have expired: no outcome changes that."""
        if self._expired is None:
            self._expired = ExpiredDeliveries()
        self._expired.add(unpack_words(effect.words), self.link.session.next_sent_id)

    def _resume(self, resumed: ResumedDeliveries) -> bool:
        """Go on with what is to be sent again; return whether new messages may follow."""
        if self._stream is not None:
            return False
        link, gateway = self.link, self.peer.gateway
        bytes_max = gateway.limits.grant_bytes // (self.message_bytes or 1)
        words = resumed.send(link, min(gateway.limits.grant_messages, bytes_max or 1))
        if words:
            gateway.engine.submit(ResendHeld(self.consumer, self, words))
        if not resumed.is_done:
            if not link.sendable:
                link.session.await_room()
            return False
        if not resumed.is_incomplete:
            resumed.end(link)
            self.resumed = None
            return True
        if link.drain:
            link.drained()
        return False

    def _deliver_again(self, effect: Deliver) -> bool:
        """Send a delivery again that the link held before; return whether there may be more."""
        resumed = self.resumed
        if not self.is_open or resumed is None:
            return False
        if self._stream is not None:
            resumed.put_back()
            return False
        bodies: list[Buffer] = []
        for body, entry in zip(effect.bodies, effect.entries or (), strict=False):
            if isinstance(body, StoredMessage):
                self._stream_again(resumed, body, entry, effect)
                return True
            bodies.append(redelivered(body, entry, effect.elapsed_us))
        self._count_sent(len(bodies), sum(map(len, bodies)))
        resumed.deliver(self.link, bodies, is_plain=self._is_plain(effect.queue))
        return True

    def _stream_again(
        self, resumed: ResumedDeliveries, message: StoredMessage, entry: Entry | None, effect: Deliver
    ) -> None:
        """Begin to send a large message again, from where its receiver was cut off."""
        self._count_sent(1, len(message))
        gateway, one = self.peer.gateway, resumed.take_large(self.link)
        self._stream = MessageStream(
            gateway.engine,
            self.link,
            message,
            partial(redelivered, entry=entry, now_us=effect.elapsed_us),
            effect.words[0],
            settled=False,
            queue=effect.queue,
            resumes=not one.is_new,
            state=one.state if self._is_plain(effect.queue) else None,
        )
        self._backlog.append(_SENDING)
        self.backlog_count += 1
        gateway.sources.wake_stream(self)

    def _is_plain(self, queue: int) -> bool:
        """Return whether deliveries of a queue have no annotations of their own, which those sent again have not."""
        known = self.peer.gateway.engine.state.queues.get(queue)
        return not self.is_service_bus and (known is None or not known.settings.lock_ms)

    def _count_sent(self, count: int, size: int) -> None:
        """Count messages that are sent."""
        self.traffic.messages_out += count
        self.traffic.bytes_out += size
        self.messages += count
        self.bytes += size

    def _deliver_large(
        self,
        effect: Deliver,
        payloads: Sequence[Buffer | StoredMessage],
        added: Sequence[Mapping[str, Any]] | None = None,
    ) -> bool:
        """Add a run with large messages to the backlog, each message by itself.

        With `added`, the annotations of deliveries with locks, the other messages are not rebuilt yet.
        """
        size = sum(map(len, payloads))
        self._count_sent(len(payloads), size)
        entries = effect.entries or (None,) * len(payloads)
        attempts = attempts_of(effect.entries, len(payloads)) if added is not None else [0] * len(payloads)
        for index, (word, payload, entry) in enumerate(zip(effect.words, payloads, entries, strict=True)):
            more, attempt = None if added is None else added[index], attempts[index]
            if isinstance(payload, StoredMessage):
                large = _Large(payload, entry, effect.elapsed_us, effect.queue, more)
                self._backlog.append(_Delivery((word,), (), effect.settled, large, attempt))
            else:
                body = payload if added is None else redelivered(payload, entry, effect.elapsed_us, more)
                self._backlog.append(_Delivery((word,), (body,), effect.settled, None, attempt))
        self.backlog_count += len(payloads)
        return True

    def serve(self, turn: TurnBudget) -> Wait:
        """Send a part of a large message, and return what the link waits for."""
        stream = self._stream
        if stream is None:
            return Wait.PEER
        was_begun = stream.is_begun
        wait = stream.serve(turn)
        if stream.is_begun and not was_begun:
            self.backlog_count -= 1
            self._backlog[0] = _SENDING
            if self._early is not None and self._early.is_sending:
                self._hold_back()
        if stream.is_done:
            self._end_stream(stream)
            self.top_up()
        return wait if self._stream is stream else Wait.PEER

    def _end_stream(self, stream: MessageStream) -> None:
        """Remove a large message from the backlog: it is sent, or damaged."""
        self._stream = None
        self._backlog.popleft()
        if not stream.is_begun:
            self.backlog_count -= 1
        if stream.is_damaged and (early := self._early) is not None and early.is_sending:
            # When the message is published it is like any damaged one.
            message, _ = early.message, early.end()
            assert message is not None, "the link is sending it"
            message.cut_through.upload.may_cut_through = False
            self.peer.gateway.engine.stop_cut_through(message.cut_through)
        elif stream.is_damaged:
            self.peer.gateway.engine.submit(ReportDamage(stream.queue, stream.word))

    def close(self) -> None:
        """Release what the link holds, since it has ended."""
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    def lose(self) -> None:
        """Close the link, whose connection is lost: it takes no more deliveries. Those on their way are not sent."""
        self.end_follower()
        self.is_open = False
        self.close()
        self.is_lost = bool(self.consumer)
        if self.is_lost:
            self.peer.gateway.engine.set_credit(self.consumer, 0)

    def end_follower(self) -> None:
        """End what serves the link, which has ended."""
        if self.follower is not None:
            self.follower.end()
            self.follower = None

    def flush(self) -> None:
        """Send as much of the backlog as the link can take now."""
        while self._stream is None and self._backlog and (count := self.link.sendable):
            words, payloads, settled, large, attempt = self._backlog.popleft()
            self.link.use_tag_prefix(tag_prefix(attempt))
            if large is not None:
                self._backlog.appendleft(_Delivery(words, payloads, settled, large, attempt))
                self._stream = self._stream_of(large, words, settled=settled)
                break
            if len(words) > count:
                self._backlog.appendleft(_Delivery(words[count:], payloads[count:], settled, None, attempt))
            self.link.send_run(words[:count], payloads[:count], settled)
            self.backlog_count -= min(count, len(words))
        if self._stream is not None:
            self.peer.gateway.sources.wake_stream(self)
        elif not self._backlog:
            self.link.use_tag_prefix(tag_prefix(0))

    def _stream_of(self, large: _Large, words: Sequence[int], *, settled: bool) -> MessageStream:
        """Return the stream of a large message; without `words` it is one that arrives."""
        engine, message, queue = self.peer.gateway.engine, large.message, large.queue
        if isinstance(message, ArrivingMessage):
            token = words[0] if words else message.cut_through.key
            return MessageStream(engine, self.link, message, message.rebuild, token, settled=settled, queue=queue)
        rebuild = partial(redelivered, entry=large.entry, now_us=large.elapsed_us, added=large.added)
        return MessageStream(engine, self.link, message, rebuild, words[0], settled=settled, queue=queue)

    def _return_surplus(self) -> None:
        """Return the end of the backlog that exceeds the link's credit to the queue: the receiver took its credit back.

        Settled deliveries stay: they left the queue when they were acquired.
        """
        surplus = self.backlog_count - self.link.credit
        returned: list[bytes] = []
        while surplus > 0 and self._backlog and not self._backlog[-1].settled:
            words, payloads, _, large, attempt = self._backlog.pop()
            if large is not None and isinstance(large.message, ArrivingMessage) and not large.message.is_whole:
                self._give_up(large.message)
                surplus -= 1
                continue
            kept = max(len(words) - surplus, 0)
            if kept:
                self._backlog.append(_Delivery(words[:kept], payloads[:kept], False, None, attempt))
            returned.insert(0, pack_words(words[kept:]))
            surplus -= len(words) - kept
            self.backlog_count -= len(words) - kept
        if self._stream is not None and not self._backlog:
            self.close()
        if returned:
            self.peer.gateway.engine.settle(Settle(self.consumer, b"".join(returned), RELEASED))

    def _give_up(self, message: ArrivingMessage) -> None:
        """Leave a message that arrives to its queue: the receiver took its credit back before anything was sent."""
        self.backlog_count -= 1
        if self._early is not None:
            self._early.end()
        self.peer.gateway.engine.stop_cut_through(message.cut_through)

    def end_drain(self) -> None:
        """Answer a drain whose credit is used up, or whose session is full: its receiver waits for the flow."""
        if self.link.drain and (not self.link.credit or self.link.session.is_full):
            self.link.drained()

    def unsent(self) -> bytes:
        """Return the packed words of deliveries that do not count as failed: those of the unsettled backlog.

        If the peer closes the link, also those that came back to it after it had modified them as failed. A client that
        closes its consumer so counts the failure once, although the broker was quicker than its detach.
        """
        backlog = [pack_words(one.words) for one in self._backlog if not one.settled]
        if self.is_closed and self._again:
            held = set[int]().union(*[one.words for one in self._backlog])
            backlog.append(pack_words(sorted(self._again - held)))
        return b"".join(backlog)

    def command(self, event: Disposed, *, is_checked: bool = False) -> Settle | None:
        """Return the command for the peer's outcome of a run; None if its state is not terminal.

        `is_checked`: the locks of these deliveries have not expired.
        """
        if self._stream is not None and self._stream.is_begun and self._stream.token in event.tokens:
            self._stream.abort()
            self.peer.gateway.sources.wake_stream(self)
        if self._early is not None and not is_checked:
            known, arriving = self._early.parts(event)
            if arriving is not None:
                self._keep_outcome(arriving, self._early)
            if known is None:
                return None
            event = known
        if self._expired is not None and not is_checked:
            return self._late_command(event, self._expired)
        if type(event.state) is Accepted:
            outcome = ACCEPTED
            self.traffic.messages_accepted += len(event.tokens)
        else:
            if event.state is None and not event.settled:
                return None
            if type(event.state) is TransactionalState and self.follower is not None:
                # There is nothing to commit.
                return Settle(self.consumer, b"", ACCEPTED, self._reply(event))
            if type(event.state) is TransactionalState:
                self._retire(event, event.state)
                return None
            mapped = outcome_of(event.state, self.terms.default_outcome)
            if mapped is None and event.settled:
                # A settlement ends the delivery, also with a state that is not terminal.
                mapped = outcome_of(None, self.terms.default_outcome)
            if mapped is None:
                return None
            outcome = mapped
            self._count(mapped, len(event.tokens))
            if mapped.delivery_failed and len(self._failed) < _FAILED_MAX:
                self._failed.update(event.tokens)
        if self._again:
            self._again.difference_update(event.tokens)
        return Settle(self.consumer, pack_words(event.tokens), outcome, self._reply(event))

    def _keep_outcome(self, event: Disposed, early: EarlyDeliveries) -> None:
        """Keep the outcome of the message that arrives until it is published. In a transaction it is void."""
        state = event.state
        if type(state) is TransactionalState:
            transaction = self.peer.transaction(state.txn_id)
            if transaction is not None:
                transaction.doom("it settles a delivery that is not complete")
            early.keep_outcome(RELEASED)
            return
        early.keep_outcome(outcome_of(state, self.terms.default_outcome) or RELEASED)

    def _reply(self, event: Disposed) -> "tuple[ConsumerLink, int, int, DeliveryState | None] | None":
        """Return what the answer to an outcome needs; None if the peer has settled its deliveries."""
        return None if event.settled else (self, event.first_id, len(event.tokens), event.state)

    def _late_command(self, event: Disposed, expired: ExpiredDeliveries) -> Settle | None:
        """Return the command for those deliveries whose lock has not expired; answer the others."""
        command = None
        for is_late, part in expired.parts(event):
            if is_late:
                self._answer_late(part, expired)
                continue
            if command is not None:
                self.peer.gateway.engine.settle(command)
            command = self.command(part, is_checked=True)
        return command

    def _answer_late(self, event: Disposed, expired: ExpiredDeliveries) -> None:
        """Answer an outcome that comes after the end of the lock: it changes nothing."""
        state = event.state
        if type(state) is TransactionalState:
            transaction = self.peer.transaction(state.txn_id)
            if transaction is not None:
                transaction.doom("it settles a delivery whose lock has expired")
        elif not event.settled and (state is None or outcome_of(state, self.terms.default_outcome) is None):
            return
        expired.forget(event.tokens)
        self.traffic.outcomes_late += len(event.tokens)
        if not event.settled:
            late = late_state(is_service_bus=self.is_service_bus)
            self.link.settle_sent(event.first_id, len(event.tokens), late)

    def _retire(self, event: Disposed, state: TransactionalState) -> None:
        """Keep outcomes that the peer says in a transaction; a transaction that is not open ends the link."""
        if state.outcome is None and not event.settled:
            return
        outcome = outcome_of(state.outcome, self.terms.default_outcome)
        if not self.peer.retire(self, event, outcome or RELEASED):
            why = f"no open transaction {bytes(state.txn_id[:16]).hex()} in this connection"
            self.link.fail(TransactionCondition.UNKNOWN_ID, why)

    def _count(self, outcome: Outcome, count: int) -> None:
        """Count the deliveries of an outcome."""
        traffic = self.traffic
        if outcome.kind is OutcomeKind.ACCEPTED:
            traffic.messages_accepted += count
        elif outcome.kind is OutcomeKind.REJECTED:
            traffic.messages_rejected += count
        elif outcome.delivery_failed:
            traffic.messages_failed += count
        else:
            traffic.messages_released += count

    @staticmethod
    def answer(effect: OutcomeApplied) -> None:
        """Settle a run in receiver-settle-mode second, with the outcome that was applied.

        A rejection is answered without its error: an error would mean that the outcome could not be applied.
        """
        consumer_link, first_id, count, state = effect.reply
        if consumer_link.is_open:
            consumer_link.link.settle_sent(first_id, count, _REJECTED if type(state) is Rejected else state)


def redelivered(body: Buffer, entry: Entry | None, now_us: int = 0, added: Mapping[str, Any] | None = None) -> Buffer:
    """Return a message as it is sent: with the delivery count, annotations and remaining time to live of its entry.

    `now_us` is the elapsed time; 0: the time to live stays. A message from another queue has none. `added` are further
    message annotations.
    """
    if entry is None:
        if not added:
            return body
        entry = PLAIN
    ttl_ms: int | None = KEPT_TTL
    if entry.expires_us and now_us:
        ttl_ms = max(1, (entry.expires_us - now_us) // 1000)
    elif entry.origin:
        ttl_ms = None
    elif not (entry.count or entry.annotations or entry.marks or added):
        return body
    try:
        annotations = {decode(key)[0]: decode(value)[0] for key, value in entry.added}
        was_acquired = bool(entry.count or annotations or entry.origin)
        return with_header(
            body,
            delivery_count=entry.count,
            annotations={**annotations, **(added or {})} or None,
            ttl_ms=ttl_ms,
            was_acquired=was_acquired,
        )
    except DecodeError:
        # The header after its durable flag was never decoded: an invalid one is sent as it was received.
        return body
