"""The coordinator of one connection: declares and discharges, and the transactions that are open.

Rule 1. A declare is answered at once, a discharge when the engine has decided it: a commit when it is durable.
Rule 2. An error is a rejection if the source of the link has that outcome, else the link is detached with it.
Rule 3. A transaction takes no more posts and outcomes once its discharge has come.
Rule 4. A transaction whose link ends is rolled back.
"""

from dataclasses import replace
from itertools import count
from typing import Final, final

from ambermq.engine.commands import COMMITTED, BeginTransaction, Discharge, Settle, Transaction
from ambermq.engine.effects import Answered, RefusedCommand
from ambermq.engine.entries.entry_word import pack_words
from ambermq.engine.entries.outcome import MODIFIED_FAILED, Outcome
from ambermq.protocol.amqp10.endpoints import LinkEndpoint, SessionEndpoint
from ambermq.protocol.amqp10.errors import DecodeError
from ambermq.protocol.amqp10.events import Disposed, TransferRun
from ambermq.protocol.amqp10.link.receiver import Receiver
from ambermq.protocol.amqp10.message.message import AmqpValue, decode_message
from ambermq.protocol.amqp10.performatives.classes import (
    Accepted,
    Coordinator,
    Declare,
    Declared,
    DeliveryState,
    Error,
    Modified,
    Rejected,
    Released,
    Source,
    TransactionalState,
)
from ambermq.protocol.amqp10.performatives.classes import Discharge as DischargeMessage
from ambermq.protocol.amqp10.performatives.read import decode_composite
from ambermq.protocol.amqp10.serial_number import MASK
from ambermq.protocol.amqp10.spec import AmqpCondition, ReceiverSettleMode, TransactionCondition
from ambermq.protocol.amqp10.types.decode import Buffer
from ambermq.protocol.amqp10.types.encode import encode
from ambermq.protocol.amqp10.types.values import Symbol
from ambermq.protocol.gateway.consumers.consumer_link import ConsumerLink
from ambermq.protocol.gateway.links.outcome_mapping import with_outcomes
from ambermq.protocol.gateway.nodes.node_peer import NodePeer

__all__ = ["CAPABILITIES", "ConnectionTransactions", "DischargeRequest"]

CAPABILITIES: Final = (
    Symbol("amqp:local-transactions"),
    Symbol("amqp:multi-txns-per-ssn"),
    Symbol("amqp:multi-ssns-per-txn"),
)
"""What the coordinator offers: several transactions in a session, and several sessions in one."""
_CREDIT: Final = 100
_REQUEST_BYTES_MAX: Final = 1024
_ids = count(1)
_Unsettled = dict[tuple[ConsumerLink, int], DeliveryState | None]
"""The outcomes that receivers have said and not settled, by link and delivery-id."""


@final
class DischargeRequest:
    """A discharge that waits for the engine: the key of its command."""

    __slots__ = ("delivery_id", "link", "peer", "unsettled")

    def __init__(
        self,
        peer: NodePeer,
        link: Receiver | None,
        delivery_id: int,
        unsettled: _Unsettled,
    ) -> None:
        self.peer = peer
        self.link = link
        """The link that it came on; None for a rollback of the broker."""
        self.delivery_id = delivery_id
        self.unsettled = unsettled
        """The deliveries that a commit settles, because their receivers have not."""


@final
class _Open:
    """An open transaction of the connection."""

    __slots__ = ("link", "transaction", "unsettled")

    def __init__(self, link: Receiver, transaction: Transaction) -> None:
        self.link = link
        self.transaction = transaction
        self.unsettled: _Unsettled = {}


