"""Ctrl-C ends a command with exit code 130, without a traceback, and nothing stays held."""

import json
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ambermq.tools.broker.child_broker import ChildBroker
from ambermq.tools.terminal.exit_codes import ExitCode
from tests.tools.conftest import Run, write_all

_PIPE_BYTES = 1 << 17
"""More than a pipe holds."""


def _started(*arguments: str | Path, stdin: int = subprocess.DEVNULL) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "ambermq", *map(str, arguments)]
    return subprocess.Popen(command, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def _interrupted(process: "subprocess.Popen[bytes]") -> str:
    """Interrupt a command that prints nothing any more; return what it said."""
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=30)
    assert process.returncode == ExitCode.INTERRUPTED, said
    assert b"Traceback" not in said
    return said.decode()


def test_an_interrupted_receive_returns_what_it_held(on_broker: Run, broker: ChildBroker) -> None:
    """The messages that it had fetched are available at once, and no delivery has failed."""
    on_broker("send", "held", "--size", _PIPE_BYTES, "--count", 50)
    with _started("receive", "held", "--follow", "--url", broker.url) as process:
        while json.loads(on_broker("queue", "show", "held", "--output", "json").stdout)["acquired"] < 2:
            time.sleep(0.05)
        time.sleep(0.3)
        assert _interrupted(process) == "error: interrupted\n"
    write_all(broker)
    shown = json.loads(on_broker("queue", "show", "held", "--output", "json").stdout)
    assert shown["acquired"] == 0
    assert shown["available"] >= 48
    rest = on_broker("receive", "held", "--count", 48, "--ndjson").stdout.splitlines()
    assert [json.loads(line).get("delivery_count") for line in rest] == [None] * 48


def test_an_interrupted_send_ends(on_broker: Run, broker: ChildBroker) -> None:
    """Before the first line of its input, too."""
    on_broker("queue", "declare", "unsent")
    with _started("send", "unsent", "--lines", "--url", broker.url, stdin=subprocess.PIPE) as process:
        time.sleep(1.5)
        assert _interrupted(process) == "error: interrupted\n"


def test_an_interrupted_browse_ends(on_broker: Run, broker: ChildBroker) -> None:
    """It waits for the reader of its output."""
    on_broker("send", "browsed", "--size", _PIPE_BYTES, "--count", 4)
    write_all(broker)
    with _started("queue", "browse", "browsed", "--ndjson", "--data", broker.directory) as process:
        assert process.stdout is not None
        assert process.stdout.read(1)
        time.sleep(0.3)
        assert json.loads(_interrupted(process))["error"]["exit"] == ExitCode.INTERRUPTED


@pytest.mark.parametrize("is_key", [True, False])
def test_an_interrupted_top_ends(broker: ChildBroker, is_key: bool) -> None:
    """By the key and by the signal, and the terminal is as it was."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ["TERM"] = "xterm"
        os.execv(sys.executable, [sys.executable, "-m", "ambermq", "top", "--url", broker.url])
    shown = b""
    while b"health" not in shown:
        shown += os.read(terminal, 1 << 16)
    if is_key:
        os.write(terminal, b"\x03")
    else:
        os.kill(pid, signal.SIGINT)
    try:
        while data := os.read(terminal, 1 << 16):
            shown += data
    except OSError:
        pass  # The terminal has no process any more.
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == ExitCode.INTERRUPTED
    assert b"Traceback" not in shown
