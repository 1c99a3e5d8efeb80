"""The screen of `ambermq top`, opened by textual's own pilot: with readings of a test, and of a real broker."""

import asyncio
import os
import pty
import select
import signal
import threading
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import DataTable, Static

from ambermq.tools.broker.child_broker import ChildBroker
from ambermq.tools.monitor.reading import RATE_NAMES, BrokerReading, BrokerWatch
from ambermq.tools.monitor.status_command import status_lines
from ambermq.tools.monitor.top_command import _screen
from ambermq.tools.monitor.top_screen import TopScreen
from ambermq.tools.terminal.child_command import child_command
from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.exit_codes import ExitCode
from tests.tools.conftest import Run

_RATES = dict.fromkeys(RATE_NAMES, 0.0)


def row(name: str, available: int, acquired: int = 0, consumers: int = 0, age_us: int = 0) -> dict[str, Any]:
    """Return the attributes of a queue."""
    values = {"available": available, "acquired": acquired, "consumers": consumers, "oldest_age_us": age_us}
    return {"name": name, **values}


def read(*rows: dict[str, Any], health: str = "ready") -> tuple[list[str], BrokerReading]:
    """Return a screen with these queues."""
    figures = {"health": health}
    return status_lines(figures, _RATES), BrokerReading(0.0, figures, rows)


def shown(app: TopScreen) -> list[str]:
    """Return the names in the table, from above."""
    table = app.query_one(DataTable)
    return [str(table.get_row_at(index)[0]) for index in range(table.row_count)]


def status(app: TopScreen) -> str:
    """Return the text of the status."""
    return str(app.query_one("#status", Static).content)


def watched(
    app: TopScreen, steps: Callable[[Pilot[None]], Awaitable[None]], size: tuple[int, int] = (100, 40)
) -> TopScreen:
    """Open the screen, and do the steps."""

    async def run() -> None:
        async with app.run_test(size=size) as pilot:
            await until(pilot, lambda: bool(status(app)) or app.failure is not None)
            await steps(pilot)

    asyncio.run(run())
    return app


