"""A line that grows on a terminal: when it comes, how often, and that nothing of it stays."""

import io
from types import SimpleNamespace

import pytest

from ambermq.tools.terminal import progress_counter
from ambermq.tools.terminal.progress_counter import ProgressCounter

_CLEAR = "\r\x1b[K"


class Terminal(io.StringIO):
    """It says that it is one."""

    def isatty(self) -> bool:
        return True


class Clock:
    """A time that the test sets."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Standard error as a terminal."""
    found = Terminal()
    monkeypatch.setattr(progress_counter, "sys", SimpleNamespace(stderr=found))
    return found


def test_a_short_command_shows_nothing(terminal: Terminal) -> None:
    """Most end within the first second."""
    clock = Clock()
    with ProgressCounter("sent", clock=clock) as progress:
        clock.now = 0.99
        progress.show(1000)
    assert terminal.getvalue() == ""


def test_a_long_one_shows_number_rate_and_time(terminal: Terminal) -> None:
    """With the whole if it is known, and the line is removed at the end."""
    clock = Clock()
    with ProgressCounter("sent", 10_000, clock=clock) as progress:
        clock.now = 2.0
        progress.show(3000)
        assert terminal.getvalue() == f"{_CLEAR}sent 3,000 of 10,000 messages, 1,500/s, 2 s"
    assert terminal.getvalue().endswith(_CLEAR)
    with ProgressCounter("received", clock=clock) as progress:
        clock.now = 4.0
        progress.show(10)
    assert "received 10 messages, 5/s, 2 s" in terminal.getvalue()


def test_it_is_drawn_five_times_a_second_at_most(terminal: Terminal) -> None:
    """However many steps there are."""
    clock = Clock()
    with ProgressCounter("sent", clock=clock) as progress:
        for step in range(3000):
            clock.now = step / 1000
            progress.show(step)
    lines = terminal.getvalue().count("sent")
    assert 1 <= lines <= 11
    assert terminal.getvalue().count(_CLEAR) == lines + 1


def test_an_error_finds_an_empty_line(terminal: Terminal) -> None:
    """Its message stands alone, and a second clear writes nothing."""
    clock = Clock()
    progress = ProgressCounter("sent", clock=clock)

    def fail() -> None:
        with progress:
            clock.now = 2.0
            progress.show(1)
            raise ValueError("gone")

    with pytest.raises(ValueError, match="gone"):
        fail()
    text = terminal.getvalue()
    assert text.endswith(_CLEAR)
    progress.clear()
    assert terminal.getvalue() == text


@pytest.mark.parametrize("is_shown", [True, False])
def test_without_a_terminal_nothing_is_written(monkeypatch: pytest.MonkeyPatch, is_shown: bool) -> None:
    """Nor on one where the results themselves are on the screen."""
    found = Terminal() if not is_shown else io.StringIO()
    monkeypatch.setattr(progress_counter, "sys", SimpleNamespace(stderr=found))
    clock = Clock()
    with ProgressCounter("sent", is_shown=is_shown, clock=clock) as progress:
        clock.now = 9.0
        progress.show(5)
    assert found.getvalue() == ""
