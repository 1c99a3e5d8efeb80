"""The deliveries that a resumed link sends again, before anything new.

Rule 1. Each uses a credit of the link, as any delivery. A delivery whose outcome the receiver has reached is settled by
        a transfer without a message.
Rule 2. Messages are asked for as the link can take them, and come in the order in which they were asked for.
Rule 3. A large message is sent as a stream (gateway/large). What comes meanwhile is asked for again, one by one while
        there are large ones.
"""

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple, final

from ambermq.engine.entries.delivery_key import attempt_of, word_of
from ambermq.protocol.amqp10.link.resumption import ABSENT, Resumption, UnsettledMap, payload_from, resumption_of
from ambermq.protocol.amqp10.link.sender import Sender
from ambermq.protocol.amqp10.performatives.classes import DeliveryState
from ambermq.protocol.amqp10.types.decode import Buffer

__all__ = ["Resumed", "ResumedDeliveries", "tag_of", "unsettled_map"]

_TAG_BYTES: Final = 16
_PREFIX_BYTES: Final = 8


class Resumed(NamedTuple):
    """A delivery that is to be sent again."""

    key: int
    resumption: Resumption
    state: DeliveryState | None
    """What the receiver has of it."""

    @property
    def is_new(self) -> bool:
        """Whether the receiver does not know it."""
        return self.resumption is Resumption.SEND


def tag_of(key: int) -> bytes:
    """Return the delivery-tag of a delivery."""
    return key.to_bytes(_TAG_BYTES, "big")


def unsettled_map(held: Sequence[int], theirs: UnsettledMap, *, is_complete: bool) -> tuple[UnsettledMap, int]:
    """Return the map of a link that held these keys, and how many of its last deliveries the receiver does not have.

    Those are sent as new ones, so the map need not name them: it would be incomplete for ever if they do not fit.
    Without `is_complete`, that is said of the receiver's map, nothing is known of them.
    """
    tags = [tag_of(key) for key in held]
    if not is_complete:
        return dict.fromkeys(tags), 0
    tags.sort(key=lambda tag: tag not in theirs)
    return dict.fromkeys(tags), sum([tag not in theirs for tag in tags])


@final
class ResumedDeliveries:
    """The deliveries of one link that are not sent again yet."""

    __slots__ = ("_asked", "_has_large", "_left", "_put_back", "is_incomplete")

    def __init__(self, held: Iterable[int], theirs: UnsettledMap, *, is_incomplete: bool) -> None:
        """`held` are the keys of what the link held, `theirs` is the receiver's map.

        `is_incomplete`: one of the maps is incomplete, so only what the receiver has is sent.
        """
        self.is_incomplete = is_incomplete
        self._left: deque[Resumed] = deque()
        self._asked: deque[Resumed] = deque()
        """Those whose messages were asked for, in that order."""
        self._put_back: list[Resumed] = []
        """Those whose messages came when the link could not send them."""
        self._has_large = False
        """Whether the last message was a large one."""
        for key in held:
            state = theirs.get(tag_of(key), ABSENT)
            resumption = resumption_of(None, state)
            if resumption is not Resumption.SEND or not is_incomplete:
                self._left.append(Resumed(key, resumption, None if state is ABSENT else state))

    @property
    def is_done(self) -> bool:
        """Whether all are sent."""
        return not self._left and not self._asked and not self._put_back

    def send(self, link: Sender, count_max: int) -> tuple[int, ...]:
        """Settle deliveries whose outcome is known, and return the words to ask for next, at most `count_max`."""
        if not self._asked:
            self._left.extendleft(reversed(self._put_back))
            self._put_back.clear()
        elif self._put_back:
            return ()
        count = min(link.sendable - len(self._asked), 1 - len(self._asked) if self._has_large else count_max)
        words: list[int] = []
        while self._left and count > 0:
            one = self._left.popleft()
            count -= 1
            if one.resumption is Resumption.ADOPT:
                self._use_tag(link, one)
                link.resume_delivery(word_of(one.key), b"", state=one.state, settled=True)
                continue
            self._asked.append(one)
            words.append(word_of(one.key))
        return tuple(words)

    def deliver(self, link: Sender, messages: Sequence[Buffer], *, is_plain: bool) -> None:
        """Send the next message that was asked for; there is none if it is not held any more, or damaged.

        `is_plain`: no further message annotations change its positions.
        """
        one = self._asked.popleft()
        self._has_large = False
        self._use_tag(link, one)
        for message in messages:
            if one.is_new:
                is_sent = link.offer_run((word_of(one.key),), (message,))
            else:
                payload, state = payload_from(message, one.state if is_plain else None)
                is_sent = link.resume_delivery(word_of(one.key), payload, state=state)
            if not is_sent:
                # Another link has used up the window of the session: it is asked for again.
                self._put_back.append(one)

    def end(self, link: Sender) -> None:
        """Use the tags of other deliveries again: all are sent."""
        link.use_tag_prefix(bytes(_PREFIX_BYTES))

    def take_large(self, link: Sender) -> Resumed:
        """Return the next delivery that was asked for, whose message is large: the caller sends it."""
        one = self._asked.popleft()
        self._has_large = True
        self._use_tag(link, one)
        return one

    def put_back(self) -> None:
        """Put the next delivery back that was asked for: the link is sending a large message."""
        self._put_back.append(self._asked.popleft())

    @staticmethod
    def _use_tag(link: Sender, one: Resumed) -> None:
        link.use_tag_prefix(attempt_of(one.key).to_bytes(_PREFIX_BYTES, "big"))
