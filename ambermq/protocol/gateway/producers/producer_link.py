"""A link on which a peer sends: its messages become Publish commands, their outcomes dispositions.

Rule 1. Credit paces a sender (producer_credit.py). The server has the hard limit.
Rule 2. The bare message is stored byte for byte. Delivery annotations are for the broker alone, and are removed.
Rule 3. A malformed message is rejected with amqp:decode-error; its run goes on. A settled one has no outcome, so it
        ends the link with that error; those before it are published.
Rule 4. A run of messages like the last decoded one is published without decoding (message_recogniser.py).
Rule 5. A refused message is rejected. If the source does not allow that, the link is detached with the error instead,
        and also for a settled message to an address that does not exist (anonterm, 2.2.2). Other settled messages that
        are refused are dropped.
Rule 6. A large message is stored piece by piece as it arrives (gateway/large), and published with its last piece.
"""

from collections.abc import Sequence
from typing import Final, final

from ambermq.engine.commands import Publish, SettleTags, Transaction
from ambermq.engine.effects import ChunkStored, ProducerReady, PublishDone
from ambermq.engine.entries.outcome import OutcomeKind
from ambermq.protocol.amqp10.errors import DecodeError, LinkFault
from ambermq.protocol.amqp10.events import Disposed, TransferPiece, TransferRun
from ambermq.protocol.amqp10.link.receiver import ANY_RUN, Receiver
from ambermq.protocol.amqp10.link.resumption import UnsettledMap
from ambermq.protocol.amqp10.performatives.classes import Error, Rejected, TransactionalState
from ambermq.protocol.amqp10.serial_number import MASK
from ambermq.protocol.amqp10.spec import AmqpCondition, ReceiverSettleMode, TransactionCondition
from ambermq.protocol.amqp10.types.decode import Buffer
from ambermq.protocol.amqp10.types.values import Symbol
from ambermq.protocol.gateway.large.link_upload import LinkUpload
from ambermq.protocol.gateway.links.attach_terms import ProducingTerms, offered_by, properties_of
from ambermq.protocol.gateway.links.link_peer import ProducerPeer
from ambermq.protocol.gateway.links.outcome_mapping import STATES, rejected_state, state_in
from ambermq.protocol.gateway.producers.kept_tags import KEPT_OUTCOME, KeptTags
from ambermq.protocol.gateway.producers.message_kind import PublishReader, kind_of
from ambermq.protocol.gateway.producers.producer_credit import QUEUE_FULL, ProducerCredit
from ambermq.protocol.gateway.producers.publish_batch import PublishBatch
from ambermq.protocol.gateway.producers.relay_guard import RelayGuard
from ambermq.protocol.server_limits import ServerLimits

__all__ = ["ProducerLink"]

_DECODED_RUN_MAX: Final = 256
"""The messages of a run on a link whose messages are decoded one by one: with their commands they take 3 ms."""
_FIRST_RUN_MAX: Final = _DECODED_RUN_MAX - 1
"""The same on a new link, until messages are recognised for the first time. Some never are."""
_ALIKE_RUN: Final = 4096
"""The limit doubles with each whole run of alike messages; it ends with one of this size."""


