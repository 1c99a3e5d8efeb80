"""The two backends of `ambermq vhost`: a running broker, or a data directory without one.

Rule 1. Only a running broker changes its virtual hosts; the backend sends requests to `$management`. A copy is written
        to a directory that the broker has prepared and adopts at the end.
Rule 2. Without a broker the backend changes the files under the lock of the data directory.
Rule 3. A copy that is cut short leaves no virtual host. Its files are deleted, at the latest at the next start of the
        broker.
"""

import secrets
import shutil
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import replace
from typing import Any, Final, Protocol, final

from ambermq.engine.commands import DeleteSnapshot, ResetHost, TakeSnapshot
from ambermq.engine.errors import EngineError
from ambermq.engine.history.past import open_past
from ambermq.engine.loop.durable_loop import DurableLoop
from ambermq.engine.model.state import EMPTY_STATE, totals_of
from ambermq.engine.model.vhost_mode import VhostMode
from ambermq.log.config import LogConfig
from ambermq.log.errors import LogError
from ambermq.log.manifest.vhost_directories import VhostDirectories, load_root
from ambermq.log.manifest.vhost_manifest import DEFAULT_VHOST, vhosts_path
from ambermq.log.recovery.recovery import Recovery, lock_path
from ambermq.log.storage.disk import DiskStorage
from ambermq.protocol.management.vhosts import VHOST_TYPE
from ambermq.tools.broker.offline_engine import ask, offline_engine
from ambermq.tools.client.broker_option import broker_of_directory, log_of_vhost
from ambermq.tools.client.broker_url import BrokerUrl
from ambermq.tools.client.link_client import LinkClient
from ambermq.tools.client.management_client import Management, RequestRefused, SnapshotManagement
from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.exit_codes import ExitCode

__all__ = ["RunningVhosts", "StoppedVhosts", "VhostBackend", "backend_of"]

_RECOVERY_SECONDS: Final = 600.0
"""Timeout of a request: an adopted log is read first, and a deleted log may be large."""


class VhostBackend(Protocol):
    """The operations on virtual hosts. All may raise ToolError and LogError."""

    def rows(self) -> list[dict[str, Any]]:
        """Return the attributes of all virtual hosts."""

    def row(self, name: str) -> Mapping[str, Any]:
        """Return the attributes of one virtual host, with its `mode`."""

    def create(self, name: str, mode: VhostMode) -> None:
        """Create an empty virtual host."""

    def reset(self, name: str) -> Mapping[str, Any]:
        """Remove all queues and messages; return the counts `queues` and `messages`."""

    def delete(self, name: str, *, force: bool) -> None:
        """Delete a virtual host; `force` closes its connections."""

    def new(self, name: str) -> AbstractContextManager[str]:
        """Yield a path that does not exist yet; the log there becomes a virtual host at the end of the block."""

    def snapshot(self, name: str) -> AbstractContextManager[tuple[str, str]]:
        """Take a snapshot; yield the directory of the log and its name, and delete it at the end of the block."""


@final
class RunningVhosts:
    """The virtual hosts of a running broker."""

    def __init__(self, url: str, directory: str | None) -> None:
        """`directory` is the broker's data directory, which a copy needs; None if it is unknown."""
        self._url = replace(BrokerUrl.parse(url), vhost="")
        self._directory = directory

    def rows(self) -> list[dict[str, Any]]:
        """See VhostBackend."""
        with LinkClient.connect(self._url) as client:
            return list(Management(client).rows(VHOST_TYPE))

    def row(self, name: str) -> Mapping[str, Any]:
        """See VhostBackend."""
        return self._request("READ", name)

    def create(self, name: str, mode: VhostMode) -> None:
        """See VhostBackend."""
        self._request("CREATE", name, body={"mode": mode.text} if mode else None)

    def reset(self, name: str) -> Mapping[str, Any]:
        """See VhostBackend."""
        return self._request("RESET", name)

    def delete(self, name: str, *, force: bool) -> None:
        """See VhostBackend."""
        self._request("DELETE", name, force=force)

    @contextmanager
    def new(self, name: str) -> Iterator[str]:
        """See VhostBackend."""
        below = vhosts_path(self._known_directory())
        directory = str(self._request("PREPARE", name)["directory"])
        path = f"{below}/{directory}"
        try:
            yield path
        except BaseException:
            shutil.rmtree(path, ignore_errors=True)
            raise
        try:
            self._request("CREATE", name, body={"directory": directory})
        except RequestRefused as refusal:
            # Below 500 the broker has certainly not adopted the files; without an answer it may have.
            if refusal.status < 500:
                shutil.rmtree(path, ignore_errors=True)
            raise

    @contextmanager
    def snapshot(self, name: str) -> Iterator[tuple[str, str]]:
        """See VhostBackend."""
        path = log_of_vhost(self._known_directory(), name)
        url = self._url if name == DEFAULT_VHOST else replace(self._url, vhost=name)
        snapshot = _snapshot_name()
        with LinkClient.connect(url) as client:
            SnapshotManagement(client).create(snapshot, waits=True)
        try:
            yield path, snapshot
        finally:
            with suppress(ToolError), LinkClient.connect(url) as client:
                SnapshotManagement(client).delete(snapshot)

    def _request(
        self, operation: str, name: str, *, body: Mapping[str, Any] | None = None, **options: Any
    ) -> dict[str, Any]:
        with LinkClient.connect(self._url) as client:
            properties = {"name": name, **options}
            return Management(client).request(operation, VHOST_TYPE, properties, body, timeout_s=_RECOVERY_SECONDS)[1]

    def _known_directory(self) -> str:
        if self._directory is None:
            advice = "give --data, the broker's directory, on the broker's machine"
            raise ToolError(
                "a copy needs the files of the broker", where=str(self._url), advice=advice, code=ExitCode.USAGE
            )
        return self._directory


