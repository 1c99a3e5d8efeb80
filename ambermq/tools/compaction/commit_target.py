"""Who takes a compaction's snapshots and commits it: the broker that runs on the directory, or its engine in here.

Rule 1. A running broker alone changes its log: it is asked over `$management`. A user's command connects
        for each request, since a job may take hours. A child of the broker has one token, so one connection.
Rule 2. Without a broker the engine is opened for as long as the job takes, which keeps every broker out meanwhile.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any, Final, Protocol, final

from ambermq.engine.commands import CommitCompaction, DeleteSnapshot, NameSnapshot, TakeSnapshot
from ambermq.engine.loop.durable_loop import DurableLoop
from ambermq.protocol.management.compactions import COMPACTION_TYPE
from ambermq.tools.broker.stopped_engine import ask, stopped_engine
from ambermq.tools.client.broker_url import BrokerUrl
from ambermq.tools.client.link_client import LinkClient
from ambermq.tools.client.management_client import SnapshotManagement
from ambermq.tools.client.management_connection import ManagementConnection

__all__ = ["CommitTarget", "RunningBroker", "broker_for"]

_COMMIT_SECONDS: Final = 3600.0
"""All that is new is read once more before it is taken over."""


class CommitTarget(Protocol):
    """What a compaction needs a broker for. All may raise ToolError and LogError."""

    def take_snapshot(self, name: str, *, seals: bool) -> None:
        """Take a snapshot of now; with `seals` what lies below it is whole segments, where that can be had."""

    def delete_snapshot(self, name: str) -> None:
        """Delete a snapshot; ToolError where the broker will not, or there is none."""

    def name_snapshot(self, job: str, name: str) -> None:
        """Let the snapshot of the past that a job has written be one of the log's."""

    def commit(self, job: str) -> Mapping[str, Any]:
        """Let the log take over what a job has written; return what the event says."""


@final
class RunningBroker:
    """The broker that runs."""

    def __init__(self, management: Callable[[], AbstractContextManager[SnapshotManagement]]) -> None:
        """Send requests by what `management` lends; all are about one virtual host."""
        self._management = management

    @classmethod
    def at(cls, url: str) -> "RunningBroker":
        """Make one that connects to `url`, which names the virtual host too, for each request."""
        return cls(partial(_connected, BrokerUrl.parse(url)))

    def take_snapshot(self, name: str, *, seals: bool) -> None:
        """See CompactingBroker."""
        with self._management() as management:
            management.create(name, seals=seals)

    def delete_snapshot(self, name: str) -> None:
        """See CompactingBroker."""
        with self._management() as management:
            management.delete(name)

    def name_snapshot(self, job: str, name: str) -> None:
        """See CompactingBroker."""
        with self._management() as management:
            asked = {"snapshot": name}
            management.request("NAME", COMPACTION_TYPE, {"name": job}, asked, timeout_s=_COMMIT_SECONDS)

    def commit(self, job: str) -> Mapping[str, Any]:
        """See CompactingBroker."""
        with self._management() as management:
            return management.request("COMMIT", COMPACTION_TYPE, {"name": job}, timeout_s=_COMMIT_SECONDS)[1]


@contextmanager
def _connected(url: BrokerUrl) -> Iterator[SnapshotManagement]:
    """Yield the management over a connection of its own."""
    with LinkClient.connect(url) as client:
        yield SnapshotManagement(client)


@final
class _StoppedBroker:
    """The engine of a broker that does not run."""

    def __init__(self, engine: DurableLoop) -> None:
        self._engine = engine

    def take_snapshot(self, name: str, *, seals: bool) -> None:
        """See CompactingBroker."""
        ask(self._engine, TakeSnapshot(object(), name, seals=seals))

    def delete_snapshot(self, name: str) -> None:
        """See CompactingBroker."""
        ask(self._engine, DeleteSnapshot(object(), name))

    def name_snapshot(self, job: str, name: str) -> None:
        """See CompactingBroker."""
        ask(self._engine, NameSnapshot(object(), job, name))

    def commit(self, job: str) -> Mapping[str, Any]:
        """See CompactingBroker."""
        told: Mapping[str, Any] = ask(self._engine, CommitCompaction(object(), job))
        return told


@contextmanager
def broker_for(directory: str, url: str | None, *, token: str = "") -> Iterator[CommitTarget]:
    """Yield who changes the log in `directory`: the broker at `url`, or without one its engine, alone with it.

    A one-time `token` lets one connection in.
    """
    if url is not None and token:
        with ManagementConnection.connect(BrokerUrl.parse(url), token) as management:
            yield RunningBroker(management)
        return
    if url is not None:
        yield RunningBroker.at(url)
        return
    with stopped_engine(directory) as engine:
        yield _StoppedBroker(engine)
