"""The deliveries of one link that begin while their messages arrive: cut-through (engine/dispatch/cut_through.py).

Rule 1. One at a time. The link sends nothing else meanwhile, and a drain is answered without what it could not send.
Rule 2. Its token is the key of the upload, and so is its delivery-tag. When the message is published, its word takes
        the place of that key in what the engine is told.
Rule 3. An outcome that comes before is kept until then. It has aborted the delivery, as in the middle of any large one.
Rule 4. Nothing of a delivery is kept when its link ends before. A link that is resumed later knows the message by its
        word: the receiver, which knows it by the key, gets it again.
"""

from typing import Any, final

from ambermq.engine.commands import CutThrough
from ambermq.engine.entries.outcome import RELEASED, Outcome
from ambermq.protocol.amqp10.events import Disposed
from ambermq.protocol.amqp10.performatives.classes import DeliveryState, TransactionalState
from ambermq.protocol.amqp10.serial_number import MASK
from ambermq.protocol.gateway.consumers.backlog import Backlog
from ambermq.protocol.gateway.engine_port import EnginePort
from ambermq.protocol.gateway.large.arriving_message import ArrivingMessage
from ambermq.protocol.gateway.large.message_stream import MessageStream
from ambermq.protocol.gateway.links.link_peer import ConsumerPeer
from ambermq.protocol.gateway.links.outcome_mapping import outcome_of

__all__ = ["EarlyDeliveries"]


@final
class EarlyDeliveries:
    """The early deliveries of one link."""

    __slots__ = ("_backlog", "_engine", "_outcome", "_words", "message")

    def __init__(self, backlog: Backlog, engine: EnginePort) -> None:
        self._backlog = backlog
        self._engine = engine
        self.message: ArrivingMessage | None = None
        """The message that arrives, until it is published; None without one."""
        self._outcome: Outcome | None = None
        """The outcome of its delivery; None without one."""
        self._words: dict[int, int] = {}
        """The words of published messages by the delivery-ids of their deliveries, which are not settled."""

    @property
    def is_sending(self) -> bool:
        """Whether the link waits for a message that arrives."""
        return self.message is not None and self._outcome is None

    @property
    def is_begun(self) -> bool:
        """Whether the first frame of that message is sent."""
        stream = self._backlog.stream
        return stream is not None and stream.is_begun and self.is_of(stream)

    def is_of(self, stream: MessageStream) -> bool:
        """Return whether a stream is that of the message that arrives."""
        return self.message is not None and stream.token == self.message.cut_through.key

    @property
    def unsettled_count(self) -> int:
        """The deliveries of published messages that are not settled."""
        return len(self._words)

    def begin(self, cut_through: CutThrough) -> None:
        """Begin a delivery, unless its message has ended."""
        if not cut_through.upload.is_ended:
            self.message = ArrivingMessage(cut_through)
            self._backlog.add_arriving(self.message)

    def end(self, cut_through: CutThrough, word: int) -> tuple[int, Outcome | None]:
        """Complete the delivery of a message that is published under a word, or abort it if that is 0.

        Return the bytes of the message if it is sent, else 0, and the outcome that it has already.
        """
        message, outcome = self.message, self._outcome
        if message is None or message.cut_through is not cut_through:
            return 0, None
        self.message = self._outcome = None
        if outcome is not None:
            return 0, outcome if word else None
        if not word:
            self._backlog.abort(message)
            return 0, None
        is_unsent = self._backlog.set_word(message, word, self._engine)
        stream = self._backlog.stream
        if stream is not None and stream.token == cut_through.key:
            if not is_unsent and not cut_through.settled:
                self._words[stream.delivery_id] = word
            stream.complete(word, is_known_by_key=not is_unsent)
        else:
            message.complete(word)
        return len(message), None

    def give_up(self, *, may_begin_again: bool = True) -> None:
        """End the delivery of the message that arrives: its queue has it when it is complete."""
        message, self.message = self.message, None
        if message is not None:
            message.cut_through.upload.may_cut_through = may_begin_again
            self._engine.stop_cut_through(message.cut_through)

    def take(self, event: Disposed, peer: ConsumerPeer[Any], default_outcome: DeliveryState | None) -> Disposed | None:
        """Return an event without the message that arrives, whose outcome is kept, and with words; None if it is empty.

        The message that arrives is the last one that the link has sent. Its outcome in a transaction is void.
        """
        tokens, state = event.tokens, event.state
        is_in_transaction = isinstance(state, TransactionalState)
        if self.message is not None and tokens and tokens[-1] == self.message.cut_through.key:
            tokens = tokens[:-1]
            if isinstance(state, TransactionalState):
                transaction = peer.transaction(state.txn_id)
                if transaction is not None:
                    transaction.doom("it settles a delivery that is not complete")
            self._outcome = outcome_of(None if is_in_transaction else state, default_outcome) or RELEASED
        if not tokens:
            return None
        if known := self._words:
            # A transaction may be rolled back: then the peer names them again.
            find = known.get if is_in_transaction and not event.settled else known.pop
            tokens = [find((event.first_id + index) & MASK, token) for index, token in enumerate(tokens)]
        return Disposed(event.link, event.first_id, tokens, state, event.settled)

    def forget(self, delivery_id: int) -> None:
        """Forget a delivery that the broker has settled."""
        self._words.pop(delivery_id, None)
