"""The backlog of answers of one connection that wait for credit.

Rule 1. The backlog is bounded in answers for each link, and in bytes for the connection. Further answers are dropped.
Rule 2. An answer that waits for room in a full session leaves when any link of the session settles deliveries.
Rule 3. The answers of a link leave in order. They are settled, unless the link's sender-settle-mode is unsettled: the
        broker never sends an answer again, whatever its outcome is.
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
"""Another answer may wait while the backlog has fewer bytes than this: so a client gets an answer above the bound."""


@final
class ReplyQueue:
    """The backlogs of the links for answers."""

    __slots__ = ("_by_link", "_bytes", "_next_token")

    def __init__(self) -> None:
        self._by_link: dict[Sender, deque[bytes]] = {}
        self._bytes = 0
        self._next_token = 1

    @property
    def is_empty(self) -> bool:
        """Whether no answer waits."""
        return not self._bytes

    @property
    def size(self) -> int:
        """The size of all backlogs, in bytes."""
        return self._bytes

    def attach(self, link: Sender) -> None:
        """Add the backlog of a link."""
        self._by_link[link] = deque()

    def detach(self, link: Sender) -> None:
        """Drop the backlog of a link."""
        self._bytes -= sum(map(len, self._by_link.pop(link, ())))

    def send(self, link: Sender, answer: bytes) -> bool:
        """Send an answer now, or when the link has credit; return False if the backlog has no room for it."""
        backlog = self._by_link[link]
        has_room = len(backlog) < _ANSWERS_MAX and self._bytes < _ANSWERS_BYTES_MAX
        if has_room:
            backlog.append(answer)
            self._bytes += len(answer)
        self.flush(link)
        return has_room

    def disposed(self, event: Disposed) -> None:
        """Settle answers whose receiver waits for it (receiver-settle-mode second), and send what has room now."""
        link = event.link
        if isinstance(link, Sender) and link in self._by_link:
            if not event.settled:
                link.settle_sent(event.first_id, len(event.tokens), event.state)
            self.flush(link)

    def flush(self, link: Sender) -> None:
        """Send as many answers as the link has credit for, and answer a drain."""
        backlog = self._by_link.get(link)
        if backlog is None:
            return
        while backlog and link.sendable:
            answer = backlog.popleft()
            self._bytes -= len(answer)
            is_settled = link.sender_settle_mode != SenderSettleMode.UNSETTLED
            link.send_run([self._next_token], [answer], settled=is_settled)
            self._next_token += 1
        link.end_drain(has_more=bool(backlog))
        if backlog:
            link.session.await_room()

    def relieve(self, session: SessionEndpoint) -> None:
        """Send the answers that waited for room in a session, which has fewer unsettled deliveries now."""
        for link in self._by_link:
            if link.session is session:
                self.flush(link)
