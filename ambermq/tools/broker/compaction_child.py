"""Automatic compaction and retention: the broker runs `ambermq log compact` as a child process.

Rule 1. One child runs at a time for all virtual hosts. The broker ends it when it stops; only the child's work is lost.
Rule 2. Retention runs before compaction, because the deletion of whole segments needs no free space.
Rule 3. The child logs in with a one-time token from an inherited pipe, so no environment and no argument list has it.
The token allows one connection, to one virtual host, for the management of snapshots and compactions only.
"""

import asyncio
import os
import time
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Final, final

import structlog

from ambermq.engine.compaction.plan import oldest_requested
from ambermq.engine.loop.durable_loop import DurableLoop
from ambermq.protocol.auth.identity import ManagementScope
from ambermq.protocol.management.compactions import COMPACTION_TYPE
from ambermq.protocol.management.snapshots import SNAPSHOT_TYPE
from ambermq.protocol.server.vhosts.services import CompactionActivity, VhostServices
from ambermq.tools.broker.one_time_tokens import OneTimeTokens
from ambermq.tools.client.token_option import TOKEN_OPTION
from ambermq.tools.config.compaction_schedule import Schedule
from ambermq.tools.config.log_facts import facts_of
from ambermq.tools.config.retention_schedule import RetentionSchedule
from ambermq.tools.config.settings import Settings
from ambermq.tools.terminal.child_command import child_command
from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.progress import parse_progress

__all__ = ["CompactionStarter"]

_CHECK_SECONDS: Final = 1.0
"""Between two checks; short, since a disk fills up fast."""
_PART_BYTES: Final = 65_536
_STOP_SECONDS: Final = 10.0
_ERROR_CHARACTERS_MAX: Final = 1000
"""Of the child's standard error, for one log line."""
_TYPES: Final = frozenset({COMPACTION_TYPE, SNAPSHOT_TYPE})
"""The management types that a compaction uses."""


