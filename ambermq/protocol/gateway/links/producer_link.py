"""A link on which a peer sends: its messages become Publish commands, their outcomes dispositions.

Rule 1. Credit paces a sender: it is topped up when half is used, by the messages that became durable. The server has
        the hard limit.
Rule 2. The bare message is stored byte for byte. Delivery annotations are for the broker alone, and are removed.
Rule 3. A malformed message is rejected with amqp:decode-error; its run goes on. A settled one has no outcome, so it
        ends the link with that error; those before it are published.
Rule 4. A run of messages like the last decoded one is published without decoding (message_recogniser.py).
Rule 5. A link to a full queue with the policy `block` gets no credit until that has room again.
Rule 6. A refused message is rejected. If the source does not allow that, the link is detached with the error instead,
        and also for a settled message to an address that does not exist (anonterm, 2.2.2). Other settled messages that
        are refused are dropped.
Rule 7. A large message is stored piece by piece as it arrives (gateway/large), and published with its last piece.
"""

from collections.abc import Sequence
from typing import Final, final

from ambermq.engine.commands import Publish, SettleTags, Transaction
from ambermq.engine.effects import ChunkStored, ProducerReady, PublishDone
from ambermq.engine.entries.outcome import OutcomeKind
from ambermq.engine.entries.priority import PRIORITY_DEFAULT
from ambermq.protocol.amqp10.errors import DecodeError, LinkFault
from ambermq.protocol.amqp10.events import Disposed, TransferPiece, TransferRun
from ambermq.protocol.amqp10.link.receiver import ANY_RUN, Receiver
from ambermq.protocol.amqp10.link.resumption import UnsettledMap
from ambermq.protocol.amqp10.message.delivery_time import AT_ONCE, DeliveryTime
from ambermq.protocol.amqp10.message.message_recogniser import MessageRecogniser, learn_message
from ambermq.protocol.amqp10.message.publish_outline import read_outline
from ambermq.protocol.amqp10.message.redelivery import without_delivery_annotations
from ambermq.protocol.amqp10.performatives.classes import Accepted, DeliveryState, Error, Rejected, TransactionalState
from ambermq.protocol.amqp10.serial_number import MASK
from ambermq.protocol.amqp10.spec import AmqpCondition, ReceiverSettleMode, TransactionCondition
from ambermq.protocol.amqp10.types.decode import Buffer
from ambermq.protocol.amqp10.types.values import Symbol
from ambermq.protocol.gateway.large.link_upload import LinkUpload
from ambermq.protocol.gateway.links.attach_terms import ProducingTerms, offered_by, properties_of
from ambermq.protocol.gateway.links.link_peer import ProducerPeer
from ambermq.protocol.gateway.links.outcome_mapping import STATES, rejected_state, state_in
from ambermq.protocol.gateway.links.relay_guard import RelayGuard
from ambermq.protocol.server_limits import ServerLimits

__all__ = ["QUEUE_FULL", "ProducerLink"]

_Kind = tuple[bool, int, int, DeliveryTime, int]
"""What messages of one command have in common: durable, time to live, priority, when they are available, and expiry."""
_PLAIN: Final[_Kind] = (False, 0, PRIORITY_DEFAULT, AT_ONCE, 0)
_ACCEPTED: Final = Accepted()
_DECODED_RUN_MAX: Final = 256
"""The messages of a run on a link whose messages are decoded one by one: with their commands they take 3 ms."""
_ALIKE_RUN: Final = 4096
"""The limit doubles with each whole run of alike messages; it ends with one of this size."""
QUEUE_FULL: Final = "queue-full"
"""The reason for a sender whose messages are rejected because a queue has its maximum length."""


