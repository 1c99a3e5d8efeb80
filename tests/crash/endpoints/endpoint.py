"""A thread with a link: it connects again whenever the broker is gone, and keeps the faults that it sees."""

import random
import threading
import time
from collections.abc import Callable
from typing import Final

from tests.crash.endpoints.link_wire import ConnectionLost, LinkRefused, LinkWire
from tests.crash.moments import Moments

__all__ = ["Endpoint"]

_RETRY_SECONDS: Final = 0.02
_FAULTS_MAX: Final = 3
"""Of each law: one cause has the same result for many messages."""


class Endpoint:
    """A peer with one link; a subclass says what it does while it is connected."""

    def __init__(
        self, name: str, address: str, current_url: Callable[[], str], chance: random.Random, moments: Moments
    ) -> None:
        """`name` is the container id, and the name of the link."""
        self.name, self.address = name, address
        self.chance, self.moments = chance, moments
        self.faults: list[str] = []
        """What must never happen and was seen."""
        self.is_running = True
        self.sessions = 0
        """How often it has attached its link."""
        self._current_url = current_url
        self._thread = threading.Thread(target=self._work, daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End, and return when that is done."""
        self.is_running = False
        if self._thread.ident is not None:
            self._thread.join(60)

    def serve(self, wire: LinkWire) -> None:
        """Exchange frames on a connection with a session, until it is lost or the endpoint stops."""
        raise NotImplementedError

    def note(self, fault: str) -> None:
        """Keep a fault, which begins with its law."""
        law = fault.partition(":")[0]
        if sum(one.startswith(law) for one in self.faults) < _FAULTS_MAX:
            self.faults.append(fault)

    def connect(self) -> LinkWire:
        """Return a new connection of the container. Raises ConnectionLost, LinkRefused."""
        return LinkWire.opened(self._current_url(), self.name)

    def lost(self) -> None:
        """Forget what belongs to the connection: it has ended."""

    def _work(self) -> None:
        while self.is_running:
            try:
                with self.connect() as wire:
                    self.serve(wire)
            except ConnectionLost:
                time.sleep(_RETRY_SECONDS)
            except LinkRefused as refusal:
                self.note(f"refused: {self.name}: {refusal}")
                time.sleep(_RETRY_SECONDS)
            except Exception as error:  # noqa: BLE001 - a fault of the campaign itself must not pass as silence
                self.note(f"campaign: {self.name}: {error!r}")
                time.sleep(1.0)
            finally:
                self.lost()
