"""The deliveries of one link whose locks have expired: what the peer says of them later changes nothing.

Rule 1. A message may be delivered again on the link before the peer has settled the expired delivery. Both have the
        same word, so the delivery-id tells which one an outcome is for.
Rule 2. A word is forgotten when no expired delivery of it is unsettled. So the session's limit of unsettled deliveries
        is one of these words, too.
Rule 3. The delivery-tag has the attempt of the message in front of its word: no two of a message are equal.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final, final

from ambermq.engine.entries.entry import Entry
from ambermq.protocol.amqp10.events import Disposed
from ambermq.protocol.amqp10.link.sender import Sender
from ambermq.protocol.amqp10.performatives.classes import DeliveryState, Error, Rejected, TransactionalState
from ambermq.protocol.amqp10.serial_number import HALF, MASK
from ambermq.protocol.amqp10.spec import AmqpCondition
from ambermq.protocol.amqp10.types.decode import Buffer
from ambermq.protocol.amqp10.types.values import Symbol
from ambermq.protocol.gateway.links.link_peer import ConsumerPeer
from ambermq.protocol.gateway.links.outcome_mapping import outcome_of

__all__ = ["ExpiredDeliveries", "attempts_of", "late_state", "send_attempts", "tag_prefix"]

_LOCK_LOST: Final = "com.microsoft:message-lock-lost"
"""The condition by which clients of Service Bus know that a lock has expired."""
_PREFIX_BYTES: Final = 8


@final
class ExpiredDeliveries:
    """The expired deliveries of one link that the peer has not settled."""

    __slots__ = ("_by_word",)

    def __init__(self) -> None:
        self._by_word: dict[int, tuple[int, int]] = {}
        """By word: the delivery-id from which on a delivery has not expired, and the number of those that have."""

    def add(self, words: Sequence[int], next_id: int) -> None:
        """Add the deliveries of words that were sent before a delivery-id."""
        for word in words:
            self._by_word[word] = next_id, self._by_word.get(word, (0, 0))[1] + 1

    def parts(self, event: Disposed) -> Iterator[tuple[bool, Disposed]]:
        """Yield a disposition in parts of deliveries with consecutive ids: whether they have expired, and the part.

        A delivery is forgotten if the disposition settles it, or has an outcome: the broker settles it then.
        """
        start, lates = 0, [self._is_late(event, index) for index in range(len(event.tokens))]
        for index, is_late in enumerate(lates):
            if index + 1 == len(lates) or lates[index + 1] is not is_late:
                tokens = event.tokens[start : index + 1]
                first_id = (event.first_id + start) & MASK
                yield is_late, Disposed(event.link, first_id, tokens, event.state, event.settled)
                start = index + 1

    def answer(
        self,
        link: Sender,
        event: Disposed,
        peer: ConsumerPeer[Any],
        default_outcome: DeliveryState | None,
        *,
        is_service_bus: bool,
    ) -> None:
        """Answer an outcome that comes after the end of the lock: it changes nothing."""
        state = event.state
        if isinstance(state, TransactionalState):
            transaction = peer.transaction(state.txn_id)
            if transaction is not None:
                transaction.doom("it settles a delivery whose lock has expired")
        elif not event.settled and (state is None or outcome_of(state, default_outcome) is None):
            return
        self._forget(event.tokens)
        peer.gateway.traffic.outcomes_late += len(event.tokens)
        if not event.settled:
            link.settle_sent(event.first_id, len(event.tokens), late_state(is_service_bus=is_service_bus))

    def _forget(self, words: Sequence[int]) -> None:
        """Forget an expired delivery of each word: it is settled."""
        for word in words:
            next_id, count = self._by_word[word]
            if count > 1:
                self._by_word[word] = next_id, count - 1
            else:
                del self._by_word[word]

    def _is_late(self, event: Disposed, index: int) -> bool:
        known = self._by_word.get(event.tokens[index])
        if known is None:
            return False
        # Serial numbers: before the other one if it is less than half of the circle ahead.
        return 0 < (known[0] - event.first_id - index) & MASK < HALF


def late_state(*, is_service_bus: bool) -> Rejected:
    """Return the state that answers an outcome that comes after the end of the lock."""
    condition = _LOCK_LOST if is_service_bus else AmqpCondition.PRECONDITION_FAILED
    return Rejected(error=Error(condition=Symbol(condition), description="lock expired"))


def attempts_of(entries: Sequence[Entry | None] | None, count: int) -> list[int]:
    """Return the attempt of each delivery of a run."""
    return [0] * count if entries is None else [0 if entry is None else entry.attempt for entry in entries]


def tag_prefix(attempt: int) -> bytes:
    """Return the first bytes of the tags of an attempt."""
    return attempt.to_bytes(_PREFIX_BYTES, "big")


def send_attempts(
    link: Sender, words: Sequence[int], payloads: Sequence[Buffer], attempts: Sequence[int], *, settled: bool
) -> None:
    """Send deliveries, those of one attempt in a run: they have the same first bytes in their tags."""
    start, count = 0, len(words)
    while start < count:
        end = start + 1
        while end < count and attempts[end] == attempts[start]:
            end += 1
        link.use_tag_prefix(tag_prefix(attempts[start]))
        link.send_run(words[start:end], payloads[start:end], settled)
        start = end
    link.use_tag_prefix(tag_prefix(0))
