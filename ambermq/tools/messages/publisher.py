"""A sender of messages on one link, with the outcome of each.

Rule 1: at most `window` messages are unsettled, and the link's credit is respected; `offer` waits for both.
Rule 2: a message is accepted when the broker's outcome says so. A settled message has the outcome `sent` at once.
"""

import time
from collections import Counter
from collections.abc import Callable
from typing import Final

from ambermq.protocol.amqp10.events import Disposed, Event
from ambermq.protocol.amqp10.link.sender import Sender
from ambermq.protocol.amqp10.performatives.classes import Rejected
from ambermq.protocol.amqp10.types.decode import Buffer
from ambermq.tools.client.link_client import LinkClient
from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.exit_codes import ExitCode

__all__ = ["ADVICE", "Publisher"]

_WRITE_BYTES: Final = 64 * 1024
"""Output is written at this size, or earlier when the publisher waits."""

_PIECE_BYTES: Final = 1 << 20
"""The most bytes of a large message in one frame."""
_FRAME_HEAD_BYTES: Final = 128
"""The most bytes of a frame besides its payload."""

_STALLED_SECONDS: Final = 60.0
"""Timeout without credit or outcomes."""
_NOTICE_SECONDS: Final = 1.0
"""Time without credit or outcomes after which the owner gets the reason."""
ADVICE: Final = {
    "disk": "free disk space on the broker's machine, keep less history, or delete a snapshot that keeps it",
    "memory": "the broker holds too much for its peers, or uses too much memory itself: `ambermq status` says which",
    "descriptors": "raise the limit of open files of the broker, or close connections",
    "queue-full": "receive from the queue, or raise its maximum length",
    "unsynced": "the broker's disk is slow: try again later",
}
"""What to do about each reason of `ambermq:blocked`."""


