"""Compactions that the broker starts by itself, some of whole segments alone: the same command, as a child process.

Rule 1. One at a time for all virtual hosts; a broker that stops ends it, which costs nothing but its work. Whole
segments go before anything is rewritten: that needs no room.
Rule 2. The child logs in by a one-time token, which it reads from an inherited pipe: it stands in no environment and in
no argument list. The token is good for one connection, to the virtual host that is compacted, and for the management of
snapshots and compactions alone.
"""

import asyncio
import os
import time
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Final, final

import structlog

from ambermq.engine.loop.durable_loop import DurableLoop
from ambermq.protocol.gateway.identity import ManagementScope
from ambermq.protocol.management.compactions import COMPACTION_TYPE
from ambermq.protocol.management.snapshots import SNAPSHOT_TYPE
from ambermq.protocol.server.vhost_runner import VhostServices
from ambermq.tools.broker.one_time_tokens import OneTimeTokens
from ambermq.tools.client.token_option import TOKEN_OPTION
from ambermq.tools.config.compaction_schedule import Schedule
from ambermq.tools.config.log_facts import facts_of
from ambermq.tools.config.retention_schedule import RetentionSchedule
from ambermq.tools.config.settings import Settings
from ambermq.tools.terminal.child_command import child_command
from ambermq.tools.terminal.errors import ToolError

__all__ = ["CompactionStarter"]

_LOOK_SECONDS: Final = 1.0
"""A disk fills up fast."""
_STOP_SECONDS: Final = 10.0
_TOLD_BYTES_MAX: Final = 1000
_TYPES: Final = frozenset({COMPACTION_TYPE, SNAPSHOT_TYPE})
"""The management types that a compaction needs."""


@final
class CompactionStarter:
    """Looks at each virtual host now and then, and starts what is due."""

    def __init__(
        self, directory: str, settings: Settings, tokens: OneTimeTokens, grounds: Mapping[str, VhostServices]
    ) -> None:
        """`directory` is the data directory, `tokens` what the server lets in, `grounds` what it serves by now."""
        self._directory = directory
        self._settings = settings
        self._tokens = tokens
        self._grounds = grounds
        self._schedules: dict[str, tuple[RetentionSchedule, Schedule]] = {}
        self._due_s: dict[str, float] = {}

    async def run(self) -> None:
        """Go on until cancelled."""
        while self._settings.retention.is_on or self._settings.compaction.is_on:
            for name, ground in list(self._grounds.items()):
                if self._is_due(name, ground.engine):
                    await self._look_at(name, ground.engine)
            await asyncio.sleep(_LOOK_SECONDS)

    def _is_due(self, name: str, engine: DurableLoop) -> bool:
        """Whether to look at a log again: now and then, and all the time where its disk fills up."""
        if time.monotonic() >= self._due_s.get(name, 0.0):
            return True
        return engine.log.room_bytes() < self._settings.retention.room_bytes_min

    async def _look_at(self, name: str, engine: DurableLoop) -> None:
        self._due_s[name] = time.monotonic() + self._settings.compaction.check_s
        if name not in self._schedules:
            now_s, settings = time.monotonic(), self._settings
            self._schedules[name] = RetentionSchedule(settings.retention, now_s), Schedule(settings.compaction, now_s)
        retention, compaction = self._schedules[name]
        await self._obey(retention, name, engine, self._settings.retention.arguments())
        await self._obey(compaction, name, engine, self._settings.compaction.arguments())

    async def _obey(
        self, schedule: RetentionSchedule | Schedule, name: str, engine: DurableLoop, options: Sequence[str]
    ) -> None:
        """Do what a schedule says, if it is anything."""
        reason = schedule.reason(time.monotonic(), facts_of(engine))
        if reason:
            await self._compact(name, reason, options)
            schedule.ended(time.monotonic(), facts_of(engine))

    async def _compact(self, name: str, reason: str, options: Sequence[str]) -> None:
        log = structlog.get_logger().bind(vhost=name, reason=reason)
        log.info("compacting", options=" ".join(options))
        token = self._tokens.issue(ManagementScope(name, _TYPES))
        try:
            process = await self._start(name, token, options)
            told = await _told_by(process)
        except (OSError, ToolError) as error:
            log.warning("no compaction", said=str(error))
            return
        finally:
            self._tokens.revoke(token)
        if process.returncode:
            log.warning("no compaction", code=process.returncode, said=told.decode(errors="replace")[-_TOLD_BYTES_MAX:])
        else:
            log.info("compacted")

    async def _start(self, name: str, token: str, options: Sequence[str]) -> Process:
        """Start the child; raises OSError, and ToolError where it would run another package than ours."""
        with _pipe_with(token) as fd:
            place = ("--data", self._directory, "--vhost", name, TOKEN_OPTION, str(fd))
            command = child_command("log", "compact", *place, "--output", "json", *options)
            return await asyncio.create_subprocess_exec(
                *command, stdin=DEVNULL, stdout=DEVNULL, stderr=PIPE, pass_fds=(fd,)
            )


@contextmanager
def _pipe_with(token: str) -> Iterator[int]:
    """Yield a descriptor from which a child reads the token and then the end."""
    reading, writing = os.pipe()
    try:
        try:
            os.write(writing, token.encode())
        finally:
            os.close(writing)
        yield reading
    finally:
        os.close(reading)


async def _told_by(process: Process) -> bytes:
    """Wait for the end of a child and return what it has written; end it where the broker stops."""
    try:
        _, told = await process.communicate()
    except asyncio.CancelledError:
        await _end(process)
        raise
    return told


async def _end(process: Process) -> None:
    with suppress(ProcessLookupError):
        process.terminate()
        try:
            await asyncio.wait_for(process.wait(), _STOP_SECONDS)
        except TimeoutError:
            process.kill()
            await process.wait()