@final
class ConnectionTransactions:
    """The coordinator's links and the open transactions of one connection."""

    __slots__ = ("_links", "_open", "_peer", "held")

    def __init__(self, peer: NodePeer) -> None:
        self._peer = peer
        self.held = 0
        """The discharges that wait for the pieces of large messages (large/upload_gate.py)."""
        self._links: dict[LinkEndpoint, None] = {}
        self._open: dict[bytes, _Open] = {}

    def attach(self, link: Receiver) -> None:
        """Accept a link to the coordinator."""
        source = with_outcomes((link.remote.source if link.remote else None) or Source())
        target = Coordinator(capabilities=CAPABILITIES)
        link.accept(source, target, receiver_settle_mode=ReceiverSettleMode.FIRST, max_message_size=_REQUEST_BYTES_MAX)
        self._links[link] = None
        link.grant(_CREDIT)
        # Discharges of receivers make room, so they are taken while little is left.
        link.session.resume()

    def has_link(self, session: SessionEndpoint) -> bool:
        """Return whether a session has a link to the coordinator."""
        return any(link.session is session for link in self._links)

    def surveyed_bytes(self) -> int:
        """Return the memory of the messages and of the outcomes of open transactions."""
        opened = [one.transaction for one in self._open.values()] if self._open else ()
        return sum([one.size + one.outcome_bytes for one in opened])

    def find(self, transaction_id: bytes) -> Transaction | None:
        """Return an open transaction; None if there is none of that id."""
        known = self._open.get(bytes(transaction_id))
        return None if known is None else known.transaction

    def receive(self, run: TransferRun) -> bool:
        """Process declares and discharges; return whether the link is one to the coordinator."""
        link = run.link
        if link not in self._links or not isinstance(link, Receiver):
            return False
        for index, payload in enumerate(run.payloads):
            if link not in self._links:
                return True
            self._receive_one(link, (run.first_id + index) & MASK, payload)
        if link.credit <= _CREDIT // 2:
            link.grant(_CREDIT)
        return True

    def _receive_one(self, link: Receiver, delivery_id: int, payload: Buffer) -> None:
        match _value_of(payload):
            case Declare(global_id=None):
                self._declare(link, delivery_id)
            case Declare():
                why = "a declare with a global-id: there are local transactions only"
                self._refuse(link, delivery_id, AmqpCondition.NOT_IMPLEMENTED, why)
            case DischargeMessage() as discharge:
                self._discharge(link, delivery_id, bytes(discharge.txn_id), fails=bool(discharge.fail))
            case _:
                why = "the message to the coordinator is neither a declare nor a discharge"
                self._refuse(link, delivery_id, AmqpCondition.DECODE_ERROR, why)

    def _declare(self, link: Receiver, delivery_id: int) -> None:
        limit = self._peer.gateway.limits.connection_transactions_max
        if len(self._open) + self.held >= limit:
            why = f"at most {limit} open transactions in a connection (connection_transactions_max)"
            self._refuse(link, delivery_id, AmqpCondition.RESOURCE_LIMIT_EXCEEDED, why)
            return
        transaction = Transaction(next(_ids).to_bytes(8, "big"))
        self._open[transaction.id] = _Open(link, transaction)
        self._peer.gateway.engine.submit(BeginTransaction(transaction))
        link.session.settle(delivery_id, 1, Declared(txn_id=transaction.id))

    def _discharge(self, link: Receiver, delivery_id: int, transaction_id: bytes, *, fails: bool) -> None:
        known = self._open.pop(transaction_id, None)
        if known is None:
            why = f"no open transaction {transaction_id[:16].hex()} in this connection"
            self._refuse(link, delivery_id, TransactionCondition.UNKNOWN_ID, why)
            return
        request = DischargeRequest(self._peer, link, delivery_id, known.unsettled)
        self._peer.gateway.uploads.discharge(self, Discharge(request, known.transaction, fails))

    def answered(self, effect: Answered | RefusedCommand) -> None:
        """Answer a discharge, and settle what a commit has settled."""
        request: DischargeRequest = effect.key
        traffic = request.peer.gateway.traffic
        if isinstance(effect, Answered) and effect.value == COMMITTED:
            traffic.transactions_committed += 1
            for (consumer_link, delivery_id), outcome in request.unsettled.items():
                if consumer_link.is_open:
                    if consumer_link.early is not None:
                        consumer_link.early.forget(delivery_id)
                    consumer_link.link.settle_sent(delivery_id, 1, outcome)
                    if isinstance(outcome, Released | Modified):
                        # The message may come again to this link, under the same tag.
                        consumer_link.link.session.settlements.flush()
        else:
            traffic.transactions_rolled_back += 1
        link = request.link
        if link is None or link not in self._links:
            return
        if isinstance(effect, Answered):
            link.session.settle(request.delivery_id, 1, Accepted())
        else:
            self._refuse(link, request.delivery_id, effect.condition, effect.description)

    def _refuse(self, link: Receiver, delivery_id: int, condition: str, description: str) -> None:
        """Reject a declare or a discharge; if the link's source does not have that outcome, detach the link."""
        error = Error(condition=Symbol(condition), description=description)
        source = link.remote.source if link.remote else None
        if source is None or not source.outcomes or Rejected.NAME in source.outcomes:
            link.session.settle(delivery_id, 1, Rejected(error=error))
            return
        self.detached(link)
        link.detach(closed=True, error=error)

    def retire(self, consumer_link: ConsumerLink, event: Disposed, outcome: Outcome) -> bool:
        """Keep the outcomes that a receiver says in a transaction; return False if there is no such transaction."""
        state = event.state
        assert isinstance(state, TransactionalState), "the caller has checked it"
        known = self._open.get(bytes(state.txn_id))
        if known is None:
            return False
        transaction, consumer = known.transaction, consumer_link.consumer
        engine = self._peer.gateway.engine
        count_max = engine.config.transaction_messages_max
        new = sum([(consumer, word) not in transaction.retirements for word in event.tokens])
        if len(transaction.retirements) + new > count_max:
            transaction.doom(f"it settles more than {count_max} deliveries (transaction_messages_max)")
        bytes_max = engine.config.transaction_bytes_max
        if transaction.outcome_bytes + outcome.text_bytes * len(event.tokens) > bytes_max:
            transaction.doom(f"its outcomes have more than {bytes_max} bytes (transaction_bytes_max)")
        if transaction.end or transaction.refusal:
            # It will not be committed: what its receiver settles returns now.
            if event.settled:
                engine.settle(Settle(consumer, pack_words(event.tokens), MODIFIED_FAILED))
            return True
        answer = _answer_to(state.outcome)
        for index, word in enumerate(event.tokens):
            transaction.retire(consumer, word, outcome, is_settled=event.settled)
            delivery = consumer_link, (event.first_id + index) & MASK
            if event.settled:
                known.unsettled.pop(delivery, None)
            else:
                known.unsettled[delivery] = answer
        return True

    def doom(self, link: LinkEndpoint, why: str | None) -> None:
        """Refuse the commit of each open transaction: a message of it may be lost with the link, which has ended."""
        for known in self._open.values():
            known.transaction.doom(f"link {link.name!r:.80} has ended: {why}")

    def detached(self, link: LinkEndpoint) -> None:
        """Roll back the transactions of a link to the coordinator that has ended."""
        if self._links.pop(link, _UNKNOWN) is _UNKNOWN:
            return
        for known in [one for one in self._open.values() if one.link is link]:
            self._roll_back(known)

    def end(self) -> None:
        """Roll back all transactions: the connection has ended."""
        self._links.clear()
        for known in list(self._open.values()):
            self._roll_back(known)

    def _roll_back(self, known: _Open) -> None:
        del self._open[known.transaction.id]
        request = DischargeRequest(self._peer, None, 0, {})
        self._peer.gateway.lost_links.submit(Discharge(request, known.transaction, fails=True))

    def release(self) -> None:
        """Forget the connection, which refers to this value."""
        del self._peer


_UNKNOWN: Final = object()


def _value_of(payload: Buffer) -> object:
    """Return the composite value of a message's body; None for any other body."""
    try:
        message = decode_message(payload)
    except DecodeError:
        return None
    if len(message.body) != 1 or not isinstance(message.body[0], AmqpValue):
        return None
    value = encode(message.body[0].value)
    try:
        return decode_composite(value, 0, len(value))[0]
    except DecodeError:
        return None


def _answer_to(outcome: DeliveryState | None) -> DeliveryState | None:
    """Return the outcome that answers one: without what its receiver knows, which may be large."""
    if isinstance(outcome, Rejected):
        return Rejected()
    if isinstance(outcome, Modified) and outcome.message_annotations:
        return replace(outcome, message_annotations=None)
    return outcome
