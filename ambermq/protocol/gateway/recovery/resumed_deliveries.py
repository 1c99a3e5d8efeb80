"""The deliveries that a resumed link sends again, before anything new.

Rule 1. Each uses a credit of the link, as any delivery. A delivery whose outcome the receiver has reached is settled by
        a transfer without a message.
Rule 2. Messages are asked for as the link can take them, and come in the order in which they were asked for.
"""

from collections import deque
from collections.abc import Iterable
from typing import NamedTuple, final

from ambermq.protocol.amqp10.link.resumption import ABSENT, Resumption, UnsettledMap, payload_from, resumption_of
from ambermq.protocol.amqp10.link.sender import Sender
from ambermq.protocol.amqp10.performatives.classes import DeliveryState
from ambermq.protocol.amqp10.types.decode import Buffer

__all__ = ["ResumedDeliveries"]


class _Resumed(NamedTuple):
    word: int
    resumption: Resumption
    state: DeliveryState | None


@final
class ResumedDeliveries:
    """The deliveries of one link that are not sent again yet."""

    __slots__ = ("_asked", "_left", "is_incomplete")

    def __init__(self, link: Sender, held: Iterable[int], theirs: UnsettledMap, *, is_incomplete: bool) -> None:
        """`held` are the words that the link held, `theirs` the receiver's map.

        `is_incomplete`: one of the maps is incomplete, so only what the receiver has is sent.
        """
        self.is_incomplete = is_incomplete
        self._left: deque[_Resumed] = deque()
        self._asked: deque[_Resumed] = deque()
        """Those whose messages were asked for, in that order."""
        for word in held:
            state = theirs.get(link.tag_of(word), ABSENT)
            resumption = resumption_of(None, state)
            if resumption is not Resumption.SEND or not is_incomplete:
                self._left.append(_Resumed(word, resumption, None if state is ABSENT else state))

    @property
    def is_done(self) -> bool:
        """Whether all are sent."""
        return not self._left and not self._asked

    def send(self, link: Sender, count_max: int) -> tuple[int, ...]:
        """Settle deliveries whose outcome is known, and return the words to ask for next, at most `count_max`."""
        count = min(link.sendable - len(self._asked), count_max)
        words: list[int] = []
        while self._left and count > 0:
            one = self._left.popleft()
            count -= 1
            if one.resumption is Resumption.ADOPT:
                link.resume_delivery(one.word, b"", state=one.state, settled=True)
                continue
            self._asked.append(one)
            words.append(one.word)
        return tuple(words)

    def deliver(self, link: Sender, messages: Iterable[Buffer]) -> None:
        """Send the next message that was asked for; there is none if it is not held any more, or damaged."""
        one = self._asked.popleft()
        for message in messages:
            if one.resumption is Resumption.SEND:
                is_sent = link.offer_run((one.word,), (message,))
            else:
                payload, state = payload_from(message, one.state)
                is_sent = link.resume_delivery(one.word, payload, state=state)
            if not is_sent:
                # Another link has used up the window of the session: it is asked for again.
                self._left.appendleft(one)
