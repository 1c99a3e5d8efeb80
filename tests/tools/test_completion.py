"""What a shell is told when it completes a line."""

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ambermq.tools.broker.child_broker import ChildBroker
from tests.tools.conftest import Run

# click takes the name of the program from its path.
_PROGRAM = "import sys; sys.argv = ['ambermq']; from ambermq.tools.cli import main; main()"


def _completed(*words: str, **environment: str) -> list[str]:
    """Return what bash gets for a line whose last word is incomplete."""
    settings = {
        **{name: value for name, value in os.environ.items() if not name.startswith("AMBERMQ_")},
        "_AMBERMQ_COMPLETE": "bash_complete",
        "COMP_WORDS": " ".join(("ambermq", *words)),
        "COMP_CWORD": str(len(words)),
        **environment,
    }
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM], env=settings, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.stderr == ""
    return [line.partition(",")[2] for line in done.stdout.splitlines() if line]


def test_commands_and_options_are_completed() -> None:
    assert _completed("queue", "de") == ["declare", "delete"]
    assert "--output" in _completed("queue", "list", "--o")


def test_names_of_queues_come_from_the_broker(tmp_path: Path, run: Run) -> None:
    broker = ChildBroker(tmp_path / "data")
    broker.start()
    try:
        for name in ("orders", "orders.eu", "bills"):
            assert run("queue", "declare", name, "--url", broker.url).exit_code == 0
        assert _completed("queue", "show", "ord", AMBERMQ_URL=broker.url) == ["orders", "orders.eu"]
        assert _completed("receive", "", AMBERMQ_DATA=str(tmp_path / "data")) == ["bills", "orders", "orders.eu"]
        assert _completed("queue", "purge", "--url", broker.url, "b") == ["bills"]
    finally:
        broker.stop()


def test_without_a_broker_nothing_is_completed_and_nothing_printed() -> None:
    assert _completed("queue", "show", "o") == []
    assert _completed("queue", "show", "o", AMBERMQ_URL="amqp://127.0.0.1:1") == []


def test_a_silent_broker_does_not_hold_the_shell() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"amqp://127.0.0.1:{silent.getsockname()[1]}"
        began = time.monotonic()
        assert _completed("queue", "show", "o", AMBERMQ_URL=url) == []
        # The wait is a second; the interpreter's start is the rest.
        assert time.monotonic() - began < 20


@pytest.mark.parametrize(("shell", "words"), [("bash", "complete -o"), ("zsh", "compdef"), ("fish", "function")])
def test_each_shell_has_its_script(run: Run, shell: str, words: str) -> None:
    done = run("completion", shell)
    assert done.exit_code == 0
    assert words in done.stdout
    assert "_AMBERMQ_COMPLETE" in done.stdout


def test_a_mistyped_command_has_near_names(run: Run) -> None:
    assert "No such command 'queu'. Did you mean 'queue'?" in run("queu", "list").stderr
    assert "No such command 'brwse'. Did you mean 'browse'?" in run("queue", "brwse").stderr
    assert "Did you mean" not in run("xyz").stderr
