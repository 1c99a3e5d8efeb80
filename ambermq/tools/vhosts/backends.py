"""Who is asked about virtual hosts: the broker that runs, or its directory when none does.

Rule 1. A running broker alone changes its virtual hosts; it is asked over `$management`. A copy is made beside it, in a
        directory that it has prepared and adopts in the end.
Rule 2. Without a broker the same is done under the lock of the data directory.
Rule 3. Whatever ends a copy leaves a whole virtual host or none: what is left over is deleted, at the latest when the
        broker starts again.
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
from ambermq.tools.broker.stopped_engine import ask, stopped_engine
from ambermq.tools.client.broker_option import holder_of, log_of_vhost
from ambermq.tools.client.broker_url import BrokerUrl
from ambermq.tools.client.link_client import LinkClient
from ambermq.tools.client.management_client import Management, RequestRefused, SnapshotManagement
from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.exit_codes import ExitCode

__all__ = ["RunningVhosts", "StoppedVhosts", "VhostBackend", "keeper_of"]

_RECOVERY_SECONDS: Final = 600.0
"""A log that is adopted is read first, and one that is deleted may be large."""


class VhostBackend(Protocol):
    """What can be asked and done about virtual hosts. All may raise ToolError and LogError."""

    def rows(self) -> list[dict[str, Any]]:
        """Return what there is to say of each."""

    def row(self, name: str) -> Mapping[str, Any]:
        """Return what there is to say of one, its `mode` among that."""

    def create(self, name: str, mode: VhostMode) -> None:
        """Make an empty one."""

    def reset(self, name: str) -> Mapping[str, Any]:
        """Empty one; return how many `queues` and `messages` it held."""

    def delete(self, name: str, *, force: bool) -> None:
        """Delete one; `force` closes its connections."""

    def new(self, name: str) -> AbstractContextManager[str]:
        """Yield a directory, which does not exist yet; the log that lies there in the end is a virtual host then."""

    def snapshot(self, name: str) -> AbstractContextManager[tuple[str, str]]:
        """Take a snapshot of one; yield the directory of its log and the snapshot's name. It goes in the end."""


@final
class RunningVhosts:
    """The virtual hosts of a broker that runs."""

    def __init__(self, url: str, directory: str | None) -> None:
        """`directory` is its data directory, which copies are made in; None where it is not known."""
        self._url = replace(BrokerUrl.parse(url), vhost="")
        self._directory = directory

    def rows(self) -> list[dict[str, Any]]:
        """See Keeper."""
        with LinkClient.connect(self._url) as client:
            return list(Management(client).rows(VHOST_TYPE))

    def row(self, name: str) -> Mapping[str, Any]:
        """See Keeper."""
        return self._ask("READ", name)

    def create(self, name: str, mode: VhostMode) -> None:
        """See Keeper."""
        self._ask("CREATE", name, body={"mode": mode.text} if mode else None)

    def reset(self, name: str) -> Mapping[str, Any]:
        """See Keeper."""
        return self._ask("RESET", name)

    def delete(self, name: str, *, force: bool) -> None:
        """See Keeper."""
        self._ask("DELETE", name, force=force)

    @contextmanager
    def new(self, name: str) -> Iterator[str]:
        """See Keeper."""
        below = vhosts_path(self._known_directory())
        directory = str(self._ask("PREPARE", name)["directory"])
        path = f"{below}/{directory}"
        try:
            yield path
        except BaseException:
            shutil.rmtree(path, ignore_errors=True)
            raise
        try:
            self._ask("CREATE", name, body={"directory": directory})
        except RequestRefused as refusal:
            # Only then are the files surely not the broker's: where no answer comes it may have taken them.
            if refusal.status < 500:
                shutil.rmtree(path, ignore_errors=True)
            raise

    @contextmanager
    def snapshot(self, name: str) -> Iterator[tuple[str, str]]:
        """See Keeper."""
        path = log_of_vhost(self._known_directory(), name)
        url = self._url if name == DEFAULT_VHOST else replace(self._url, vhost=name)
        taken = _snapshot_name()
        with LinkClient.connect(url) as client:
            SnapshotManagement(client).create(taken, waits=True)
        try:
            yield path, taken
        finally:
            with suppress(ToolError), LinkClient.connect(url) as client:
                SnapshotManagement(client).delete(taken)

    def _ask(self, operation: str, name: str, *, body: Mapping[str, Any] | None = None, **asked: Any) -> dict[str, Any]:
        with LinkClient.connect(self._url) as client:
            properties = {"name": name, **asked}
            return Management(client).request(operation, VHOST_TYPE, properties, body, timeout_s=_RECOVERY_SECONDS)[1]

    def _known_directory(self) -> str:
        if self._directory is None:
            advice = "give --data, the broker's directory, on the machine where it lies"
            raise ToolError("a copy is made of files", where=str(self._url), advice=advice, code=ExitCode.USAGE)
        return self._directory


