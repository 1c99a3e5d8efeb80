"""The attributes of a virtual host are counted in parts, in one state."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from ambermq.engine.commands import DeclareQueue
from ambermq.engine.settings.queue_settings import Settings
from ambermq.protocol.server.vhosts import lifecycle
from tests.engine.rig import Rig


def test_the_queues_of_a_virtual_host_are_counted_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two in a turn here; a message that is published meanwhile does not count."""
    monkeypatch.setattr(lifecycle, "_COUNTED_MAX", 2)
    rig = Rig()
    for number in range(5):
        rig.do(DeclareQueue("key", f"q{number}", Settings()))
        rig.do(rig.publish(rig.producer(f"q{number}"), b"m"))
    host: Any = SimpleNamespace(name="default", engine=rig.loop, gateway=SimpleNamespace(peers=[]))
    turns = 0

    async def count() -> dict[str, Any]:
        nonlocal turns
        counting = asyncio.ensure_future(lifecycle._attributes(host))
        while not counting.done():
            turns += 1
            await asyncio.sleep(0)
            rig.do(rig.publish(rig.producer("q4"), b"later"))
        return await counting

    found = asyncio.run(count())
    assert (found["queues"], found["messages"]) == (5, 5)
    assert turns >= 3
