"""The logs and engines of all virtual hosts: recovered at the start, created and deleted while the broker serves.

Rule 1. The default virtual host is recovered first, because its lock is that of the whole data directory.
Rule 2. The start fails if the log of any virtual host cannot be recovered. A broker that serves only some of them would
        hide the messages of the others.
Rule 3. The lock file of each log has the broker's URL, so that commands find the broker.
"""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Final, final

import structlog

from ambermq.engine.history.background_queries import BackgroundQueries
from ambermq.engine.loop.recovery import recover
from ambermq.engine.model.vhost_mode import VhostMode
from ambermq.log.compaction.job import sweep_jobs
from ambermq.log.errors import DamageError, LogError, LogFailed
from ambermq.log.manifest.vhost_directories import VhostDirectories
from ambermq.log.manifest.vhost_manifest import DEFAULT_VHOST
from ambermq.log.recovery.recovery import Recovery
from ambermq.log.storage.disk import DiskStorage
from ambermq.log.storage.worker_threads import ThreadWorkers
from ambermq.log.write.ballast import Ballast, ballast_path
from ambermq.log.write.housekeeping import NO_SPACE
from ambermq.protocol.gateway.links.routing_fields import RoutingFields
from ambermq.protocol.server.vhosts.services import VhostServices
from ambermq.tools.broker.file_modes import restrict_modes
from ambermq.tools.broker.http.lock_watch import LockWatch
from ambermq.tools.broker.new_files import new_files_removed
from ambermq.tools.client.broker_option import write_holder
from ambermq.tools.client.broker_url import vhost_path
from ambermq.tools.config.log_facts import history_bytes
from ambermq.tools.config.settings import Settings
from ambermq.tools.terminal.errors import ToolError, has_disk_advice

__all__ = ["VhostStore"]

_PROGRESS_SECONDS: Final = 0.5