async def until(pilot: Pilot[None], is_so: Callable[[], bool]) -> None:
    """Wait until something is so."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        await pilot.pause(0.02)
        if is_so():
            return
    raise AssertionError("it does not become so")


def test_the_deepest_queue_is_first_and_s_sorts_by_the_next_column() -> None:
    """Each key press, until the first order comes again."""
    rows = row("a", 1, 9, 3, 5), row("b", 7, 1, 1, 9), row("c", 8, 3, 2, 1)
    app = TopScreen(lambda: read(*rows), 0.2, 20)

    async def steps(pilot: Pilot[None]) -> None:
        found = {app.sort_key: shown(app)}
        for _ in range(5):
            await pilot.press("s")
            await pilot.pause()
            found[app.sort_key] = shown(app)
        assert found == {
            "depth": ["c", "a", "b"],
            "queue": ["a", "b", "c"],
            "available": ["c", "b", "a"],
            "acquired": ["a", "c", "b"],
            "consumers": ["a", "c", "b"],
            "oldest": ["b", "a", "c"],
        }
        await pilot.press("s")
        assert app.sort_key == "depth"

    watched(app, steps)


@pytest.mark.parametrize("key", ["q", "ctrl+c"])
def test_a_key_ends_the_screen(key: str) -> None:
    """Also while a reading does not return."""
    is_hung, readings = threading.Event(), [read(row("a", 1))]

    def read_once() -> tuple[list[str], BrokerReading]:
        if not readings:
            is_hung.wait(30)
        return readings.pop()

    app = TopScreen(read_once, 0.2, 20)

    async def steps(pilot: Pilot[None]) -> None:
        began = time.monotonic()
        await pilot.press(key)
        await until(pilot, lambda: not app.is_running)
        assert time.monotonic() - began < 5

    try:
        watched(app, steps)
    finally:
        is_hung.set()
    assert app.failure is None


def test_a_broker_that_is_away_is_a_line_and_the_last_reading_stays() -> None:
    """It goes when the broker is back."""
    answers: list[Any] = [read(row("a", 1))]
    app = TopScreen(lambda: answers[-1], 0.2, 20)

    async def steps(pilot: Pilot[None]) -> None:
        problem = app.query_one("#problem", Static)
        assert not problem.display
        answers.append("no answer: cannot connect")
        await until(pilot, lambda: bool(problem.display))
        assert str(problem.content) == "no answer: cannot connect"
        assert shown(app) == ["a"]
        answers.append(read(row("b", 1)))
        await until(pilot, lambda: not problem.display)
        assert shown(app) == ["b"]

    watched(app, steps)


def test_any_other_error_ends_the_screen() -> None:
    """The command reports it."""
    app = TopScreen(lambda: (_ for _ in ()).throw(ToolError("no such user")), 0.2, 20)

    async def steps(pilot: Pilot[None]) -> None:
        await until(pilot, lambda: not app.is_running)

    watched(app, steps)
    assert str(app.failure) == "no such user"


def test_a_thousand_queues_keep_their_place() -> None:
    """The table is drawn anew, and stays where it was scrolled to."""
    rows = [row(f"q{number:04}", number) for number in range(1000)]
    readings = [0]

    def count() -> tuple[list[str], BrokerReading]:
        readings[0] += 1
        return read(*rows)

    app = TopScreen(count, 1.0, 1000)

    async def steps(pilot: Pilot[None]) -> None:
        table = app.query_one(DataTable)
        assert table.row_count == 1000
        await pilot.press("pagedown", "pagedown")
        await until(pilot, lambda: table.scroll_offset.y > 20)
        place, before = table.scroll_offset.y, readings[0]
        await until(pilot, lambda: readings[0] > before + 2)
        assert table.scroll_offset.y == place
        assert str(app.query_one("#order", Static).content) == "1,000 of 1,000 queues by depth"

    watched(app, steps)


@pytest.mark.parametrize("size", [(80, 24), (40, 15), (20, 8), (200, 60)])
def test_a_narrow_terminal_shows_status_and_queues(size: tuple[int, int]) -> None:
    """The status takes no more than its part of the screen; long names with control characters do no harm."""
    app = TopScreen(lambda: read(row("a\x1b[2Jb" * 30, 1), row("b", 2)), 0.2, 20)

    async def steps(_pilot: Pilot[None]) -> None:
        table = app.query_one(DataTable)
        assert table.row_count == 2
        assert table.size.height >= 1
        assert "\x1b" not in "".join(shown(app))

    watched(app, steps, size)


def test_a_real_broker_goes_away_and_returns(tmp_path: Path, run: Run) -> None:
    """With another port, and the same queues."""
    broker = ChildBroker(tmp_path / "data")
    broker.start()
    watch = BrokerWatch(lambda: broker.url)
    try:
        assert run("send", "orders", "one", "--url", broker.url).exit_code == 0
        app = TopScreen(lambda: _screen(watch), 0.2, 20)

        async def steps(pilot: Pilot[None]) -> None:
            await until(pilot, lambda: shown(app) == ["orders"])
            assert "health      ready" in status(app)
            broker.kill()
            problem = app.query_one("#problem", Static)
            await until(pilot, lambda: bool(problem.display))
            assert str(problem.content).startswith("no answer: ")
            await asyncio.to_thread(broker.start)
            await until(pilot, lambda: not problem.display)
            assert shown(app) == ["orders"]

        watched(app, steps)
    finally:
        watch.close()
        broker.stop()


def test_a_wrong_password_is_no_broker_that_is_away() -> None:
    """It does not pass by itself."""

    class Refused:
        def read(self) -> None:
            raise ToolError("wrong password", code=ExitCode.NOT_AUTHENTICATED)

    with pytest.raises(ToolError, match="wrong password"):
        _screen(Refused())  # type: ignore[arg-type]


def test_the_command_on_a_terminal(broker: ChildBroker) -> None:
    """It draws, and ends by q with the exit code 0."""
    process, terminal = pty.fork()
    if not process:
        command = child_command("top", "--url", broker.url, "--interval", "0.2")
        os.environ["TERM"] = "xterm-256color"
        os.execv(command[0], command)
    output, deadline, has_sent = b"", time.monotonic() + 30, False
    try:
        while time.monotonic() < deadline:
            ready, _, _ = select.select([terminal], [], [], 0.2)
            try:
                output += os.read(terminal, 65536) if ready else b""
            except OSError:
                break
            if b"connections" in output and not has_sent:
                has_sent = True
                os.write(terminal, b"q")
        assert has_sent
        assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 0
    except BaseException:
        os.kill(process, signal.SIGKILL)
        raise
    finally:
        os.close(terminal)