@final
class CompactionStarter:
    """Checks each virtual host periodically, and starts retention and compaction when they are due."""

    def __init__(
        self,
        directory: str,
        settings: Settings,
        tokens: OneTimeTokens,
        services: Mapping[str, VhostServices],
        *,
        grace_s: float = 0.0,
    ) -> None:
        """`directory` is the data directory, `tokens` those of the server, `services` its virtual hosts by name.

        For `grace_s` from now on no history is deleted because of free disk space alone.
        """
        self._directory = directory
        self._settings = settings
        self._tokens = tokens
        self._services = services
        self._schedules: dict[str, tuple[RetentionSchedule, Schedule]] = {}
        self._due_s: dict[str, float] = {}
        self._grace_end_s = time.monotonic() + grace_s
        self._warned: set[str] = set()
        """The virtual hosts whose disk was reported as filling up, until it has room again."""

    def reconfigure(self, settings: Settings) -> None:
        """Use other schedules from the next check on; a child that runs goes on."""
        self._settings = settings
        self._due_s.clear()
        for retention, compaction in self._schedules.values():
            retention.reconfigure(settings.retention)
            compaction.reconfigure(settings.compaction)

    async def run(self) -> None:
        """Check the virtual hosts until the task is cancelled."""
        while True:
            is_on = self._settings.retention.is_on or self._settings.compaction.is_on
            # A reload may turn the schedules on.
            for name, services in list(self._services.items()) if is_on else []:
                self._warn_of_room(name, services.engine)
                if self._is_due(name, services.engine):
                    await self._check(name, services.engine)
            await asyncio.sleep(_CHECK_SECONDS)

    def _is_due(self, name: str, engine: DurableLoop) -> bool:
        """Return whether a log is due for a check: each `check_s`, and always while its disk is nearly full."""
        if time.monotonic() >= self._due_s.get(name, 0.0):
            return True
        log = engine.log
        return log.room_bytes() < self._settings.retention.room_min(log.disk_bytes)

    def _warn_of_room(self, name: str, engine: DurableLoop) -> None:
        """Warn when the free space falls below twice the minimum, well before history is deleted."""
        log, retention = engine.log, self._settings.retention
        room_bytes, room_min = log.room_bytes(), retention.room_min(log.disk_bytes)
        if room_bytes >= 2 * room_min:
            if room_bytes >= 2 * room_min + room_min // 10:
                self._warned.discard(name)
            if engine.room_keeper:
                engine.room_keeper = ""
            return
        if name not in self._warned:
            self._warned.add(name)
            then = "the oldest history without live messages is deleted" if retention.by_room else "nothing is deleted"
            structlog.get_logger().warning(
                "disk fills up", vhost=name, room_bytes=room_bytes, room_bytes_min=room_min, below_the_minimum=then
            )

    async def _check(self, name: str, engine: DurableLoop) -> None:
        self._due_s[name] = time.monotonic() + self._settings.compaction.check_s
        if name not in self._schedules:
            now_s, settings = time.monotonic(), self._settings
            grace_s = max(0.0, self._grace_end_s - now_s)
            retention = RetentionSchedule(settings.retention, now_s, grace_s=grace_s)
            self._schedules[name] = retention, Schedule(settings.compaction, now_s)
        retention, compaction = self._schedules[name]
        await self._retain_if_due(retention, name, engine)
        await self._run_if_due(compaction, name, engine, self._settings.compaction.arguments())

    async def _retain_if_due(self, schedule: RetentionSchedule, name: str, engine: DurableLoop) -> None:
        """Run retention if its schedule has a reason; for free space it deletes as much as is needed."""
        now_s, facts = time.monotonic(), facts_of(engine)
        reason = schedule.reason(now_s, facts)
        if not reason:
            return
        kept_bytes = schedule.kept_bytes(now_s, facts) if reason == "room" else None
        await self._compact(name, reason, self._settings.retention.arguments(kept_bytes=kept_bytes))
        after = facts_of(engine)
        schedule.ended(time.monotonic(), after, kept_bytes=kept_bytes)
        keeper = oldest_requested(engine.log.manifest)
        is_kept = keeper is not None and after.room_bytes < self._settings.retention.room_min(after.disk_bytes)
        engine.room_keeper = keeper.name if keeper is not None and is_kept else ""

    async def _run_if_due(self, schedule: Schedule, name: str, engine: DurableLoop, options: Sequence[str]) -> None:
        """Run a compaction if its schedule has a reason for one."""
        reason = schedule.reason(time.monotonic(), facts_of(engine))
        if reason:
            await self._compact(name, reason, options)
            schedule.ended(time.monotonic(), facts_of(engine))

    async def _compact(self, name: str, reason: str, options: Sequence[str]) -> None:
        log = structlog.get_logger().bind(vhost=name, reason=reason)
        log.info("compaction started", options=" ".join(options))
        token = self._tokens.issue(ManagementScope(name, _TYPES))
        services = self._services.get(name)
        activity = CompactionActivity() if services is None else services.compactions
        activity.is_running = True
        try:
            process = await self._start(name, token, options)
            error_text = await _error_text(process, activity)
        except (OSError, ToolError) as error:
            activity.failed += 1
            log.warning("compaction failed", error=str(error))
            return
        finally:
            activity.is_running, activity.stage, activity.percent = False, "", 0
            self._tokens.revoke(token)
        if process.returncode:
            activity.failed += 1
            log.warning("compaction failed", exit_code=process.returncode, error=error_text[-_ERROR_CHARACTERS_MAX:])
        else:
            log.info("compaction finished")

    async def _start(self, name: str, token: str, options: Sequence[str]) -> Process:
        """Start the child; raise OSError, or ToolError if PYTHONPATH has another package `ambermq`."""
        with _pipe_with(token) as fd:
            target = ("--data", self._directory, "--vhost", name, TOKEN_OPTION, str(fd))
            command = child_command("log", "compact", *target, "--output", "json", *options)
            return await asyncio.create_subprocess_exec(
                *command, stdin=DEVNULL, stdout=PIPE, stderr=PIPE, pass_fds=(fd,)
            )


@contextmanager
def _pipe_with(token: str) -> Iterator[int]:
    """Yield the read end of a pipe that holds the token and then ends."""
    read_fd, write_fd = os.pipe()
    try:
        try:
            os.write(write_fd, token.encode())
        finally:
            os.close(write_fd)
        yield read_fd
    finally:
        os.close(read_fd)


async def _error_text(process: Process, activity: CompactionActivity) -> str:
    """Return the end of a child's standard error after its end; end the child if this task is cancelled.

    Meanwhile note the progress that the child prints.
    """
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        _, written, _ = await asyncio.gather(
            _follow(process.stdout, activity), _last_bytes(process.stderr), process.wait()
        )
    except asyncio.CancelledError:
        await _end(process)
        raise
    return written.decode(errors="replace")


async def _follow(lines: asyncio.StreamReader, activity: CompactionActivity) -> None:
    rest = b""
    while part := await lines.read(_PART_BYTES):
        *whole, rest = (rest + part).split(b"\n")
        rest = rest[-_PART_BYTES:]
        for found in filter(None, map(parse_progress, whole)):
            activity.stage, activity.percent = found


async def _last_bytes(stream: asyncio.StreamReader) -> bytes:
    written = b""
    while part := await stream.read(_PART_BYTES):
        written = (written + part)[-_PART_BYTES:]
    return written


async def _end(process: Process) -> None:
    with suppress(ProcessLookupError):
        process.terminate()
        try:
            await asyncio.wait_for(process.wait(), _STOP_SECONDS)
        except TimeoutError:
            process.kill()
            await process.wait()