@final
class ProducerLink:
    """One producer of the engine, and its link."""

    __slots__ = (
        *("_kept_tags", "_may_reject", "_message_bytes_max", "_reader", "_tags", "bytes", "credit", "guard", "held"),
        *("is_open", "is_second", "limits", "link", "messages", "peer", "producer", "terms", "traffic", "upload"),
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
        self.credit = ProducerCredit(peer, link, limits)
        self.upload: LinkUpload | None = None
        """The large message that is arriving; None without one."""
        self.held = 0
        """The commands of the link that wait behind pieces of large messages."""
        self.is_open = True
        self.guard: RelayGuard | None = None
        """Checks the addresses of messages; None if the attach has checked everything."""
        self._reader = PublishReader()
        self._message_bytes_max = 0
        """The largest message that the queue at its address takes; 0: no limit of its own."""
        self._may_reject = True
        """Whether the source has the outcome rejected; known when the attach is answered."""
        self._tags: dict[int, bytes] = {}
        """The delivery-tags of unfinished messages whose refusal detaches the link, by delivery-id."""
        self.is_second = False
        """Whether the sender settles after it knows the outcome: then the broker keeps its delivery-tags."""
        self._kept_tags: KeptTags | None = None
        """The tags of its stored messages; None for a link that keeps none."""

    def accept(self, ready: ProducerReady) -> None:
        """Answer the attach."""
        target = self.terms.target_of(ready)
        self._may_reject = self.terms.may_reject
        self.credit.queue = ready.queue
        self.link.has_tags = not self._may_reject or self.is_second
        self.link.has_settled_tags = self.terms.is_anonymous
        # A queue may take less than a connection, never more.
        limit = self.link.session.connection.limits.message_bytes_max
        self._message_bytes_max = ready.message_bytes_max
        self.link.piece_bytes = self.peer.gateway.engine.config.chunk_bytes
        self.link.run_max = _FIRST_RUN_MAX
        self.link.accept(
            self.terms.source,
            target,
            receiver_settle_mode=ReceiverSettleMode.SECOND if self.is_second else ReceiverSettleMode.FIRST,
            max_message_size=min(ready.message_bytes_max or limit, limit),
            offered_capabilities=offered_by(self.terms),
            properties=properties_of(ready),
            unsettled=self._unsettled_map(ready.kept),
            unsettled_bytes_max=self.limits.unsettled_map_bytes_max,
        )

    def _unsettled_map(self, kept: Sequence[bytes]) -> UnsettledMap | None:
        """Return our unsettled map, whose deliveries the peer may resume."""
        unsettled = None if self._kept_tags is None else self._kept_tags.answer(kept)
        if unsettled is not None:
            self.link.resumable = frozenset(unsettled)
        return unsettled

    def note_resumption(self, unsettled: UnsettledMap, cut_tag: bytes) -> None:
        """Note the unsettled map of the peer's attach, and the tag of a delivery that its detach had cut off."""
        self._tags_to_keep().note_resumption(unsettled, cut_tag)

    def _tags_to_keep(self) -> KeptTags:
        """Return the kept tags, for a link that has some."""
        if self._kept_tags is None:
            self._kept_tags = KeptTags()
        return self._kept_tags

    def settled(self, event: Disposed) -> None:
        """Forget the tags of deliveries that the sender has settled."""
        if event.settled and self._kept_tags is not None:
            # One may not be stored yet: the engine forgets it then, after it has stored the message.
            self._forget_tags(self._kept_tags, self._kept_tags.settled(event.tokens))

    def _forget_tags(self, kept_tags: KeptTags, tags: Sequence[bytes]) -> None:
        if tags:
            kept_tags.forget(tags)
            self.peer.gateway.engine.submit(SettleTags(self.producer, tuple(tags)))

    def _answer_resumed(self, run: TransferRun) -> bool:
        """Answer a resumed delivery that is stored by its kept outcome; return whether it is one."""
        tag, kept_tags = bytes(run.tag or b""), self._kept_tags
        if kept_tags is None or not kept_tags.is_kept(tag):
            # Its first frames came before the detach: it comes as a whole now.
            return False
        if run.settled:
            self._forget_tags(kept_tags, [tag])
            return True
        self.link.session.settle(run.first_id, 1, KEPT_OUTCOME)
        if self.is_second:
            kept_tags.note_unsettled(run.first_id, tag)
        else:
            self._forget_tags(kept_tags, [tag])
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
            # A sender that knows no outcome may have sent the whole message again.
            self.end_upload()
            self.credit.finish(0)
            return
        if run.tag is not None and (not self._may_reject or (run.settled and self.link.has_settled_tags)):
            self._tags[run.first_id] = bytes(run.tag)
        transaction = None if run.state is None else self._transaction_of(run.state)
        # A copy, since later commands are joined into it.
        bodies: list[Buffer] = [*run.payloads]
        recogniser = self._reader.recogniser
        size, count = sum(map(len, bodies)), len(bodies)
        self.credit.unfinished += count
        traffic = self.traffic
        traffic.messages_in += count
        traffic.bytes_in += size
        self.messages += count
        self.bytes += size
        if run.before_bytes:
            self._publish_upload(run, transaction)
            return
        if self.guard is not None:
            self.link.run_max = _DECODED_RUN_MAX
            self._publish_allowed(run, self.guard, transaction)
            return
        hashes = recogniser.id_hashes(bodies) if recogniser is not None and size <= self.limits.run_bytes_max else None
        if recogniser is None or hashes is None:
            if recogniser is not None and size <= self.limits.run_bytes_max:
                self.link.run_max = _DECODED_RUN_MAX
            self._publish_each(run, transaction)
            return
        if self.link.run_max == _FIRST_RUN_MAX:
            self.link.run_max = ANY_RUN
        elif count == self.link.run_max:
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
            upload = LinkUpload(
                gateway.engine,
                gateway.uploads,
                self,
                size_max=self._message_bytes_max,
                refusal=self.peer.uploads.begin(self),
                may_cut_through=bool(self.credit.queue) and self.guard is None and not event.is_transactional,
            )
            self.upload = upload
        if (open_max := self.limits.uploads_bytes_max) < gateway.uploads.open_bytes + size:
            why = f"the messages that arrive have {open_max} bytes (uploads_bytes_max)"
            upload.refuse(AmqpCondition.RESOURCE_LIMIT_EXCEEDED, why)
        if upload.add(self.producer, event.payload):
            self.peer.uploads.windows.arrived(self.link.session, size)
            self.link.session.connection.memory.change(size)

    def piece_stored(self, effect: ChunkStored) -> None:
        """Count a piece that is durable; a refused one refuses its message."""
        self.peer.uploads.windows.stored(effect.size)
        self.link.session.connection.memory.change(-effect.size)
        if effect.condition and self.upload is not None and self.upload.upload is effect.upload:
            self.upload.refuse(effect.condition, effect.description)

    def end_upload(self) -> None:
        """End a message that is aborted, or whose link has ended; nothing of it is visible."""
        upload, self.upload = self.upload, None
        if upload is not None:
            self.peer.uploads.end(self)
            upload.close(is_published=False)

    def close(self) -> None:
        """End what is arriving: the link has ended. What has arrived as a whole is published."""
        self.end_upload()
        self.peer.gateway.uploads.flush(self)
        self.credit.close()

    def _publish_upload(self, run: TransferRun, transaction: Transaction | None) -> None:
        """Publish the large message whose last piece has arrived, or refuse it."""
        upload, self.upload = self.upload, None
        assert upload is not None, "its first piece has begun it"
        self.peer.uploads.end(self)
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
        publish.settled, publish.may_create = run.settled, may_create
        publish.by = "" if self.guard is None else self.guard.user
        kind_of(outline).describe(publish)
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
        self.credit.finish(1)

    def _tag_to_keep(self, run: TransferRun, transaction: Transaction | None) -> bytes:
        """Return the tag of a message that the sender settles later; empty for one that it has settled."""
        if run.settled or run.tag is None:
            return b""
        tag = bytes(run.tag)
        self._tags_to_keep().note_unsettled(run.first_id, tag)
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
                self.credit.finish(1)
                continue
            if run.settled or not self._may_reject:
                self.peer.producer_failed(self, refusal)
                return
            self._settle_rejected((run.first_id + index) & MASK, refusal, transaction)
        self._publish_each(_part(run, first, len(run.payloads)), transaction)

    def _publish_each(self, run: TransferRun, transaction: Transaction | None) -> None:
        """Submit the commands for a run whose messages are decoded one by one."""
        batch, bytes_max = PublishBatch(run.first_id), self.limits.run_bytes_max
        for index, payload in enumerate(run.payloads):
            delivery_id = (run.first_id + index) & MASK
            try:
                message = self._reader.read(payload)
            except DecodeError as error:
                self._submit(run, batch, transaction)
                self._reject(run, delivery_id, error, transaction)
                batch = PublishBatch((delivery_id + 1) & MASK)
                continue
            if not batch.takes(message, len(payload), bytes_max):
                self._submit(run, batch, transaction)
                batch = PublishBatch(delivery_id)
            batch.add(message)
        self._submit(run, batch, transaction)

    def _submit(self, run: TransferRun, batch: PublishBatch, transaction: Transaction | None) -> None:
        """Submit the command for messages of a run, unless there are none."""
        if not batch:
            return
        publish = batch.command(self, self.producer, settled=run.settled)
        if self.guard is not None:
            publish.may_create, publish.by = self.guard.may_create, self.guard.user
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
        self.credit.finish(1)

    def finish(self, done: PublishDone) -> None:
        """Settle a run, and top up the sender's credit."""
        if done.kind is not OutcomeKind.ACCEPTED:
            if done.kind is OutcomeKind.REJECTED:
                self.traffic.messages_refused += done.count
            else:
                self.traffic.messages_unroutable += done.count
        if not self.is_open:
            return
        credit = self.credit
        if done.is_queue_full or credit.blocked is QUEUE_FULL:
            credit.tell_queue_full(is_full=done.is_queue_full)
        is_lost = done.is_misaddressed and done.transaction is None if done.settled else not self._may_reject
        if done.kind is OutcomeKind.REJECTED and is_lost:
            self.peer.producer_failed(self, self._error(done))
            return
        if self._tags:
            for index in range(done.count):
                self._tags.pop((done.first_id + index) & MASK, None)
        if self.is_second and done.kind is OutcomeKind.ACCEPTED and done.transaction is None:
            self._tags_to_keep().keep(done.first_id)
        if not done.settled:
            outcome = STATES.get(done.kind) or rejected_state(done)
            state = outcome if done.transaction is None else state_in(done.transaction, outcome)
            self.link.session.settle(done.first_id, done.count, state)
        if not self.link.credit and not credit.is_held:
            credit.grow()
        # This is `ProducerCredit.finish` written out, because it runs once for each run of messages.
        credit.unfinished -= done.count
        if self.link.credit <= credit.low:
            credit.top_up()

    def tell_blocked(self, reason: str) -> None:
        """Report to the peer why it is held back; an empty reason says that this is over.

        Before the attach is answered nothing can be told: the answer is followed by the reason of that time.
        """
        if self.producer:
            self.credit.tell_blocked(reason)

    def _error(self, done: PublishDone) -> Error:
        """Return the error that detaches the link, with the delivery-tag of the first refused message."""
        tag = self._tags.get(done.first_id)
        info = None if tag is None else {Symbol("delivery-tag"): tag}
        return Error(condition=Symbol(done.condition), description=done.description, info=info)


def _part(run: TransferRun, start: int, stop: int) -> TransferRun:
    """Return the messages of a run from index `start` up to `stop`."""
    payloads = run.payloads[start:stop]
    return TransferRun(run.link, (run.first_id + start) & MASK, payloads, run.settled, tag=run.tag)
