"""Messages out on one link, and what the broker says became of them.

Rule 1: never more than `window` unsettled, and never more than the link's credit; `offer` waits for both.
Rule 2: a message counts as accepted when the broker has said so, never sooner; sent settled, when it was written.
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

__all__ = ["Publisher"]

_WRITE_BYTES: Final = 64 * 1024
"""Gathered before a write; less is written when somebody waits."""

_STALLED_SECONDS: Final = 60.0
"""Without credit or settlements for so long, the broker is taken for stuck."""


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
    ) -> None:
        """`on_outcome` hears the token and the outcome's name ("accepted") of each message."""
        self.outcomes: Counter[str] = Counter()
        """Messages by outcome: accepted, rejected, released, modified; sent, when nothing is ever answered."""
        self.sent = 0
        """Messages handed to the link."""
        self.refusal = ""
        """What the broker said of the first message that it rejected."""
        self._client = client
        self._link = link
        self._settled = settled
        self._window = window
        self._on_outcome = on_outcome
        self._unsettled = 0

    def offer(self, payload: Buffer, token: int) -> None:
        """Send one message as soon as credit and window allow."""
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

    def wait_until(self, moment: float) -> None:
        """Go on taking outcomes until a moment of time.monotonic()."""
        while True:
            self._take(self._client.step(moment))
            if time.monotonic() >= moment:
                return

    def wait_readable(self, descriptor: int) -> None:
        """Go on taking outcomes once round, at the latest until a file descriptor is readable."""
        self._take(self._client.step(None, watch=descriptor))

    def finish(self) -> None:
        """Return when every message has its outcome."""
        while self._unsettled:
            self._progress()
        self._client.flush()

    def _progress(self) -> None:
        deadline = time.monotonic() + _STALLED_SECONDS
        before = (self._unsettled, self._link.sendable)
        while before == (self._unsettled, self._link.sendable):
            if time.monotonic() >= deadline:
                raise ToolError(
                    "the broker neither takes nor settles messages",
                    where=f"{self._client.url} {self._link.owner}",
                    expected=f"credit or an outcome within {_STALLED_SECONDS:.0f} s",
                    found=f"{self._unsettled} messages unsettled, credit {self._link.credit}",
                    advice="see whether its disk is full",
                    code=ExitCode.TIMEOUT,
                )
            self._take(self._client.step(deadline))

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
        self.outcomes[name] += len(event.tokens)
        if self._on_outcome is not None:
            for token in event.tokens:
                self._on_outcome(token, name)
