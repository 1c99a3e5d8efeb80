"""Every failure ends as one line and a documented exit code."""

import errno

import click
import pytest
from click.testing import CliRunner

from ambermq.engine.errors import EngineError
from ambermq.log.errors import DamageError, ForeignError, LockedError, LogError, LogFailed
from ambermq.protocol.amqp10.errors import DecodeError, LocalError
from ambermq.tools.terminal.errors import ToolError, TranslatingGroup, translated
from ambermq.tools.terminal.exit_codes import ExitCode

HELD = '{"pid": 7, "url": "amqp://h:1"}'

CASES = [
    (LockedError("d/lock", HELD), 1, "d: the directory is locked by another broker: found pid 7, url amqp://h:1; stop"),
    (LockedError("d/lock", ""), 1, "found a broker that is starting, or a repair"),
    (DamageError("f.log", 64, "CRC 1", "2"), 5, "f.log is damaged at position 64: expected CRC 1, found 2; run `amb"),
    (ForeignError("f is version 9"), 1, "f is version 9; open it with the version that wrote it"),
    (LogFailed("sync: EIO"), 74, "sync: EIO; check the disk"),
    (LogError("no log"), 1, "no log"),
    (EngineError("type 99"), 1, "type 99"),
    (DecodeError("no value"), 1, "amqp:decode-error: no value"),
    (LocalError("cannot say"), 1, "cannot say"),
    (FileNotFoundError(errno.ENOENT, "No such file", "a.txt"), 6, "a.txt: no such file or directory; check the path"),
    (PermissionError(errno.EACCES, "Permission denied", "a.txt"), 1, "a.txt: Permission denied"),
    (UnicodeEncodeError("utf-8", "q\udcff", 1, 2, "surrogates not allowed"), 2, r"'q\udcff': text is not UTF-8"),
    (MemoryError(), 1, "not enough memory; request less at a time"),
    (ZeroDivisionError("by\nzero"), 1, "internal error: ZeroDivisionError: by zero; set AMBERMQ_TRACEBACK=1"),
]


@pytest.mark.parametrize(("error", "code", "message"), CASES, ids=lambda case: str(case)[:20])
def test_an_exception_from_below_is_one_line(error: Exception, code: int, message: str) -> None:
    """What and what to do, without a traceback."""
    failure = translated(error)
    assert failure.exit_code == code
    assert message in failure.message
    assert "\n" not in failure.message


def test_a_message_says_what_where_expected_found_and_what_to_do() -> None:
    """In that order, and nothing for what is not given."""
    whole = ToolError("it broke", where="there", expected="a", found="b", advice="try c", code=ExitCode.DAMAGED)
    assert whole.message == "there: it broke: expected a, found b; try c"
    assert ToolError("it broke").message == "it broke"


def raising(error: Exception) -> click.Group:
    @click.group(cls=TranslatingGroup)
    def group() -> None:
        """Run the command."""

    @group.group()
    def inner() -> None:
        """Run the command."""

    @inner.command()
    def fail() -> None:
        raise error

    return group


def test_a_command_below_the_group_never_shows_a_traceback() -> None:
    """The line goes to standard error, the code to the caller."""
    result = CliRunner().invoke(raising(LogFailed("sync: EIO")), ["inner", "fail"])
    assert result.exit_code == ExitCode.LOG_FAILED
    assert result.stdout == ""
    assert result.stderr == "error: sync: EIO; check the disk and its free space before a restart\n"


def test_the_traceback_of_a_mistake_of_ours_is_shown_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    """AMBERMQ_TRACEBACK=1 says where."""
    monkeypatch.setenv("AMBERMQ_TRACEBACK", "1")
    result = CliRunner().invoke(raising(KeyError("k")), ["inner", "fail"])
    assert result.exit_code == ExitCode.FAILED
    assert "Traceback" in result.stderr
    assert result.stderr.splitlines()[-1].startswith("error: internal error: KeyError")