class Publisher:
    """Sends on one link of a client and counts the outcomes."""

    def __init__(
        self,
        client: LinkClient,
        link: Sender,
        *,
        settled: bool = False,
        window: int = 2000,
        on_outcome: Callable[[int, str], None] | None = None,
        on_wait: Callable[[str], None] | None = None,
        timeout_s: float = _STALLED_SECONDS,
    ) -> None:
        """`on_outcome` is called with the token and the name of the outcome ("accepted") of each message.

        `on_wait` is called after a second without credit or outcomes with the broker's reason, empty if it gave none.
        After `timeout_s` without any a call raises ToolError; 0 waits forever.
        """
        self.outcomes: Counter[str] = Counter()
        """Messages by outcome: accepted, rejected, released, modified; sent for settled messages."""
        self.sent = 0
        """The number of messages sent."""
        self.refusal = ""
        """The error of the first rejected message."""
        self._client = client
        self._link = link
        self._settled = settled
        self._window = window
        self._on_outcome = on_outcome
        self._on_wait = on_wait
        self._timeout_s = timeout_s
        self._unsettled = 0
        self._large_id = 0
        """The delivery of the large message that is being sent."""
        self._is_refused = False
        """Whether a message was settled since that one began."""

    def offer(self, payload: Buffer, token: int) -> None:
        """Wait for credit and window, then send one message."""
        while not self._link.sendable or self._unsettled >= self._window:
            self._progress()
        self._link.send_run([token], [payload], self._settled)
        self.sent += 1
        if self._settled:
            self.outcomes["sent"] += 1
        else:
            self._unsettled += 1
        if self._client.connection.output_bytes >= _WRITE_BYTES:
            self._take(self._client.step(0.0))

    @property
    def piece_bytes(self) -> int:
        """The size of a piece that fits into one frame."""
        return min(self._client.connection.remote_frame_bytes_max, _PIECE_BYTES) - _FRAME_HEAD_BYTES

    def offer_piece(self, piece: bytes, token: int, *, is_first: bool, is_last: bool) -> bool:
        """Send a piece of a large message, when credit and window allow it, and return when it is written.

        Return False if the broker has settled the message already: then no more of it is sent.
        """
        link = self._link
        if is_first:
            while not link.sendable or self._unsettled >= self._window:
                self._progress()
            self._large_id = link.begin_parts(token, self._settled)
            self.sent += 1
            self._unsettled += not self._settled
            self._is_refused = False
        part = memoryview(piece)
        while part:
            if self._is_refused:
                link.abort_parts(self._large_id)
                return False
            count = link.send_part(self._large_id, token, part, is_first=is_first, is_last=is_last)
            is_first, part = is_first and not count, part[count:]
            self._await_room(is_window_closed=bool(part))
        if self._settled and is_last:
            self.outcomes["sent"] += 1
        return True

    def _await_room(self, *, is_window_closed: bool) -> None:
        """Wait until the output is written and the broker's window is open, or the message is settled."""
        began = time.monotonic()
        until = began + self._timeout_s if self._timeout_s else None
        self._take(self._client.step(0.0))
        while not self._is_refused and (
            self._client.is_writing or (is_window_closed and not self._link.session.windows.remote)
        ):
            if until is not None and time.monotonic() >= until:
                raise self._stalled()
            self._take(self._client.step(until))

    def wait_until(self, moment: float) -> None:
        """Process outcomes until a time of time.monotonic()."""
        while True:
            self._take(self._client.step(moment))
            if time.monotonic() >= moment:
                return

    def wait_readable(self, descriptor: int) -> None:
        """Process outcomes once, at the latest until a file descriptor is readable."""
        self._take(self._client.step(None, watch=descriptor))

    def finish(self) -> None:
        """Return when every message has its outcome."""
        while self._unsettled:
            self._progress()
        self._client.flush()

    def _progress(self) -> None:
        """Wait for credit or an outcome."""
        began, told = time.monotonic(), None
        before = (self._unsettled, self._link.sendable)
        while before == (self._unsettled, self._link.sendable):
            waited_s = time.monotonic() - began
            if self._timeout_s and waited_s >= self._timeout_s:
                raise self._stalled()
            if waited_s >= _NOTICE_SECONDS and self._on_wait is not None and told != self._link.blocked:
                told = self._link.blocked
                self._on_wait(told)
            self._take(self._client.step(self._next_moment(began, waited_s)))

    def _next_moment(self, began: float, waited_s: float) -> float | None:
        """Return when a wait must look at the clock again; None if only an event matters."""
        moments = [began + _NOTICE_SECONDS] if waited_s < _NOTICE_SECONDS else []
        if self._timeout_s:
            moments.append(began + self._timeout_s)
        return min(moments, default=None)

    def _stalled(self) -> ToolError:
        reason = self._link.blocked
        told = f", held back by the broker: {reason}" if reason else ""
        return ToolError(
            "the broker neither gives credit nor settles messages",
            where=f"{self._client.url} {self._link.owner}",
            expected=f"credit or an outcome within {self._timeout_s:g} s",
            found=f"{self._unsettled} messages unsettled, credit {self._link.credit}{told}",
            advice=ADVICE.get(reason, "check whether the broker's disk is full"),
            code=ExitCode.TIMEOUT,
        )

    def _take(self, events: list[Event]) -> None:
        for event in events:
            if isinstance(event, Disposed) and event.link is self._link:
                self._settle(event)

    def _settle(self, event: Disposed) -> None:
        name = "settled" if event.state is None else type(event.state).__name__.lower()
        if not event.settled:
            self._link.settle_sent(event.first_id, len(event.tokens), event.state)
        if isinstance(event.state, Rejected) and event.state.error and not self.refusal:
            self.refusal = event.state.error.description or str(event.state.error.condition)
        self._unsettled -= len(event.tokens)
        self._is_refused = self._is_refused or event.first_id == self._large_id
        self.outcomes[name] += len(event.tokens)
        if self._on_outcome is not None:
            for token in event.tokens:
                self._on_outcome(token, name)
