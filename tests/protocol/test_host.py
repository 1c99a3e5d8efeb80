"""A virtual host in its event loop: what its engine wants is done, though nobody comes."""

import asyncio
from types import SimpleNamespace
from typing import Any

from engine.beside import Beside
from log.worker import InlineWorkers
from protocol.host import Ground, Host
from protocol.server_limits import ServerLimits
from tests.engine.rig import Rig
from tests.log.lives import DIRECTORY

_HANGS_S = 60


def host_of(rig: Rig) -> Host:
    """A host of an engine by whose clock it goes."""
    server: Any = SimpleNamespace(server_limits=ServerLimits(), hosting=None, sockets={}, now_us=lambda: rig.now_us)
    beside = Beside(InlineWorkers(), DIRECTORY, rig.loop.log.config, past_jobs_max=1, past_waiting_max=1)
    ground = Ground(rig.loop, beside)
    return Host(server, "default", ground, container_id="broker", may_read_log=lambda _: False)


def test_the_deadline_that_the_start_has_left_is_kept() -> None:
    """Nobody connects and no thread tells anything: the log carries its durable end, for who reads it beside."""
    rig = Rig()
    assert not rig.loop.log.is_marked

    async def serve() -> None:
        host = host_of(rig)
        rig.now_us = rig.loop.deadline_us
        host.start()
        async with asyncio.timeout(_HANGS_S):
            while not rig.loop.log.is_marked:  # noqa: ASYNC110 - no event tells of a mark
                await asyncio.sleep(0.001)
        host.end()

    asyncio.run(serve())