@final
class StoppedVhosts:
    """The virtual hosts of a data directory on which no broker runs."""

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._storage = DiskStorage()
        self._is_held = False

    def rows(self) -> list[dict[str, Any]]:
        """See Keeper."""
        names = [DEFAULT_VHOST, *(vhost.name for vhost in load_root(self._storage, self._directory).vhosts)]
        places = ((name, log_of_vhost(self._directory, name)) for name in names)
        return [{"name": name, "mode": _mode_text(path), "directory": path} for name, path in places]

    def row(self, name: str) -> Mapping[str, Any]:
        """See Keeper."""
        path = log_of_vhost(self._directory, name)
        with open_past(path) as past:
            log_id = past.reader.manifest.log_id
            state = past.state_at(past.end - 1) if past.end else EMPTY_STATE
        return {"name": name, **totals_of(state), "log_id": log_id.hex(), "mode": state.mode.text, "directory": path}

    def create(self, name: str, mode: VhostMode) -> None:
        """See Keeper."""
        with self.new(name) as path:
            Recovery.open(self._storage, path, LogConfig(), 0).close()
            if mode:
                # What it is, its first start says.
                with stopped_engine(path, mode):
                    pass

    def reset(self, name: str) -> Mapping[str, Any]:
        """See Keeper."""
        with self._engine(name) as (engine, _):
            value: Mapping[str, Any] = ask(engine, ResetHost(object()))
            return value

    def delete(self, name: str, *, force: bool) -> None:
        """See Keeper."""
        del force
        with self._locked() as vhosts:
            log_of_vhost(self._directory, name)
            vhosts.remove(name)

    @contextmanager
    def new(self, name: str) -> Iterator[str]:
        """See Keeper."""
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
        """See Keeper."""
        with self._engine(name) as (engine, path):
            taken = _snapshot_name()
            ask(engine, TakeSnapshot(object(), taken))
            try:
                yield path, taken
            finally:
                with suppress(ToolError):
                    ask(engine, DeleteSnapshot(object(), taken))

    @contextmanager
    def _engine(self, name: str) -> Iterator[tuple[DurableLoop, str]]:
        """Open a virtual host's engine, with the data directory locked."""
        if name == DEFAULT_VHOST:
            # Its lock is that of the data directory.
            with stopped_engine(self._directory) as engine:
                self._is_held = True
                try:
                    yield engine, self._directory
                finally:
                    self._is_held = False
            return
        with self._locked():
            path = log_of_vhost(self._directory, name)
            with stopped_engine(path) as engine:
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


def keeper_of(directory: str) -> VhostBackend:
    """Return who is asked about the virtual hosts of a data directory."""
    holder = holder_of(directory)
    return StoppedVhosts(directory) if holder is None else RunningVhosts(holder.url, directory)


def _mode_text(path: str) -> str | None:
    """Return the mode of the log in a directory; None where the log cannot be read: it is listed all the same."""
    try:
        with open_past(path) as past:
            return past.mode().text
    except (LogError, EngineError):
        return None


def _snapshot_name() -> str:
    return f"copy-{secrets.token_hex(4)}"
