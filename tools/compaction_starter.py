"""Compactions that the broker starts by itself: the same command, as a child process.

Rule 1. One at a time for all virtual hosts; a broker that stops ends it, which costs nothing but its work.
Rule 2. Where users are configured the child comes in as one of them: name and password stand in its environment alone,
which nobody but this user of the machine can read.
"""

import asyncio
import os
import sys
import time
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Mapping
from contextlib import suppress
from typing import Final, final

import structlog

from engine.durable import DurableLoop
from log.log import Log
from protocol.host import Ground
from tools.broker_url import BrokerUrl
from tools.compaction_schedule import Schedule
from tools.settings import Settings
from tools.target import COMPACT_URL_VARIABLE

__all__ = ["CompactionStarter"]

_STOP_SECONDS: Final = 10.0
_TOLD_BYTES_MAX: Final = 1000


@final
class CompactionStarter:
    """Looks at each virtual host now and then, and starts what is due."""

    def __init__(self, directory: str, settings: Settings, url: BrokerUrl, grounds: Mapping[str, Ground]) -> None:
        """`directory` is the data directory, `url` where the broker listens, `grounds` what it serves by now."""
        self._directory = directory
        self._settings = settings
        self._url = url
        self._grounds = grounds
        self._schedules: dict[str, Schedule] = {}

    async def run(self) -> None:
        """Go on until cancelled."""
        config = self._settings.compaction
        while config.is_on:
            for name, ground in list(self._grounds.items()):
                await self._look_at(name, ground.engine)
            await asyncio.sleep(config.check_s)

    async def _look_at(self, name: str, engine: DurableLoop) -> None:
        schedule = self._schedules.get(name)
        if schedule is None:
            schedule = self._schedules[name] = Schedule(self._settings.compaction, time.monotonic())
        reason = schedule.reason(time.monotonic(), log_bytes=_log_bytes(engine.log), live_bytes=_live_bytes(engine))
        if reason:
            await self._compact(name, reason)
            schedule.ended(time.monotonic(), log_bytes=_log_bytes(engine.log), live_bytes=_live_bytes(engine))

    async def _compact(self, name: str, reason: str) -> None:
        log = structlog.get_logger().bind(vhost=name, reason=reason)
        log.info("compacting")
        arguments = ["-m", "tools", "log", "compact", "--data", self._directory, "--vhost", name, "--output", "json"]
        try:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                *arguments,
                *self._settings.compaction.arguments(),
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


def _log_bytes(log: Log) -> int:
    return sum(one.size for one in log.manifest.sealed)


def _live_bytes(engine: DurableLoop) -> int:
    return sum(queue.size for queue in engine.state.queues.values())
