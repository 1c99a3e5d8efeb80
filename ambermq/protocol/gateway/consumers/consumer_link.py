"""A link on which a peer receives: it sends deliveries, and turns the peer's outcomes into Settle commands.

Rule 1. The engine's credit is what the link can take now: its credit, the session's window, free output. So credit
        behind a closed window acquires no messages.
Rule 2. A delivery's token is the word of the queue entry; only the session knows its delivery-id.
        Deliveries that had been dealt before the receiver took its credit back return to the queue.
Rule 3. A message is sent byte for byte as it is stored. Only a redelivered message gets a new header.
Rule 4. A large message takes turns with other links (gateway/large). Later deliveries of the link wait in its backlog.
Rule 5. The delivery of a large message may begin while that arrives (early_deliveries.py).
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol, final

from ambermq.engine.commands import ReportDamage, ResendHeld, Settle
from ambermq.engine.effects import (
    ConsumerReady,
    CutThroughBegun,
    CutThroughEnded,
    Deliver,
    LocksExpired,
    OutcomeApplied,
)
from ambermq.engine.entries.entry_word import pack_words, unpack_words
from ambermq.engine.entries.outcome import ACCEPTED, RELEASED
from ambermq.engine.entries.stored_message import StoredMessage
from ambermq.protocol.amqp10.events import Disposed
from ambermq.protocol.amqp10.link.resumption import UnsettledMap
from ambermq.protocol.amqp10.link.sender import Sender
from ambermq.protocol.amqp10.performatives.classes import Accepted, DeliveryState, Rejected, TransactionalState
from ambermq.protocol.amqp10.types.decode import Buffer
from ambermq.protocol.gateway.consumers.aborted_delivery import split_at_aborted
from ambermq.protocol.gateway.consumers.backlog import Backlog
from ambermq.protocol.gateway.consumers.delivery_locks import ExpiredDeliveries, attempts_of, send_attempts
from ambermq.protocol.gateway.consumers.early_deliveries import EarlyDeliveries
from ambermq.protocol.gateway.consumers.failed_deliveries import FailedDeliveries
from ambermq.protocol.gateway.consumers.link_resumption import LinkResumption
from ambermq.protocol.gateway.consumers.retired_deliveries import RetiredDeliveries
from ambermq.protocol.gateway.large.turn_budget import TurnBudget, Wait
from ambermq.protocol.gateway.links.attach_terms import ConsumingTerms, offered_by, properties_of
from ambermq.protocol.gateway.links.link_peer import ConsumerPeer
from ambermq.protocol.gateway.links.outcome_mapping import outcome_of
from ambermq.protocol.gateway.links.outgoing_message import delivery_annotations, redelivered
from ambermq.protocol.gateway.recovery.resumed_deliveries import ResumedDeliveries, unsettled_map

__all__ = ["ConsumerLink", "Follower"]

_REJECTED: Final = Rejected()


class Follower(Protocol):
    """The source that serves the link of a non-destructive queue."""

    def wake(self) -> None:
        """Serve the link soon: its peer has given credit."""

    def end(self) -> None:
        """Stop: the link has ended."""


@final
class ConsumerLink:
    """One consumer of the engine, and its link."""

    __slots__ = (
        *("_backlog", "_expired", "_failed", "_granted_low", "_retired", "bytes", "consumer", "early", "follower"),
        *("granted", "is_closed", "is_lost", "is_open", "is_service_bus", "link", "message_bytes", "messages", "peer"),
        *("resumption", "terms", "traffic", "unsettled"),
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
        self.early: EarlyDeliveries | None = None
        """Its deliveries that began while their messages arrived; None if there was none."""
        self._expired: ExpiredDeliveries | None = None
        """Its deliveries whose locks have expired; None if there was none."""
        self._failed: FailedDeliveries | None = None
        """Its deliveries that the peer modified as failed; None if there was none."""
        self._retired: RetiredDeliveries | None = None
        """What the peer has said in transactions; None if that is nothing."""
        self._backlog = Backlog(link)
        """The deliveries that wait: another link had used up the session's window."""
        self.granted = 0
        """The engine's credit: the last grant less the deliveries since."""
        self._granted_low = peer.gateway.limits.grant_messages // 2
        """The engine gets a new grant when less than this is left, if the link has more credit."""
        self.message_bytes = 0
        """The approximate size of its messages: first the average of the queue, then that of the large ones sent."""
        self.unsettled: UnsettledMap | None = None
        """The unsettled map of the peer's attach."""
        self.resumption: LinkResumption | None = None
        """What is to be sent again; None for a link that resumes nothing."""

    def accept(self, ready: ConsumerReady) -> None:
        """Answer the attach."""
        link, theirs = self.link, self.unsettled
        is_complete = link.remote is not None and not link.remote.incomplete_unsettled
        ours, spare = (None, 0) if theirs is None else unsettled_map(ready.held, theirs, is_complete=is_complete)
        link.accept(
            source=self.terms.source_of(ready),
            target=self.terms.target,
            offered_capabilities=offered_by(self.terms),
            properties=properties_of(ready),
            unsettled=ours,
            unsettled_bytes_max=self.peer.gateway.limits.unsettled_map_bytes_max,
            unsettled_spare=spare,
        )
        if theirs is not None:
            deliveries = ResumedDeliveries(ready.held, theirs, is_incomplete=link.is_incomplete or not is_complete)
            self.resumption = LinkResumption(link, self._backlog, deliveries)
            self.unsettled = None

    @property
    def backlog_bytes(self) -> int:
        """The size of the deliveries in the backlog."""
        return self._backlog.size

    @property
    def backlog_count(self) -> int:
        """The deliveries in the backlog."""
        return self._backlog.count

    @property
    def is_starved(self) -> bool:
        """Return whether the engine has no credit although the link can take deliveries."""
        return self.granted <= 0 < self.link.sendable

    def top_up(self) -> None:
        """Set the engine's credit to what the link can take now beyond its backlog, within the limits."""
        backlog = self._backlog
        if backlog.runs:
            self.flush()
            self._return_surplus()
        if not self.is_open or not self.consumer or self.peer.is_paused:
            return
        if self.follower is not None:
            self.follower.wake()
            return
        link, gateway = self.link, self.peer.gateway
        limits = gateway.limits
        if self.resumption is not None and not self._resume(self.resumption):
            return
        if self.early is not None and self.early.is_sending:
            self._hold_back(self.early)
            return
        bytes_max = limits.grant_bytes // (self.message_bytes or 1)
        sendable = max(link.sendable - backlog.count, 0)
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
                self._backlog.add_unsent(effect.words, settled=effect.settled)
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
            if self._failed is not None:
                self._failed.note_sent(effect.words)
            if StoredMessage in map(type, payloads):
                return self._deliver_large(effect, payloads)
        link, count, backlog = self.link, len(payloads), self._backlog
        if count > 1:
            size = sum(map(len, payloads))
        traffic.messages_out += count
        traffic.bytes_out += size
        self.messages += count
        self.bytes += size
        if not backlog.runs and link.offer_run(effect.words, payloads, effect.settled):  # type: ignore[arg-type]  # of a run without entries all are whole
            self.granted -= count
            if link.drain:
                self.end_drain()
            return self.granted < self._granted_low and link.credit > self.granted
        backlog.add(effect.words, payloads, settled=effect.settled)  # type: ignore[arg-type]  # as above
        return True

    def deliver_early(self, effect: CutThroughBegun) -> None:
        """Begin the delivery of a message that arrives."""
        if self.is_open:
            self.early = self.early or EarlyDeliveries(self._backlog, self.peer.gateway.engine)
            self.early.begin(effect.cut_through)
            self.top_up()

    def follow(self) -> None:
        """Send what has arrived of the message that arrives."""
        if self._backlog.stream is not None:
            self.peer.gateway.sources.wake_stream(self)

    def end_early(self, effect: CutThroughEnded) -> None:
        """Complete the delivery of a message that is published, or abort that of one that will not be."""
        early, cut_through = self.early, effect.cut_through
        is_given_up = early is None or early.message is None or early.message.cut_through is not cut_through
        size, outcome = (0, None) if early is None else early.end(cut_through, effect.word)
        if not self.is_open:
            self._backlog.close()
            if self.is_lost and effect.word and is_given_up:
                self._backlog.add_unsent((effect.word,), settled=cut_through.settled)
            return
        if effect.word and is_given_up and not cut_through.settled:
            # It was acquired before the engine knew of that.
            self.peer.gateway.engine.settle(Settle(self.consumer, pack_words((effect.word,)), RELEASED))
        if outcome is not None:
            self.traffic.count_outcome(outcome, 1)
            self.peer.gateway.engine.settle(Settle(self.consumer, pack_words((effect.word,)), outcome))
        if size:
            self.traffic.messages_cut_through += 1
            self.message_bytes = max(size, self.message_bytes)
            self._count_sent(1, size)
        self.follow()
        self.top_up()

    def _hold_back(self, early: EarlyDeliveries) -> None:
        """Request no deliveries while one is being sent whose message arrives."""
        self.granted = 0
        self.peer.gateway.engine.set_credit(self.consumer, 0)
        self.link.session.await_room()
        if self.link.drain and (early.is_begun or self.link.session.is_full):
            self.link.drained()
            self._return_surplus()

    def _deliver_locked(self, effect: Deliver) -> bool:
        """Send a run of deliveries with their locks, as many as the link can take; return as `deliver` does.

        The others return to the queue: the time of a lock does not pass in a backlog.
        """
        words, until_ms = effect.words, effect.locked_until_ms
        entries = effect.entries or (None,) * len(words)
        added = [delivery_annotations(word, until_ms, is_service_bus=self.is_service_bus) for word in words]
        if StoredMessage in map(type, effect.bodies):
            return self._deliver_large(effect, effect.bodies, added)
        payloads = [
            redelivered(body, entry, effect.elapsed_us, more)
            for body, entry, more in zip(effect.bodies, entries, added, strict=True)
            if not isinstance(body, StoredMessage)
        ]
        link, traffic, attempts = self.link, self.traffic, attempts_of(effect.entries, len(words))
        count = 0 if self._backlog.runs else min(max(link.sendable, 0), len(words))
        send_attempts(link, words[:count], payloads[:count], attempts, settled=effect.settled)
        self.message_bytes = max(len(payloads[0]), self.message_bytes * 7 // 8)
        size = sum(map(len, payloads[:count]))
        traffic.messages_redelivered += sum([entry is not None and entry.count > 0 for entry in entries[:count]])
        self._count_sent(count, size)
        self.granted -= count
        if self._failed is not None:
            self._failed.note_sent(words[:count])
        if count < len(words):
            if effect.settled:
                # They left the queue when they were acquired.
                self._backlog.add(words[count:], payloads[count:], settled=effect.settled)
            else:
                self.peer.gateway.engine.settle(Settle(self.consumer, pack_words(words[count:]), RELEASED))
            return True
        if link.drain:
            self.end_drain()
        return self.granted < self._granted_low and link.credit > self.granted

    def expire(self, effect: LocksExpired) -> None:
        """Note deliveries whose locks have expired: no outcome changes that."""
        if self._expired is None:
            self._expired = ExpiredDeliveries()
        self._expired.add(unpack_words(effect.words), self.link.session.next_sent_id)

    def _resume(self, resumption: LinkResumption) -> bool:
        """Go on with what is to be sent again; return whether new messages may follow."""
        if self._backlog.stream is not None:
            return False
        gateway = self.peer.gateway
        bytes_max = gateway.limits.grant_bytes // (self.message_bytes or 1)
        words = resumption.ask(min(gateway.limits.grant_messages, bytes_max or 1))
        if words:
            gateway.engine.submit(ResendHeld(self.consumer, self, words))
        if not resumption.finish():
            return False
        self.resumption = None
        return True

    def _deliver_again(self, effect: Deliver) -> bool:
        """Send a delivery again that the link held before; return whether there may be more."""
        gateway, resumption = self.peer.gateway, self.resumption
        if not self.is_open or resumption is None:
            return False
        sent = resumption.deliver(effect, gateway.engine, is_plain=self._is_plain(effect.queue))
        if sent is None:
            return False
        self._count_sent(*sent)
        if self._backlog.stream is not None:
            gateway.sources.wake_stream(self)
        return True

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
        """Add a run with large messages to the backlog; `added` are the annotations of deliveries with locks."""
        self._count_sent(len(payloads), sum(map(len, payloads)))
        self._backlog.add_each(effect, payloads, self.peer.gateway.engine, added)
        return True

    def serve(self, turn: TurnBudget) -> Wait:
        """Send a part of a large message, and return what the link waits for."""
        backlog, stream, early = self._backlog, self._backlog.stream, self.early
        if stream is None:
            return Wait.PEER
        wait = backlog.serve(stream, turn)
        if stream.is_done:
            if stream.is_damaged and early is not None and early.is_of(stream):
                # When the message is published it is like any damaged one.
                early.give_up(may_begin_again=False)
            elif stream.is_damaged:
                self.peer.gateway.engine.submit(ReportDamage(stream.queue, stream.word))
            self.top_up()
        elif self.link.drain and early is not None and early.is_sending:
            self._hold_back(early)
        return wait if backlog.stream is stream else Wait.PEER

    def close(self) -> None:
        """Release what the link holds, since it has ended."""
        self._backlog.close()

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
        gateway = self.peer.gateway
        self._backlog.flush(gateway.engine)
        if self._backlog.stream is not None:
            gateway.sources.wake_stream(self)

    def _return_surplus(self) -> None:
        """Return the end of the backlog that exceeds the link's credit to the queue."""
        returned = self._backlog.take_surplus()
        if returned:
            self.peer.gateway.engine.settle(Settle(self.consumer, returned, RELEASED))
        early = self.early
        if early is not None and early.message is not None and early.message.is_given_up:
            early.give_up()

    def end_drain(self) -> None:
        """Answer a drain whose credit is used up, or whose session is full: its receiver waits for the flow."""
        if self.link.drain and (not self.link.credit or self.link.session.is_full):
            self.link.drained()

    def unsent(self) -> bytes:
        """Return the packed words of deliveries that do not count as failed: those of the unsettled backlog.

        If the peer closes the link, also those that came back to it after it had modified them as failed. A client that
        closes its consumer so counts the failure once, although the broker was quicker than its detach.
        """
        backlog = self._backlog.unsettled_words()
        if self.is_closed and self._failed is not None and self._failed.again:
            backlog.append(pack_words(sorted(self._failed.again - self._backlog.words())))
        return b"".join(backlog)

    def command(self, event: Disposed, *, is_checked: bool = False) -> Settle | None:
        """Return the command for the peer's outcome of a run; None if its state is not terminal.

        `is_checked`: the locks of these deliveries have not expired.
        """
        stream = self._backlog.stream
        if stream is not None and stream.is_begun and stream.token in event.tokens:
            stream.abort()
            self.peer.gateway.sources.wake_stream(self)
            before, event = split_at_aborted(event)
            if before is not None and (command := self.command(before, is_checked=is_checked)) is not None:
                self.peer.gateway.engine.settle(command)
        if self.early is not None and not is_checked:
            known = self.early.take(event, self.peer, self.terms.default_outcome)
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
                self._retired = self._retired or RetiredDeliveries()
                self._retired.retire(self, event, event.state)
                return None
            mapped = outcome_of(event.state, self.terms.default_outcome)
            if mapped is None and event.settled:
                # A settlement ends the delivery, also with a state that is not terminal.
                mapped = outcome_of(None, self.terms.default_outcome)
            if mapped is None:
                return None
            outcome = mapped
            self.traffic.count_outcome(mapped, len(event.tokens))
            if mapped.delivery_failed:
                self._failed = self._failed or FailedDeliveries()
                self._failed.add(event.tokens)
        if self._failed is not None:
            self._failed.note_outcome(event.tokens)
        if self._retired is not None:
            self._retired.end(self, event.tokens)
        return Settle(self.consumer, pack_words(event.tokens), outcome, self._reply(event))

    def _reply(self, event: Disposed) -> "tuple[ConsumerLink, int, int, DeliveryState | None] | None":
        """Return what the answer to an outcome needs; None if the peer has settled its deliveries."""
        return None if event.settled else (self, event.first_id, len(event.tokens), event.state)

    def _late_command(self, event: Disposed, expired: ExpiredDeliveries) -> Settle | None:
        """Return the command for those deliveries whose lock has not expired; answer the others."""
        command = None
        for is_late, part in expired.parts(event):
            if is_late:
                default = self.terms.default_outcome
                expired.answer(self.link, part, self.peer, default, is_service_bus=self.is_service_bus)
                continue
            if command is not None:
                self.peer.gateway.engine.settle(command)
            command = self.command(part, is_checked=True)
        return command

    @staticmethod
    def answer(effect: OutcomeApplied) -> None:
        """Settle a run in receiver-settle-mode second, with the outcome that was applied.

        A rejection is answered without its error: an error would mean that the outcome could not be applied.
        """
        consumer_link, first_id, count, state = effect.reply
        if consumer_link.is_open:
            link = consumer_link.link
            link.settle_sent(first_id, count, _REJECTED if type(state) is Rejected else state)
            if effect.consumer:
                # The messages may come again to this link, under the same tags.
                link.session.settlements.flush()
