"""A queue and a LOSSY muxer that are updated again and again, by a thread that lives through every death of the broker.

Updates have numbers that only go up, and each value is the number of its update:

    messages_max    _MESSAGES + number      0: not updated yet
    probability     number / _STEPS

Rule: what a broker goes by that has recovered is the last update that was acknowledged, or a later one that was sent.
"""

import threading
import time
from collections.abc import Callable
from typing import Any, Final

from ambermq.engine.model.muxer import MuxerKind, Options
from ambermq.tools.client.broker_url import BrokerUrl
from ambermq.tools.client.link_client import LinkClient
from ambermq.tools.client.management_client import RequestRefused, queue_update
from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.wiring.client import WiringManagement, muxer_update

__all__ = ["Updates"]

_MUXER: Final = "line"
_MESSAGES: Final = 1_000_000
"""More than the queue ever holds, so that nothing is refused."""
_STEPS: Final = 1 << 24
"""A power of two, so that the quotient is the number to the last bit."""
_AT_ONCE: Final = 8
_PAUSE_SECONDS: Final = 0.002
_RETRY_SECONDS: Final = 0.02
_FAULTS_MAX: Final = 3


class Updates:
    """The updates of a queue that has traffic, and of a muxer, and the record of them."""

    def __init__(self, queue: str, current_url: Callable[[], str]) -> None:
        self.sent = 0
        """The number of the last updates that may have left."""
        self.acknowledged = {"queue": 0, "muxer": 0}
        """The numbers of the last updates that the broker has answered, or that it said it goes by."""
        self.looks = 0
        """How often a broker was asked what it goes by, after it was there for the first time."""
        self.faults: list[str] = []
        """What must never happen and was seen."""
        self._queue = queue
        self._current_url = current_url
        self._is_running = True
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        """Begin to update."""
        self._thread.start()

    def stop(self) -> None:
        """Update no more, and return when the thread has ended."""
        self._is_running = False
        if self._thread.ident is not None:
            self._thread.join(60)

    def look(self) -> None:
        """Ask the broker that runs now what it goes by. Raises ToolError."""
        with LinkClient.connect(BrokerUrl.parse(self._current_url())) as client:
            self._look(WiringManagement(client))

    def _run(self) -> None:
        while self._is_running:
            try:
                with LinkClient.connect(BrokerUrl.parse(self._current_url())) as client:
                    management = WiringManagement(client)
                    self._look(management)
                    while self._is_running:
                        self._update(management)
                        time.sleep(_PAUSE_SECONDS)
            except RequestRefused as refusal:
                self._note(refusal.message)
            except (ToolError, OSError):
                time.sleep(_RETRY_SECONDS)

    def _look(self, management: WiringManagement) -> None:
        queue = _present(lambda: management.read(self._queue), lambda: management.declare(self._queue))
        options = Options(probability=0.0)
        muxer = _present(
            lambda: management.muxer(_MUXER), lambda: management.declare_muxer(_MUXER, MuxerKind.LOSSY, options)
        )
        found = {
            "queue": queue["messages_max"] and queue["messages_max"] - _MESSAGES,
            "muxer": int(muxer["probability"] * _STEPS),
        }
        self.looks += any(self.acknowledged.values())
        for what, number in found.items():
            if not self.acknowledged[what] <= number <= self.sent:
                bounds = f"update {self.acknowledged[what]} was acknowledged and {self.sent} was sent"
                self._note(f"the {what} goes by update {number}, where {bounds}")
            self.acknowledged[what] = number

    def _update(self, management: WiringManagement) -> None:
        numbers = range(self.sent + 1, self.sent + 1 + _AT_ONCE)
        asked = [
            (what, number, request)
            for number in numbers
            for what, request in (
                ("queue", queue_update(self._queue, {"messages_max": _MESSAGES + number})),
                ("muxer", muxer_update(_MUXER, probability=number / _STEPS)),
            )
        ]
        self.sent = numbers[-1]
        refusals = management.carry_out([request for _, _, request in asked])
        for (what, number, _), refusal in zip(asked, refusals, strict=False):
            if refusal is None:
                self.acknowledged[what] = number
            else:
                self._note(f"update {number} of the {what} was refused: {refusal.message}")

    def _note(self, fault: str) -> None:
        if len(self.faults) < _FAULTS_MAX:
            self.faults.append(f"update: {fault}")


def _present(read: Callable[[], dict[str, Any]], make: Callable[[], object]) -> dict[str, Any]:
    """Return the attributes of what is there, or is made now."""
    try:
        return read()
    except RequestRefused as refusal:
        if refusal.status != 404:
            raise
    make()
    return read()