@final
class VhostStore:
    """The virtual hosts of a broker's data directory; one call at a time, from any thread."""

    def __init__(self, directory: str, settings: Settings) -> None:
        """`recover` creates `directory` if it is missing."""
        self._directory = directory
        self._settings = settings
        self._storage = DiskStorage()
        self._url = self._socket = ""
        self._vhosts: VhostDirectories
        self._ballast: Ballast
        self.services: dict[str, VhostServices] = {}
        """The open virtual hosts by name."""
        self.scanned = (0, 0)
        """The bytes of a log that its recovery has read, and the bytes that it reads."""

    def reconfigure(self, settings: Settings) -> None:
        """Use other settings for the figures, and for the virtual hosts that are opened from now on."""
        self._settings = settings

    def recover(self) -> None:
        """Open all virtual hosts; raise LogError, EngineError or ToolError after closing those that were open."""
        with new_files_removed(self._directory):
            try:
                self._storage.makedirs(self._directory)
            except OSError as error:
                if has_disk_advice(error):
                    raise LogFailed(f"{self._directory} cannot be created: {error}") from error
                where, found = self._directory, str(error.strerror)
                advice = "name another directory with --data"
                raise ToolError("the directory cannot be created", where=where, found=found, advice=advice) from error
            self._open_all()

    def _open_all(self) -> None:
        with ExitStack() as stack:
            stack.callback(self.close)
            with _translate_os_errors(self._directory):
                self._ballast = Ballast(self._storage, self._directory, self._settings.log.ballast_bytes)
            self.services[DEFAULT_VHOST] = self._open(DEFAULT_VHOST, self._directory)
            # Under the lock of the directory, which the log of the default virtual host holds.
            restrict_modes(self._directory)
            self._vhosts = VhostDirectories(self._storage, self._directory)
            self._vhosts.sweep()
            for name in self._vhosts.unknown():
                structlog.get_logger().warning("unknown directory", directory=f"{self._directory}/vhosts/{name}")
            for name in self._vhosts.names()[1:]:
                # A missing log is an error here: recovery would create an empty one, as for a new broker.
                self._vhosts.check_log(name)
                self.services[name] = self._open(name, self._path(name))
            stack.pop_all()

    def announce(self, url: str, socket: str) -> None:
        """Write process id, URL and unix socket of the broker to the lock files."""
        self._url, self._socket = url, socket
        for name in self._vhosts.names():
            self._announce(name, self._path(name))

    def close(self) -> None:
        """Close all logs; then raise LogFailed if the last writes of one of them failed."""
        with ExitStack() as stack:
            for services in self.services.values():
                stack.callback(services.close)

    def prepare(self, name: str) -> str:
        """See Vhosts."""
        prepared = self._vhosts.root.removed
        for directory in prepared[: max(0, len(prepared) + 1 - self._settings.server.vhosts_max)]:
            self._vhosts.discard(directory)
        return self._vhosts.reserve(name)

    def create(self, name: str, mode: VhostMode) -> VhostServices:
        """See Vhosts."""
        directory = self._vhosts.reserve(name)
        Recovery.open(self._storage, self._vhosts.reserved_path(directory), self._settings.log, _now_us()).close()
        return self._adopt(name, directory, mode)

    def adopt(self, name: str, directory: str) -> VhostServices:
        """See Vhosts."""
        return self._adopt(name, directory, VhostMode.AUTOMATIC)

    def _adopt(self, name: str, directory: str, mode: VhostMode) -> VhostServices:
        """Open the log in a directory and add it as a virtual host; its start and its mode are durable before that."""
        path = self._vhosts.prepared_path(name, directory)
        services = self._open(name, path, mode)
        try:
            self._vhosts.adopt(name, directory)
            self._announce(name, path)
        except BaseException:
            services.close()
            raise
        self.services[name] = services
        return services

    def delete(self, name: str, services: VhostServices) -> None:
        """See Vhosts."""
        # The log is deleted, so a failure of its last writes does not matter.
        with suppress(LogFailed):
            services.close()
        self.services.pop(name, None)
        self._vhosts.remove(name)

    def _path(self, name: str) -> str:
        path = self._vhosts.path_of(name)
        assert path is not None
        return path

    def _announce(self, name: str, path: str) -> None:
        if self._url:
            url = self._url if name == DEFAULT_VHOST else f"{self._url}{vhost_path(name)}"
            try:
                self._write_holder(path, url)
            except OSError as error:
                reason = f"{error}: commands find the broker by --url, not by --data"
                structlog.get_logger().warning("lock file not written", vhost=name, reason=reason)

    def _write_holder(self, path: str, url: str) -> None:
        try:
            write_holder(path, os.getpid(), url, self._socket)
        except OSError as error:
            if error.errno not in NO_SPACE or not self._ballast.release():
                raise
            write_holder(path, os.getpid(), url, self._socket)

    def _open(self, name: str, path: str, mode: VhostMode = VhostMode.AUTOMATIC) -> VhostServices:
        began, now_us = time.monotonic(), _now_us()
        settings = self._settings
        recovery = Recovery.open(self._storage, path, settings.log, now_us, progress=_Progress(name, path, self))
        if path != self._directory:
            # Version 0.1 had a ballast for each virtual host.
            with suppress(OSError):
                self._storage.unlink(ballast_path(path))
        for job in sweep_jobs(self._storage, path):
            structlog.get_logger().info("compaction leftovers removed", vhost=name, job=job)
        try:
            engine = recover(
                recovery,
                settings.engine,
                now_us,
                report=_warn_of_snapshot,
                fields_of=RoutingFields,
                mode=mode,
                clock_ns=time.monotonic_ns,
                ballast=self._ballast,
            )
        except BaseException:
            recovery.close()
            raise
        recovery_s = time.monotonic() - began
        structlog.get_logger().info(
            "recovered",
            vhost=name,
            data=path,
            bytes=recovery.total_bytes,
            queues=len(engine.state.queues),
            seconds=round(recovery_s, 3),
        )
        queries = BackgroundQueries(
            ThreadWorkers(has_kernel_sync=False),
            path,
            settings.log,
            past_jobs_max=settings.server.past_jobs_max,
            past_waiting_max=settings.server.past_waiting_max,
        )
        log = engine.log
        figures: dict[str, Callable[[], object]] = {
            "is_fenced": LockWatch(path).is_fenced,
            "recovery_us": lambda: int(recovery_s * 1_000_000),
            "history_bytes": lambda: history_bytes(log.manifest),
            "room_bytes_min": lambda: self._settings.retention.room_min(log.disk_bytes),
        }
        return VhostServices(engine, queries, figures)


class _Progress:
    """Logs the progress of a recovery periodically."""

    def __init__(self, name: str, directory: str, store: VhostStore | None = None) -> None:
        self._store = store
        self._name = name
        self._directory = directory
        self._next = time.monotonic() + _PROGRESS_SECONDS

    def __call__(self, scanned_bytes: int, total_bytes: int) -> None:
        """Log the progress if enough time has passed since the last line."""
        if self._store is not None:
            self._store.scanned = scanned_bytes, total_bytes
        now = time.monotonic()
        if now >= self._next:
            self._next = now + _PROGRESS_SECONDS
            percent = 100 * scanned_bytes // max(total_bytes, 1)
            structlog.get_logger().info(
                "recovering",
                vhost=self._name,
                data=self._directory,
                percent=percent,
                bytes=scanned_bytes,
                total_bytes=total_bytes,
            )


def _warn_of_snapshot(fault: LogError) -> None:
    """Log the fault of a snapshot; recovery uses an older one, or the whole log."""
    if isinstance(fault, DamageError):
        values = {"file": fault.file, "position": fault.position, "expected": fault.expected, "found": fault.found}
    else:
        values = {"reason": str(fault)}
    structlog.get_logger().warning("snapshot skipped", **values)


@contextmanager
def _translate_os_errors(directory: str) -> Iterator[None]:
    """Raise LogFailed for an OSError: the disk of the data directory fails."""
    try:
        yield
    except OSError as error:
        raise LogFailed(f"{directory}: {error}") from error


def _now_us() -> int:
    return time.time_ns() // 1000