@final
class ProducerLink:
    """One producer of the engine, and its link."""

    __slots__ = (
        *("_blocked", "_credit_low", "_credit_max", "_is_held", "_may_reject", "_message_bytes_max", "_recogniser"),
        *("_tags", "bytes", "guard", "held", "is_open", "limits", "link", "messages", "peer", "producer", "queue"),
        *("_cut_tag", "_kept", "_unsettled_ids", "is_second", "resumes", "terms", "traffic", "unfinished", "upload"),
    )

    def __init__(
        self, peer: ProducerPeer["ProducerLink"], link: Receiver, limits: ServerLimits, terms: ProducingTerms
    ) -> None:
        self.peer = peer
        self.link = link
        self.limits = limits
        self.terms = terms
        self.traffic = peer.gateway.traffic
        """The messages of the virtual host."""
        self.messages = self.bytes = 0
        """The messages that it has sent, and their bytes."""
        self.producer = 0
        """The engine's id; 0 until the producer is attached."""
        self.unfinished = 0
        """The received messages whose outcome is not sent."""
        self.upload: LinkUpload | None = None
        """The large message that is arriving; None without one."""
        self.held = 0
        """The commands of the link that wait behind pieces of large messages."""
        self._credit_max = limits.credit_max
        """The credit less the unfinished messages: it adapts to the rate of the sender and the time of a sync."""
        self._credit_low = limits.credit_max - limits.credit_max // 2
        """No credit is granted while more than this is left."""
        self._blocked = ""
        """The reason that the peer was told last; empty if it is not held back."""
        self.queue = ""
        """The queue that its address names; empty without one."""
        self._is_held = False
        """Whether it gets no credit until its queue has room."""
        self.is_open = True
        self.guard: RelayGuard | None = None
        """Checks the addresses of messages; None if the attach has checked everything."""
        self._recogniser: MessageRecogniser | None = None
        """Recognises messages like the last decoded one; None without one, or if it cannot be learned."""
        self._message_bytes_max = 0
        """The largest message that the queue at its address takes; 0: no limit of its own."""
        self._may_reject = True
        """Whether the source has the outcome rejected; known when the attach is answered."""
        self._tags: dict[int, bytes] = {}
        """The delivery-tags of unfinished messages whose refusal detaches the link, by delivery-id."""
        self.is_second = False
        """Whether the sender settles after it knows the outcome: then the broker keeps its delivery-tags."""
        self.resumes: UnsettledMap | None = None
        """The unsettled map of the peer's attach."""
        self._kept: set[bytes] = set()
        """The tags of stored messages that the sender has not settled."""
        self._unsettled_ids: dict[int, bytes] = {}
        """The tags of messages in receiver-settle-mode second by delivery-id."""
        self._cut_tag = b""
        """The tag of a delivery whose first frames came on the link before it was detached; nothing of it is stored."""

    def accept(self, ready: ProducerReady) -> None:
        """Answer the attach."""
        target = self.terms.target_of(ready)
        self._may_reject = self.terms.may_reject
        self.queue = ready.queue
        self.link.has_tags = not self._may_reject or self.is_second
        self.link.has_settled_tags = self.terms.is_anonymous
        # A queue may take less than a connection, never more.
        limit = self.link.session.connection.limits.message_bytes_max
        self._message_bytes_max = ready.message_bytes_max
        self.link.piece_bytes = self.peer.gateway.engine.config.chunk_bytes
        self.link.accept(
            self.terms.source,
            target,
            receiver_settle_mode=ReceiverSettleMode.SECOND if self.is_second else ReceiverSettleMode.FIRST,
            max_message_size=min(ready.message_bytes_max or limit, limit),
            offered_capabilities=offered_by(self.terms),
            properties=properties_of(ready),
            unsettled=self._unsettled_map(ready),
            unsettled_bytes_max=self.limits.unsettled_map_bytes_max,
        )

    def _unsettled_map(self, ready: ProducerReady) -> UnsettledMap | None:
        """Return our unsettled map: the kept tags with their outcome, and a delivery of which nothing is stored."""
        theirs, self.resumes = self.resumes, None
        if theirs is None:
            return None
        self._kept = set(ready.kept)
        cut = self._cut_tag if self._cut_tag in theirs and self._cut_tag not in self._kept else b""
        self._cut_tag = cut
        self.link.resumable = self._kept | ({cut} if cut else set())
        ours: dict[bytes, DeliveryState | None] = dict.fromkeys(ready.kept, _ACCEPTED)
        return ours | ({cut: None} if cut else {})

    def note_resumption(self, unsettled: UnsettledMap, cut_tag: bytes) -> None:
        """Note the unsettled map of the peer's attach, and the tag of a delivery that its detach had cut off."""
        self.resumes, self._cut_tag = unsettled, cut_tag

    def settled(self, event: Disposed) -> None:
        """Forget the tags of deliveries that the sender has settled."""
        if event.settled and self._unsettled_ids:
            tags = [self._unsettled_ids.pop(one, b"") for one in event.tokens]
            # One may not be stored yet: the engine forgets it then, after it has stored the message.
            self._forget_tags([tag for tag in tags if tag])

    def _forget_tags(self, tags: Sequence[bytes]) -> None:
        if tags:
            self._kept.difference_update(tags)
            self.peer.gateway.engine.submit(SettleTags(self.producer, tuple(tags)))

    def _answer_resumed(self, run: TransferRun) -> bool:
        """Answer a resumed delivery that is stored by its kept outcome; return whether it is one."""
        tag = bytes(run.tag or b"")
        if tag not in self._kept:
            # Its first frames came before the detach: it comes as a whole now.
            return False
        if run.settled:
            self._forget_tags([tag])
            return True
        self.link.session.settle(run.first_id, 1, _ACCEPTED)
        if self.is_second:
            self._unsettled_ids[run.first_id] = tag
        else:
            self._forget_tags([tag])
        return True

    def publish(self, run: TransferRun) -> None:
        """Submit the commands for a run of messages: one ends where their kind changes, or at its limit.

        Malformed messages are rejected. If the run is settled, raises DecodeError for the first one, after the commands
        for those before it. Raises LinkFault for a message format other than 0, which a delivery could not report to
        its receiver.
        """
        if run.message_format:
            raise LinkFault(AmqpCondition.NOT_IMPLEMENTED, f"message-format {run.message_format:#x}, expected 0")
        if run.is_resumed and self._answer_resumed(run):
            self._count_finished(0)
            return
        if run.tag is not None and (not self._may_reject or (run.settled and self.link.has_settled_tags)):
            self._tags[run.first_id] = bytes(run.tag)
        transaction = None if run.state is None else self._transaction_of(run.state)
        # A copy, since later commands are joined into it.
        bodies: list[Buffer] = [*run.payloads]
        recogniser = self._recogniser
        size, count = sum(map(len, bodies)), len(bodies)
        self.unfinished += count
        traffic = self.traffic
        traffic.messages_in += count
        traffic.bytes_in += size
        self.messages += count
        self.bytes += size
        if run.before_bytes:
            self._publish_upload(run, transaction)
            return
        if self.guard is not None:
            self._publish_allowed(run, self.guard, transaction)
            return
        hashes = recogniser.id_hashes(bodies) if recogniser is not None and size <= self.limits.run_bytes_max else None
        if recogniser is None or hashes is None:
            if recogniser is not None and size <= self.limits.run_bytes_max:
                self.link.run_max = _DECODED_RUN_MAX
            self._publish_each(run, transaction)
            return
        if count == self.link.run_max:
            self.link.run_max = 2 * count if count < _ALIKE_RUN else ANY_RUN
        publish = Publish(self, self.producer, run.first_id, bodies, hashes, size, recogniser.is_durable, run.settled)
        publish.ttl_ms, publish.priority = recogniser.ttl_ms, recogniser.priority
        publish.transaction = transaction
        publish.time_ms, publish.delay_ms = recogniser.delivery
        if recogniser.expires_ms:
            publish.expires_ms = recogniser.expires_ms
        if recogniser.may_group:
            publish.groups = recogniser.groups(bodies)
        if self.is_second:
            publish.tag = self._tag_to_keep(run, transaction)
        if self.held:
            self.peer.gateway.uploads.submit(self, publish)
        else:
            self.peer.gateway.engine.publish(publish)

    def take_piece(self, event: TransferPiece) -> None:
        """Store a piece of a large message, or drop it if the message is refused.

        Raises LinkFault for a message format other than 0.
        """
        if event.message_format:
            raise LinkFault(AmqpCondition.NOT_IMPLEMENTED, f"message-format {event.message_format:#x}, expected 0")
        gateway, size, upload = self.peer.gateway, len(event.payload), self.upload
        self.traffic.bytes_in += size
        self.bytes += size
        if upload is None:
            limit, refusal = self._message_bytes_max, self.peer.upload_refusal(self)
            upload = LinkUpload(gateway.engine, gateway.uploads, self, size_max=limit, refusal=refusal)
            self.upload = upload
        if (open_max := self.limits.uploads_bytes_max) < gateway.uploads.open_bytes + size:
            why = f"the messages that arrive have {open_max} bytes (uploads_bytes_max)"
            upload.refuse(AmqpCondition.RESOURCE_LIMIT_EXCEEDED, why)
        if upload.add(self.producer, event.payload):
            self.peer.upload_windows.arrived(self.link.session, size)
            self.link.session.connection.memory.change(size)

    def piece_stored(self, effect: ChunkStored) -> None:
        """Count a piece that is durable; a refused one refuses its message."""
        self.peer.upload_windows.stored(effect.size)
        self.link.session.connection.memory.change(-effect.size)
        if effect.condition and self.upload is not None and self.upload.upload is effect.upload:
            self.upload.refuse(effect.condition, effect.description)

    def end_upload(self) -> None:
        """End a message that is aborted, or whose link has ended; nothing of it is visible."""
        upload, self.upload = self.upload, None
        if upload is not None:
            self.peer.upload_ended(self)
            upload.close(is_published=False)

    def close(self) -> None:
        """End what is arriving: the link has ended. What has arrived as a whole is published."""
        self.end_upload()
        self.peer.gateway.uploads.flush(self)

    def _publish_upload(self, run: TransferRun, transaction: Transaction | None) -> None:
        """Publish the large message whose last piece has arrived, or refuse it."""
        upload, self.upload = self.upload, None
        assert upload is not None, "its first piece has begun it"
        self.peer.upload_ended(self)
        upload.finish(run.payloads[0])
        refusal = upload.refusal
        if refusal is None and self.guard is not None:
            refusal = self.guard.refusal(upload.upload.head)
        outline = upload.outline
        upload.close(is_published=refusal is None)
        if refusal is not None or outline is None:
            assert refusal is not None, "a message without an outline is refused"
            self._refuse_upload(run, refusal, transaction)
            return
        size = run.before_bytes + len(run.payloads[0])
        may_create = None if self.guard is None else self.guard.may_create
        publish = Publish(self, self.producer, run.first_id, [*run.payloads], [outline.id_hash], size)
        publish.durable, publish.settled, publish.may_create = outline.is_durable, run.settled, may_create
        publish.by = "" if self.guard is None else self.guard.user
        publish.ttl_ms, publish.priority = outline.ttl_ms, outline.priority
        publish.time_ms, publish.delay_ms = outline.delivery
        publish.expires_ms = outline.expires_ms
        publish.transaction, publish.upload = transaction, upload.upload
        publish.groups = [outline.group] if outline.group else []
        if self.is_second:
            publish.tag = self._tag_to_keep(run, transaction)
        self.peer.gateway.uploads.submit(self, publish)

    def _refuse_upload(self, run: TransferRun, refusal: Error, transaction: Transaction | None) -> None:
        """Reject a large message."""
        self.traffic.messages_refused += 1
        if run.settled and transaction is not None:
            transaction.doom(refusal.description or refusal.condition)
        elif not run.settled and self._may_reject:
            self._settle_rejected(run.first_id, refusal, transaction)
            return
        elif not self._may_reject or refusal.condition == AmqpCondition.DECODE_ERROR:
            self.peer.producer_failed(self, refusal)
            return
        self._count_finished(1)

    def _tag_to_keep(self, run: TransferRun, transaction: Transaction | None) -> bytes:
        """Return the tag of a message that the sender settles later; empty for one that it has settled."""
        if run.settled or run.tag is None:
            return b""
        tag = self._unsettled_ids[run.first_id] = bytes(run.tag)
        # What a transaction posts is decided by its commit.
        return tag if transaction is None else b""

    def _transaction_of(self, state: TransactionalState) -> Transaction:
        """Return the transaction that a message names. Raises LinkFault if it is not open."""
        transaction = self.peer.transaction(bytes(state.txn_id))
        if transaction is None:
            why = f"no open transaction {bytes(state.txn_id[:16]).hex()} in this connection"
            raise LinkFault(TransactionCondition.UNKNOWN_ID, why)
        return transaction

    def _publish_allowed(self, run: TransferRun, guard: RelayGuard, transaction: Transaction | None) -> None:
        """Submit the commands for the messages of a run whose addresses are allowed, and reject the others."""
        first = 0
        for index, payload in enumerate(run.payloads):
            refusal = guard.refusal(payload)
            if refusal is None:
                continue
            self._publish_each(_part(run, first, index), transaction)
            first = index + 1
            self.traffic.messages_refused += 1
            if run.settled and transaction is not None:
                transaction.doom(refusal.description or refusal.condition)
                self._count_finished(1)
                continue
            if run.settled or not self._may_reject:
                self.peer.producer_failed(self, refusal)
                return
            self._settle_rejected((run.first_id + index) & MASK, refusal, transaction)
        self._publish_each(_part(run, first, len(run.payloads)), transaction)

    def _publish_each(self, run: TransferRun, transaction: Transaction | None) -> None:
        """Submit the commands for a run whose messages are decoded one by one."""
        bodies: list[Buffer] = []
        hashes: list[tuple[int, int]] = []
        times_ms: list[int] = []
        size, kind, first_id = 0, _PLAIN, run.first_id
        bytes_max = self.limits.run_bytes_max
        for index, payload in enumerate(run.payloads):
            try:
                body, kind_of_body, hashes_of_body = self._read(payload)
            except DecodeError as error:
                self._submit(run, first_id, bodies, hashes, kind, transaction, times_ms)
                self._reject(run, (run.first_id + index) & MASK, error, transaction)
                first_id = (run.first_id + index + 1) & MASK
                bodies, hashes, times_ms, size = [], [], [], 0
                continue
            is_alike = kind_of_body == kind or _differ_in_time(kind_of_body, kind)
            if bodies and (not is_alike or size + len(payload) > bytes_max):
                self._submit(run, first_id, bodies, hashes, kind, transaction, times_ms)
                first_id = (first_id + len(bodies)) & MASK
                bodies, hashes, times_ms, size = [], [], [], 0
            kind = kind_of_body
            if time_ms := kind[3].time_ms:
                times_ms.append(time_ms)
            bodies.append(body)
            hashes.append(hashes_of_body)
            size += len(body)
        self._submit(run, first_id, bodies, hashes, kind, transaction, times_ms)

    def _submit(
        self,
        run: TransferRun,
        first_id: int,
        bodies: list[Buffer],
        hashes: list[tuple[int, int]],
        kind: _Kind,
        transaction: Transaction | None,
        times_ms: list[int],
    ) -> None:
        """Submit the command for messages of a run, unless there are none; all are of one kind, but for their times.

        `hashes` are the hash of the id and the group of each, `times_ms` their times if they have some.
        """
        if bodies:
            size = sum(map(len, bodies))
            may_create = None if self.guard is None else self.guard.may_create
            ids, groups = [one for one, _ in hashes], [group for _, group in hashes]
            publish = Publish(self, self.producer, first_id, bodies, ids, size, kind[0], run.settled, may_create)
            publish.groups = groups if any(groups) else []
            publish.ttl_ms, publish.priority = kind[1], kind[2]
            publish.time_ms, publish.delay_ms = kind[3]
            if times_ms and times_ms.count(publish.time_ms) < len(times_ms):
                publish.times_ms = times_ms
            publish.expires_ms = kind[4]
            publish.by = "" if self.guard is None else self.guard.user
            publish.transaction = transaction
            if self.is_second:
                publish.tag = self._tag_to_keep(run, transaction)
            if self.held:
                self.peer.gateway.uploads.submit(self, publish)
            else:
                self.peer.gateway.engine.publish(publish)

    def _reject(self, run: TransferRun, delivery_id: int, error: DecodeError, transaction: Transaction | None) -> None:
        """Reject a malformed message. Raises its error if the run is settled, or if the source does not allow that."""
        self.traffic.messages_refused += 1
        if run.settled or not self._may_reject:
            raise error
        refusal = Error(condition=Symbol(error.condition), description=error.description)
        self._settle_rejected(delivery_id, refusal, transaction)

    def _settle_rejected(self, delivery_id: int, error: Error, transaction: Transaction | None) -> None:
        """Reject one message."""
        self.link.session.settle(delivery_id, 1, state_in(transaction, Rejected(error=error)))
        self._count_finished(1)

    def _count_finished(self, count: int) -> None:
        self.unfinished -= count
        if self.link.credit <= self._credit_low:
            self.top_up()

    def _read(self, payload: Buffer) -> tuple[Buffer, _Kind, tuple[int, int]]:
        """Return a message as it is stored, its kind, and the hash of its id with its group. Raises DecodeError."""
        recogniser = self._recogniser
        if recogniser is not None:
            hashes = recogniser.id_hashes((payload,))
            if hashes is not None:
                kind = (
                    *(recogniser.is_durable, recogniser.ttl_ms, recogniser.priority, recogniser.delivery),
                    recogniser.expires_ms,
                )
                groups = recogniser.groups((payload,)) if recogniser.may_group else []
                return payload, kind, (hashes[0], groups[0] if groups else 0)
        outline = read_outline(payload)
        self._recogniser = learn_message(outline, payload)
        if outline.delivery_annotations is not None:
            payload = without_delivery_annotations(payload, outline.delivery_annotations)
        kind = (outline.is_durable, outline.ttl_ms, outline.priority, outline.delivery, outline.expires_ms)
        return payload, kind, (outline.id_hash, outline.group)

    def finish(self, done: PublishDone) -> None:
        """Settle a run, and top up the sender's credit."""
        if done.kind is not OutcomeKind.ACCEPTED:
            if done.kind is OutcomeKind.REJECTED:
                self.traffic.messages_refused += done.count
            else:
                self.traffic.messages_unroutable += done.count
        if not self.is_open:
            return
        if done.is_queue_full or self._blocked is QUEUE_FULL:
            self._tell_queue_full(is_full=done.is_queue_full)
        is_lost = done.is_misaddressed and done.transaction is None if done.settled else not self._may_reject
        if done.kind is OutcomeKind.REJECTED and is_lost:
            self.peer.producer_failed(self, self._error(done))
            return
        if self._tags:
            for index in range(done.count):
                self._tags.pop((done.first_id + index) & MASK, None)
        if self.is_second and done.kind is OutcomeKind.ACCEPTED and done.transaction is None:
            tag = self._unsettled_ids.get(done.first_id)
            if tag is not None:
                self._kept.add(tag)
        if not done.settled:
            outcome = STATES.get(done.kind) or rejected_state(done)
            state = outcome if done.transaction is None else state_in(done.transaction, outcome)
            self.link.session.settle(done.first_id, done.count, state)
        if not self.link.credit and not self._is_held:
            self._grow()
        # This is `_count_finished` written out, because it runs once for each run of messages.
        self.unfinished -= done.count
        if self.link.credit <= self._credit_low:
            self.top_up()

    def _grow(self) -> None:
        """Double the credit of a sender that waits for it while messages become durable."""
        credit_max = min(2 * self._credit_max, self.limits.credit_grown_max)
        if credit_max > self._credit_max:
            self._credit_max, self._credit_low = credit_max, credit_max - credit_max // 2

    def tell_blocked(self, reason: str) -> None:
        """Report to the peer why it is held back; an empty reason says that this is over.

        Before the attach is answered nothing can be told: the answer is followed by the reason of that time.
        """
        reason = reason or (QUEUE_FULL if self._is_held else "")
        if self.producer and reason != self._blocked:
            self._blocked = reason
            self.link.tell_blocked(reason)

    def _tell_queue_full(self, *, is_full: bool) -> None:
        """Report to the peer that its queue is full, or is not any more."""
        gateway = self.peer.gateway
        if is_full and not self._blocked:
            gateway.queue_full_blocks += 1
            self.tell_blocked(QUEUE_FULL)
        elif not is_full and not self._is_held:
            gateway.queue_full_ends += 1
            self.tell_blocked(gateway.blocked)

    def _error(self, done: PublishDone) -> Error:
        """Return the error that detaches the link, with the delivery-tag of the first refused message."""
        tag = self._tags.get(done.first_id)
        info = None if tag is None else {Symbol("delivery-tag"): tag}
        return Error(condition=Symbol(done.condition), description=done.description, info=info)

    def top_up(self) -> None:
        """Grant credit up to the limit less the unfinished messages, if half of it is used."""
        if not self.unfinished and self._credit_max > self.limits.credit_max:
            self._credit_max = self.limits.credit_max
            self._credit_low = self._credit_max - self._credit_max // 2
        credit = self._credit_max - self.unfinished
        if credit - self.link.credit >= self._credit_max // 2 and not self.peer.gateway.is_credit_stopped:
            if self.queue and self.queue in self.peer.gateway.full_queues:
                self._hold()
            else:
                self.link.grant(credit)

    def _hold(self) -> None:
        """Wait for room in the queue, and report it to the peer."""
        gateway = self.peer.gateway
        gateway.full_queues[self.queue][self] = None
        if not self._is_held:
            self._is_held = True
            gateway.queue_full_blocks += 1
            self.tell_blocked(gateway.blocked)

    def resume(self) -> None:
        """Grant credit again: the queue has room."""
        self._is_held = False
        if self.is_open:
            gateway = self.peer.gateway
            gateway.queue_full_ends += 1
            self.tell_blocked(gateway.blocked)
            self.top_up()

    def forget(self) -> None:
        """End the wait for room, because the link has ended."""
        if self._is_held:
            self.peer.gateway.full_queues.get(self.queue, {}).pop(self, None)


def _part(run: TransferRun, start: int, stop: int) -> TransferRun:
    """Return the messages of a run from index `start` up to `stop`."""
    payloads = run.payloads[start:stop]
    return TransferRun(run.link, (run.first_id + start) & MASK, payloads, run.settled, tag=run.tag)


def _differ_in_time(kind: _Kind, other: _Kind) -> bool:
    """Return whether two kinds differ only in the times for which messages are scheduled: one command takes both."""
    return kind[3].time_ms > 0 < other[3].time_ms and kind[:3] == other[:3] and kind[4] == other[4]
