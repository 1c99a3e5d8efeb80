"""Answers of the management node that wait for credit, those of one connection.

Rule 1. What waits is bounded in number a link and in bytes a connection; what comes beyond is dropped.
Rule 2. What waits because too much is unsettled in its session leaves when there is less, whoever has settled it.
Rule 3. The oldest of a link go first, sent settled unless the link is for what is unsettled: nobody sends an answer
        again, whatever is said of it.
"""

from collections import deque
from typing import Final, final

from ambermq.protocol.amqp10.endpoints import SessionEndpoint
from ambermq.protocol.amqp10.events import Disposed
from ambermq.protocol.amqp10.link.sender import Sender
from ambermq.protocol.amqp10.spec import SenderSettleMode

__all__ = ["ReplyQueue"]

_ANSWERS_MAX: Final = 1000
_ANSWERS_BYTES_MAX: Final = 1 << 20
"""One more may wait when fewer bytes than this do, so that an answer larger than the bound can be had."""


@final
class ReplyQueue:
    """What waits, by the link that it leaves on."""

    __slots__ = ("_by_link", "_bytes", "_next_token")

    def __init__(self) -> None:
        self._by_link: dict[Sender, deque[bytes]] = {}
        self._bytes = 0
        self._next_token = 1

    @property
    def is_empty(self) -> bool:
        """Nothing waits."""
        return not self._bytes

    def attach(self, link: Sender) -> None:
        """Let answers wait for a link."""
        self._by_link[link] = deque()

    def detach(self, link: Sender) -> None:
        """Drop what waits for a link."""
        self._bytes -= sum(map(len, self._by_link.pop(link, ())))

    def send(self, link: Sender, answer: bytes) -> None:
        """Send an answer, now or when the link can take it."""
        waiting = self._by_link[link]
        if len(waiting) < _ANSWERS_MAX and self._bytes < _ANSWERS_BYTES_MAX:
            waiting.append(answer)
            self._bytes += len(answer)
        self.flush(link)

    def disposed(self, event: Disposed) -> None:
        """Settle answers whose receiver waits for that (receiver-settle-mode second); maybe more can leave now."""
        link = event.link
        if isinstance(link, Sender) and link in self._by_link:
            if not event.settled:
                link.settle_sent(event.first_id, len(event.tokens), event.state)
            self.flush(link)

    def flush(self, link: Sender) -> None:
        """Send what the link has credit for; a drain is answered once that can bring nothing more."""
        waiting = self._by_link.get(link)
        if waiting is None:
            return
        while waiting and link.sendable:
            answer = waiting.popleft()
            self._bytes -= len(answer)
            is_settled = link.sender_settle_mode != SenderSettleMode.UNSETTLED
            link.send_run([self._next_token], [answer], settled=is_settled)
            self._next_token += 1
        link.end_drain(has_more=bool(waiting))
        if waiting:
            link.session.await_room()

    def relieve(self, session: SessionEndpoint) -> None:
        """Send what waited for room in a session: less is unsettled there now."""
        for link in self._by_link:
            if link.session is session:
                self.flush(link)
