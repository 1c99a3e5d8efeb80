"""Management requests over one connection that stays open during a long job.

Rule 1. A thread steps the connection between requests, so that heartbeats are sent and read.
Rule 2. A lock serializes requests and the thread. The next request raises the error that ended the connection.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Final, Self, final

from ambermq.tools.client.broker_url import BrokerUrl
from ambermq.tools.client.link_client import LinkClient
from ambermq.tools.client.management_client import SnapshotManagement
from ambermq.tools.terminal.errors import ToolError

__all__ = ["ManagementConnection"]

_STEP_SECONDS: Final = 0.25
"""Between two steps: far below the idle timeout of any broker."""


@final
class ManagementConnection:
    """Management over one connection; a `with` block closes it."""

    def __init__(self, client: LinkClient) -> None:
        """Manage a broker by a client; raise ToolError if the broker has no management node."""
        self._client = client
        self._management = SnapshotManagement(client)
        self._lock = threading.Lock()
        self._is_closed = threading.Event()
        self._failure: ToolError | None = None
        self._thread = threading.Thread(target=self._step, name="heartbeats", daemon=True)
        self._thread.start()

    @classmethod
    def connect(cls, url: BrokerUrl, token: str) -> "ManagementConnection":
        """Connect with a one-time token; raises as `LinkClient.connect` does."""
        client = LinkClient.connect(url, token=token)
        try:
            return cls(client)
        except BaseException:
            client.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_closed.set()
        self._thread.join()
        self._client.close()

    @contextmanager
    def __call__(self) -> Iterator[SnapshotManagement]:
        """Yield the management for requests; raise ToolError if the connection has ended."""
        with self._lock:
            if self._failure is not None:
                raise self._failure
            yield self._management

    def _step(self) -> None:
        while not self._is_closed.wait(_STEP_SECONDS):
            with self._lock:
                try:
                    self._client.step(time.monotonic())
                except ToolError as failure:
                    self._failure = failure
                    return
