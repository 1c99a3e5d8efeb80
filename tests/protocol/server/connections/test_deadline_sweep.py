"""The sweep of a server: the deadlines of very many connections are checked in parts, over most of a second."""

from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest

from ambermq.protocol.server.connections import deadline_sweep
from ambermq.protocol.server.connections.deadline_sweep import DeadlineSweep


class House:
    """A server with connections, a clock, and the calls that its sweep has asked for."""

    def __init__(self, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
        self.sockets: dict[int, Any] = {number: mock.Mock(peer=number) for number in range(count)}
        self.all = list(self.sockets.values())
        self.calls: list[tuple[float, Any]] = []
        self.now_ms, self.stall_ms = 2000, 0
        monkeypatch.setattr(deadline_sweep, "time", SimpleNamespace(monotonic_ns=lambda: self.now_ms * 1_000_000))
        loop: Any = SimpleNamespace(call_later=self.call_later)
        self.sweep = DeadlineSweep(loop, self.sockets, lambda _now_ms: self.stall_ms, interval_ms=1000)

    def call_later(self, seconds: float, call: Any) -> Any:
        self.calls.append((seconds, call))
        return SimpleNamespace(cancel=self.calls.clear)

    def part(self) -> None:
        """Fire the timer of the next part."""
        (seconds, call), *_ = self.calls
        self.calls.clear()
        self.now_ms += round(seconds * 1000)
        call()

    @property
    def checked(self) -> int:
        """How many checks there were."""
        return sum(socket.check_deadlines.call_count for socket in self.all)


def test_each_connection_is_checked_once_within_the_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    """A part is a fortieth of them; its time is the present one, and the extension that of the sweep."""
    house = House(5000, monkeypatch)
    house.stall_ms = 30
    house.sweep.begin(house.now_ms)
    house.stall_ms = 0
    parts = 1
    while house.calls:
        assert house.checked == 125 * parts
        parts += 1
        house.part()
    assert (parts, house.checked) == (40, 5000)
    assert house.now_ms <= 3000
    for socket in house.all:
        (extended, checked) = socket.mock_calls
        assert extended == mock.call.extend_deadlines(30, checked.args[0])
    assert len({socket.check_deadlines.call_args.args for socket in house.all}) == 40


def test_few_connections_are_one_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """They need no timers."""
    house = House(20, monkeypatch)
    house.sweep.begin(house.now_ms)
    assert (house.checked, house.calls) == (20, [])


def test_a_connection_that_has_ended_meanwhile_is_not_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor is one whose place another connection has."""
    house = House(60, monkeypatch)
    house.sweep.begin(house.now_ms)
    del house.sockets[0]
    house.sockets[1] = mock.Mock(peer=1)
    while house.calls:
        house.part()
    assert [bool(socket.check_deadlines.called) for socket in house.all] == [False, False, *[True] * 58]


def test_after_a_standstill_no_deadline_is_checked_before_it_is_extended(monkeypatch: pytest.MonkeyPatch) -> None:
    """The timer of a part may fire first. Each connection gets each extension once, and those left over are next."""
    house = House(60, monkeypatch)
    house.stall_ms = 5
    house.sweep.begin(house.now_ms)
    first = {socket.peer for socket in house.all if socket.check_deadlines.called}
    house.stall_ms = 60_000
    house.part()
    assert house.checked == 20
    house.sweep.begin(house.now_ms + 60_000)
    house.stall_ms = 0
    second = {socket.peer for socket in house.all if socket.check_deadlines.called} - first
    assert len(second) == 20
    while house.calls:
        house.part()
    for socket in house.all:
        extensions = [call.args[0] for call in socket.extend_deadlines.call_args_list]
        assert extensions == [5, 60_000]
        order = [call[0] for call in socket.mock_calls]
        assert order.index("check_deadlines") > order.index("extend_deadlines")


def test_the_end_of_the_server_ends_the_sweep(monkeypatch: pytest.MonkeyPatch) -> None:
    """No timer is left."""
    house = House(100, monkeypatch)
    house.sweep.begin(house.now_ms)
    house.sweep.end()
    assert not house.calls
