"""The target of a compaction's commit: the broker that runs on the directory, or an engine in this process.

Rule 1. Only a running broker changes its log: it gets requests over `$management`. A user's command connects for each
        request, since a job may take hours. A child of the broker has one token, so one connection.
Rule 2. Without a broker the engine is open for the time of the job. Its lock keeps every broker out.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any, Final, Protocol, final

from ambermq.engine.commands import CommitCompaction, DeleteSnapshot, NameSnapshot, TakeSnapshot
from ambermq.engine.loop.durable_loop import DurableLoop
from ambermq.protocol.management.compactions import COMPACTION_TYPE
from ambermq.tools.broker.offline_engine import ask, offline_engine
from ambermq.tools.client.broker_url import BrokerUrl
from ambermq.tools.client.link_client import LinkClient
from ambermq.tools.client.management_client import SnapshotManagement
from ambermq.tools.client.management_connection import ManagementConnection

__all__ = ["CommitTarget", "RunningBroker", "broker_for"]

_COMMIT_SECONDS: Final = 3600.0
"""The broker reads all new segments before it adopts them, which takes time."""


class CommitTarget(Protocol):
    """The changes of a log that a compaction requests. Each method may raise ToolError and LogError."""

    def take_snapshot(self, name: str, *, seals: bool) -> None:
        """Take a snapshot of the present state; with `seals` the log below it is sealed segments, if possible."""

    def delete_snapshot(self, name: str) -> None:
        """Delete a snapshot; ToolError if the broker refuses, or if there is none."""

    def name_snapshot(self, job: str, name: str) -> None:
        """Name the snapshot of the past that a job has written: it becomes a snapshot of the log."""

    def commit(self, job: str) -> Mapping[str, Any]:
        """Commit a job: the log adopts its segments. Return the facts of the event."""


@final
class RunningBroker:
    """A running broker as the target of a commit."""

    def __init__(self, management: Callable[[], AbstractContextManager[SnapshotManagement]]) -> None:
        """Send requests over the connection that `management` opens; all are about one virtual host."""
        self._management = management

    @classmethod
    def at(cls, url: str) -> "RunningBroker":
        """Return a target that connects to `url`, which names the virtual host too, for each request."""
        return cls(partial(_connected, BrokerUrl.parse(url)))

    def take_snapshot(self, name: str, *, seals: bool) -> None:
        """See CommitTarget."""
        with self._management() as management:
            management.create(name, seals=seals)

    def delete_snapshot(self, name: str) -> None:
        """See CommitTarget."""
        with self._management() as management:
            management.delete(name)

    def name_snapshot(self, job: str, name: str) -> None:
        """See CommitTarget."""
        with self._management() as management:
            body = {"snapshot": name}
            management.request("NAME", COMPACTION_TYPE, {"name": job}, body, timeout_s=_COMMIT_SECONDS)

    def commit(self, job: str) -> Mapping[str, Any]:
        """See CommitTarget."""
        with self._management() as management:
            return management.request("COMMIT", COMPACTION_TYPE, {"name": job}, timeout_s=_COMMIT_SECONDS)[1]


@contextmanager
def _connected(url: BrokerUrl) -> Iterator[SnapshotManagement]:
    """Yield a management client over a connection of its own."""
    with LinkClient.connect(url) as client:
        yield SnapshotManagement(client)


@final
class _StoppedBroker:
    """The engine of a stopped broker as the target of a commit."""

    def __init__(self, engine: DurableLoop) -> None:
        self._engine = engine

    def take_snapshot(self, name: str, *, seals: bool) -> None:
        """See CommitTarget."""
        ask(self._engine, TakeSnapshot(object(), name, seals=seals))

    def delete_snapshot(self, name: str) -> None:
        """See CommitTarget."""
        ask(self._engine, DeleteSnapshot(object(), name))

    def name_snapshot(self, job: str, name: str) -> None:
        """See CommitTarget."""
        ask(self._engine, NameSnapshot(object(), job, name))

    def commit(self, job: str) -> Mapping[str, Any]:
        """See CommitTarget."""
        facts: Mapping[str, Any] = ask(self._engine, CommitCompaction(object(), job))
        return facts


@contextmanager
def broker_for(directory: str, url: str | None, *, token: str = "") -> Iterator[CommitTarget]:
    """Yield the target for the log in `directory`: the broker at `url`, or an engine that locks the directory.

    A one-time `token` authenticates one connection.
    """
    if url is not None and token:
        with ManagementConnection.connect(BrokerUrl.parse(url), token) as management:
            yield RunningBroker(management)
        return
    if url is not None:
        yield RunningBroker.at(url)
        return
    with offline_engine(directory) as engine:
        yield _StoppedBroker(engine)
