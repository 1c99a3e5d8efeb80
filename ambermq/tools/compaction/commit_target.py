"""Who takes a compaction's snapshots and commits it: the broker that runs on the directory, or its engine in here.

Rule 1. A running broker alone changes its log: it is asked over `$management`, by a connection for each question, since
        a job may take hours.
Rule 2. Without a broker the engine is opened for as long as the job takes, which keeps every broker out meanwhile.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, Protocol, final

from ambermq.engine.commands import CommitCompaction, DeleteSnapshot, NameSnapshot, TakeSnapshot
from ambermq.engine.loop.durable_loop import DurableLoop
from ambermq.protocol.management.compactions import COMPACTION_TYPE
from ambermq.tools.broker.stopped_engine import ask, stopped_engine
from ambermq.tools.client.broker_url import BrokerUrl
from ambermq.tools.client.link_client import LinkClient
from ambermq.tools.client.management_client import Management, SnapshotManagement

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

    def __init__(self, url: str) -> None:
        """`url` names the virtual host too."""
        self._url = BrokerUrl.parse(url)

    def take_snapshot(self, name: str, *, seals: bool) -> None:
        """See CompactingBroker."""
        with LinkClient.connect(self._url) as client:
            SnapshotManagement(client).create(name, seals=seals)

    def delete_snapshot(self, name: str) -> None:
        """See CompactingBroker."""
        with LinkClient.connect(self._url) as client:
            SnapshotManagement(client).delete(name)

    def name_snapshot(self, job: str, name: str) -> None:
        """See CompactingBroker."""
        with LinkClient.connect(self._url) as client:
            asked = {"snapshot": name}
            Management(client).request("NAME", COMPACTION_TYPE, {"name": job}, asked, timeout_s=_COMMIT_SECONDS)

    def commit(self, job: str) -> Mapping[str, Any]:
        """See CompactingBroker."""
        with LinkClient.connect(self._url) as client:
            return Management(client).request("COMMIT", COMPACTION_TYPE, {"name": job}, timeout_s=_COMMIT_SECONDS)[1]


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
def broker_for(directory: str, url: str | None) -> Iterator[CommitTarget]:
    """Yield who changes the log in `directory`: the broker at `url`, or without one its engine, alone with it."""
    if url is not None:
        yield RunningBroker(url)
        return
    with stopped_engine(directory) as engine:
        yield _StoppedBroker(engine)
