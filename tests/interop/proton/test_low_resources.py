"""A resource that runs low: producers stop and continue by themselves, consumers drain, and nothing is lost."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Final

import pytest
from proton import Delivery, Message

from ambermq.protocol.amqp10.performatives.classes import Begin, Flow
from ambermq.protocol.amqp10.types.values import Symbol
from ambermq.tools.broker.child_broker import ChildBroker
from tests.interop.conftest import Connect, StartBroker
from tests.interop.proton_peer import Manager
from tests.protocol.peers import Wire
from tests.protocol.tcp import TcpWire

_BEFORE: Final = 40
_DURING: Final = 60
_COUNT: Final = 30
_BLOCKED: Final = Symbol("ambermq:blocked")


def reload(broker: ChildBroker, text: str) -> None:
    """Change the configuration of a running broker."""
    (config,) = (Path(argument) for argument in broker._arguments if argument.endswith(".toml"))
    config.write_text(text)
    os.kill(broker.pid, signal.SIGHUP)


def figures_when(manager: Manager, low: list[str]) -> dict[str, Any]:
    """Return the figures of the broker once these resources are low, or what they are after some seconds."""
    end = time.monotonic() + 20
    while True:
        figures: dict[str, Any] = manager.ask("READ", type="org.ambermq.broker").body
        if figures["resources_low"] == low or time.monotonic() > end:
            return figures
        time.sleep(0.1)


@pytest.mark.parametrize(
    ("mark", "resource", "blocked", "health", "is_low"),
    [
        (f"room_low_bytes = {1 << 60}", "disk", "disk", "room", "room_is_low"),
        ("process_memory_high_bytes = 1", "process-memory", "memory", "memory", "process_memory_is_low"),
        (f"descriptors_free_low = {1 << 30}", "descriptors", "descriptors", "descriptors", "descriptors_are_low"),
    ],
)
def test_producers_stop_and_continue(
    start_broker: StartBroker, connect: Connect, mark: str, resource: str, blocked: str, health: str, is_low: str
) -> None:
    """A reload sets the mark of one resource out of reach, and later back.

    Meanwhile the windows are closed, new links get no credit, and what was sent before is received and settled. What
    a producer sends with credit that it has waits in its library, and arrives afterwards.
    """
    broker = start_broker("--log-format", "json", config="")
    old, manager = connect(broker.url), Manager(connect(broker.url))
    sender = old.sender("q")
    sender.send(*map(str, range(_BEFORE)))
    assert figures_when(manager, [])["health"] == "ready"
    with TcpWire.begun(broker.url) as wire:
        reload(broker, f"[server]\n{mark}\n")
        while wire.expect(Flow).incoming_window:
            pass
        figures = figures_when(manager, [resource])
        assert (figures["resources_low"], figures["blocked"], figures[is_low]) == ([resource], blocked, True)
        assert figures["health"] == health
        waiting = [sender.put(Message(str(_BEFORE + number), durable=True)) for number in range(_DURING)]
        wire.attach("q", role=False, name="late")
        told = wire.expect(Flow)
        while not told.properties:
            told = wire.expect(Flow)
        assert (told.incoming_window, told.link_credit or 0) == (0, 0)
        assert told.properties == {_BLOCKED: Symbol(blocked)}
        wire.say(Wire.begin(), channel=1)
        wire.expect(Begin)
        assert wire.expect(Flow).incoming_window == 0
        # Consumers go on, and the queue gets empty.
        receiver = connect(broker.url).receiver("q", credit=_BEFORE)
        got = receiver.wait(_BEFORE)
        for each in got:
            each.settle(Delivery.ACCEPTED)
        bodies = [each.message.body for each in got]
        receiver.drain(5)
        assert receiver.got == []
        assert not any(delivery.settled for delivery in waiting)
        assert status(broker)["figures"]["resources_low"] == [resource]
        assert f"resources   low: {resource}; producers are held back" in status_text(broker)
        reload(broker, "")
        old.wait(lambda: all(delivery.settled for delivery in waiting), "outcomes")
        assert {delivery.remote_state for delivery in waiting} == {Delivery.ACCEPTED}
    figures = figures_when(manager, [])
    assert (figures["resources_low"], figures["blocked"], figures["health"]) == ([], None, "ready")
    connect(broker.url).sender("q").send(*(str(_BEFORE + _DURING + number) for number in range(_COUNT)))
    receiver.link.flow(_DURING + _COUNT)
    bodies += [each.message.body for each in receiver.wait(_DURING + _COUNT)]
    assert bodies == [str(number) for number in range(_BEFORE + _DURING + _COUNT)]
    lines = [line for line in broker.stderr_path.read_text().splitlines() if f'"reason": "{resource}"' in line]
    events = [json.loads(line)["event"] for line in lines]
    assert events == ["producers held back", "producers continue"]


def test_one_resource_after_the_other(start_broker: StartBroker, connect: Connect) -> None:
    """Producers stay held back until the last one recovers; the most important one is told."""
    broker = start_broker(config="")
    manager = Manager(connect(broker.url))
    descriptors, disk = f"descriptors_free_low = {1 << 30}\n", f"room_low_bytes = {1 << 60}\n"
    for marks, low, blocked in (
        (descriptors, ["descriptors"], "descriptors"),
        (descriptors + disk, ["disk", "descriptors"], "disk"),
        (disk, ["disk"], "disk"),
        ("", [], None),
    ):
        reload(broker, f"[server]\n{marks}")
        figures = figures_when(manager, low)
        assert (figures["resources_low"], figures["blocked"]) == (low, blocked)
    connect(broker.url).sender("q").send("again")


def status(broker: ChildBroker) -> dict[str, Any]:
    """Return what `ambermq status` says, as JSON."""
    found: dict[str, Any] = json.loads(status_text(broker, "--output", "json"))
    return found


def status_text(broker: ChildBroker, *options: str) -> str:
    """Return what `ambermq status` says."""
    words = [sys.executable, "-m", "ambermq", "status", "--interval", "0.1", "--url", broker.url, *options]
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout
