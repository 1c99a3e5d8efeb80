"""Compactions that the broker starts by itself, some of whole segments alone: the same command, as a child process.

Rule 1. One at a time for all virtual hosts; a broker that stops ends it, which costs nothing but its work. Whole
segments go before anything is rewritten: that needs no room.
Rule 2. Where users are configured the child comes in as one of them: name and password stand in its environment alone,
which nobody but this user of the machine can read.
"""

import asyncio
import os
import sys
import time
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final, final

import structlog

from ambermq.engine.loop.durable_loop import DurableLoop
from ambermq.protocol.server.vhost_runner import VhostServices
from ambermq.tools.client.broker_option import COMPACT_URL_VARIABLE
from ambermq.tools.client.broker_url import BrokerUrl
from ambermq.tools.config.compaction_schedule import Schedule
from ambermq.tools.config.log_facts import facts_of
from ambermq.tools.config.retention_schedule import RetentionSchedule
from ambermq.tools.config.settings import Settings

__all__ = ["CompactionStarter"]

_LOOK_SECONDS: Final = 1.0
"""A disk fills up fast."""
_STOP_SECONDS: Final = 10.0
_TOLD_BYTES_MAX: Final = 1000


@final
class CompactionStarter:
    """Looks at each virtual host now and then, and starts what is due."""

    def __init__(
        self, directory: str, settings: Settings, url: BrokerUrl, grounds: Mapping[str, VhostServices]
    ) -> None:
        """`directory` is the data directory, `url` where the broker listens, `grounds` what it serves by now."""
        self._directory = directory
        self._settings = settings
        self._url = url
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
        arguments = ["-m", "ambermq", "log", "compact", "--data", self._directory, "--vhost", name, "--output", "json"]
        try:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                *arguments,
                *options,
                stdin=DEVNULL,
                stdout=DEVNULL,
                stderr=PIPE,
                env=self._environment(),
            )
        except OSError as error:
            log.warning("no compaction", said=str(error))
            return
        try:
            _, told = await process.communicate()
        except asyncio.CancelledError:
            await _end(process)
            raise
        if process.returncode:
            log.warning("no compaction", code=process.returncode, said=told.decode(errors="replace")[-_TOLD_BYTES_MAX:])
        else:
            log.info("compacted")

    def _environment(self) -> dict[str, str]:
        users = self._settings.users
        if not users:
            return dict(os.environ)
        name = next(iter(users))
        return os.environ | {COMPACT_URL_VARIABLE: self._url.with_user(name, users[name])}


async def _end(process: Process) -> None:
    with suppress(ProcessLookupError):
        process.terminate()
        try:
            await asyncio.wait_for(process.wait(), _STOP_SECONDS)
        except TimeoutError:
            process.kill()
            await process.wait()
