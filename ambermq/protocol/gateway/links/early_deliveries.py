"""The deliveries of one link that begin while their messages arrive: cut-through (engine/dispatch/cut_through.py).

Rule 1. One at a time. The link sends nothing else meanwhile, and a drain is answered without what it could not send.
Rule 2. Its token is the key of the upload, and so is its delivery-tag. When the message is published, its word takes
        the place of that key in what the engine is told.
Rule 3. An outcome that comes before is kept until then. It has aborted the delivery, as in the middle of any large one.
Rule 4. Nothing of a delivery is kept when its link ends before. A link that is resumed later knows the message by its
        word: the receiver, which knows it by the key, gets it again.
"""

from typing import final

from ambermq.engine.commands import CutThrough
from ambermq.engine.entries.outcome import Outcome
from ambermq.protocol.amqp10.events import Disposed
from ambermq.protocol.amqp10.performatives.classes import TransactionalState
from ambermq.protocol.gateway.large.arriving_message import ArrivingMessage

__all__ = ["EarlyDeliveries"]


@final
class EarlyDeliveries:
    """The early deliveries of one link."""

    __slots__ = ("_outcome", "_words", "message")

    def __init__(self) -> None:
        self.message: ArrivingMessage | None = None
        """The message that arrives, until it is published; None without one."""
        self._outcome: Outcome | None = None
        """The outcome of its delivery; None without one."""
        self._words: dict[int, int] = {}
        """The words of published messages by the keys of their deliveries, which are not settled."""

    @property
    def is_sending(self) -> bool:
        """Whether the link waits for a message that arrives."""
        return self.message is not None and self._outcome is None

    def begin(self, cut_through: CutThrough) -> ArrivingMessage:
        """Return the message of a delivery that begins."""
        self.message = message = ArrivingMessage(cut_through)
        return message

    def end(self) -> Outcome | None:
        """Forget the message that arrives: it is published, or will not be; return its outcome, None without one."""
        outcome, self.message, self._outcome = self._outcome, None, None
        return outcome

    def note_word(self, key: int, word: int) -> None:
        """Note the word of a published message, whose delivery is not settled."""
        self._words[key] = word

    def keep_outcome(self, outcome: Outcome) -> None:
        """Keep the outcome of the delivery until its message is published."""
        self._outcome = outcome

    def parts(self, event: Disposed) -> tuple[Disposed | None, Disposed | None]:
        """Return the parts of an event: with the words of published messages, and that of the message that arrives.

        Each is None if it is empty. The message that arrives is the last one that the link has sent.
        """
        tokens, arriving = event.tokens, None
        if self.message is not None and tokens and tokens[-1] == self.message.cut_through.key:
            count = len(tokens) - 1
            arriving = Disposed(event.link, event.first_id + count, tokens[count:], event.state, event.settled)
            tokens = tokens[:count]
        if not tokens:
            return None, arriving
        if self._words:
            known = self._words
            # A transaction may be rolled back: then the peer names them again.
            find = known.get if type(event.state) is TransactionalState and not event.settled else known.pop
            tokens = [find(token, token) for token in tokens]
        return Disposed(event.link, event.first_id, tokens, event.state, event.settled), arriving
