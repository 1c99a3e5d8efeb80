"""The outcomes that the receiver of one link says in transactions.

Rule 1. A delivery that the receiver has not settled is still on the link. If it gets an outcome outside of its
        transaction, or in another one, the message may be delivered to the link again, under the same tag. A commit
        would settle that delivery. So such a transaction cannot be committed.
Rule 2. A transaction that is discharged does not change any more: the discharge came first.
"""

from collections.abc import Iterable
from typing import Any, Final, Protocol, final

from ambermq.engine.commands import Transaction
from ambermq.engine.entries.outcome import RELEASED
from ambermq.protocol.amqp10.events import Disposed
from ambermq.protocol.amqp10.link.sender import Sender
from ambermq.protocol.amqp10.performatives.classes import TransactionalState
from ambermq.protocol.amqp10.spec import TransactionCondition
from ambermq.protocol.gateway.links.attach_terms import ConsumingTerms
from ambermq.protocol.gateway.links.link_peer import ConsumerPeer
from ambermq.protocol.gateway.links.outcome_mapping import outcome_of

__all__ = ["RetiredDeliveries", "RetiringLink"]

_OUTSIDE: Final = "a delivery of the transaction got another outcome outside of it"
_TWICE: Final = "a delivery of the transaction has an outcome in another one"


class RetiringLink(Protocol):
    """A link on which a peer receives."""

    consumer: int
    link: Sender
    peer: ConsumerPeer[Any]
    terms: ConsumingTerms


@final
class RetiredDeliveries:
    """The open transactions that have outcomes of one link."""

    __slots__ = ("_transactions",)

    def __init__(self) -> None:
        self._transactions: list[Transaction] = []
        """At most as many as a connection may have open, since the next outcome removes those that are not."""

    def retire(self, link: RetiringLink, event: Disposed, state: TransactionalState) -> None:
        """Keep outcomes that the peer says in a transaction; a transaction that is not open ends the link."""
        if state.outcome is None and not event.settled:
            return
        self._note(link, event.tokens, link.peer.transaction(state.txn_id))
        outcome = outcome_of(state.outcome, link.terms.default_outcome)
        if not link.peer.retire(link, event, outcome or RELEASED):
            why = f"no open transaction {bytes(state.txn_id[:16]).hex()} in this connection"
            link.link.fail(TransactionCondition.UNKNOWN_ID, why)

    def end(self, link: RetiringLink, tokens: Iterable[int]) -> None:
        """Note that deliveries got an outcome outside of transactions."""
        for one in self._having(link, tokens):
            one.doom(_OUTSIDE)

    def _note(self, link: RetiringLink, tokens: Iterable[int], transaction: Transaction | None) -> None:
        self._transactions = [one for one in self._transactions if link.peer.transaction(one.id) is one]
        if transaction is None:
            return
        if any(one is not transaction for one in self._having(link, tokens)):
            transaction.doom(_TWICE)
        if transaction not in self._transactions:
            self._transactions.append(transaction)

    def _having(self, link: RetiringLink, tokens: Iterable[int]) -> list[Transaction]:
        """Return the open transactions with an outcome of one of these deliveries."""
        return [
            one
            for one in self._transactions
            if link.peer.transaction(one.id) is one
            and any((link.consumer, token) in one.retirements for token in tokens)
        ]