@final
class StoppedVhosts:
    """The virtual hosts of a data directory without a running broker."""

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._storage = DiskStorage()
        self._is_held = False

    def rows(self) -> list[dict[str, Any]]:
        """See VhostBackend."""
        names = [DEFAULT_VHOST, *(vhost.name for vhost in load_root(self._storage, self._directory).vhosts)]
        places = ((name, log_of_vhost(self._directory, name)) for name in names)
        return [{"name": name, "mode": _mode_text(path), "directory": path} for name, path in places]

    def row(self, name: str) -> Mapping[str, Any]:
        """See VhostBackend."""
        path = log_of_vhost(self._directory, name)
        with open_past(path) as past:
            log_id = past.reader.manifest.log_id
            state = past.state_at(past.end - 1) if past.end else EMPTY_STATE
        return {"name": name, **totals_of(state), "log_id": log_id.hex(), "mode": state.mode.text, "directory": path}

    def create(self, name: str, mode: VhostMode) -> None:
        """See VhostBackend."""
        with self.new(name) as path:
            Recovery.open(self._storage, path, LogConfig(), 0).close()
            if mode:
                # The first start of an engine writes the mode to the log.
                with offline_engine(path, mode):
                    pass

    def reset(self, name: str) -> Mapping[str, Any]:
        """See VhostBackend."""
        with self._engine(name) as (engine, _):
            value: Mapping[str, Any] = ask(engine, ResetHost(object()))
            return value

    def delete(self, name: str, *, force: bool) -> None:
        """See VhostBackend."""
        del force
        with self._locked() as vhosts:
            log_of_vhost(self._directory, name)
            vhosts.remove(name)

    @contextmanager
    def new(self, name: str) -> Iterator[str]:
        """See VhostBackend."""
        with self._locked() as vhosts:
            directory = vhosts.reserve(name)
            try:
                yield vhosts.reserved_path(directory)
                vhosts.adopt(name, directory)
            except BaseException:
                vhosts.discard(directory)
                raise

    @contextmanager
    def snapshot(self, name: str) -> Iterator[tuple[str, str]]:
        """See VhostBackend."""
        with self._engine(name) as (engine, path):
            snapshot = _snapshot_name()
            ask(engine, TakeSnapshot(object(), snapshot))
            try:
                yield path, snapshot
            finally:
                with suppress(ToolError):
                    ask(engine, DeleteSnapshot(object(), snapshot))

    @contextmanager
    def _engine(self, name: str) -> Iterator[tuple[DurableLoop, str]]:
        """Open the engine of a virtual host under the lock of the data directory."""
        if name == DEFAULT_VHOST:
            # The lock of the default virtual host is that of the data directory.
            with offline_engine(self._directory) as engine:
                self._is_held = True
                try:
                    yield engine, self._directory
                finally:
                    self._is_held = False
            return
        with self._locked():
            path = log_of_vhost(self._directory, name)
            with offline_engine(path) as engine:
                yield engine, path

    @contextmanager
    def _locked(self) -> Iterator[VhostDirectories]:
        if self._is_held:
            yield VhostDirectories(self._storage, self._directory)
            return
        lock = self._storage.lock(lock_path(self._directory))
        self._is_held = True
        try:
            yield VhostDirectories(self._storage, self._directory)
        finally:
            self._is_held = False
            lock.release()


def backend_of(directory: str) -> VhostBackend:
    """Return the backend for the virtual hosts of a data directory."""
    holder = broker_of_directory(directory)
    return StoppedVhosts(directory) if holder is None else RunningVhosts(holder.local_url, directory)


def _mode_text(path: str) -> str | None:
    """Return the mode of the log in a directory; None if the log cannot be read, so that it is listed too."""
    try:
        with open_past(path) as past:
            return past.mode().text
    except (LogError, EngineError):
        return None


def _snapshot_name() -> str:
    return f"copy-{secrets.token_hex(4)}"
