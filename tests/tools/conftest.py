"""A broker in a process of its own for the tests of commands, and a way to run a command in this one."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from ambermq.tools.broker.child_broker import ChildBroker
from ambermq.tools.cli import main

Run = Callable[..., Result]


@pytest.fixture(autouse=True)
def no_target(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """No test depends on what the machine's environment and its user's contexts name."""
    for name in ("AMBERMQ_URL", "AMBERMQ_DATA", "AMBERMQ_CONTEXT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.getbasetemp() / "no-configuration"))


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChildBroker]:
    """A running broker; each test uses queues of its own."""
    child = ChildBroker(tmp_path_factory.mktemp("broker") / "data")
    child.start()
    yield child
    child.kill()


@pytest.fixture
def run() -> Run:
    """Run `ambermq` with these arguments; the result has exit_code, stdout and stderr."""

    def invoke(*arguments: str | int | Path, stdin: bytes | str | None = None) -> Result:
        return CliRunner().invoke(main, [str(argument) for argument in arguments], input=stdin, prog_name="ambermq")

    return invoke


def write_all(broker: ChildBroker) -> None:
    """Return when the log has all earlier events: a declaration is written with the lazy events before it.

    A settlement, and the end of a link whose client has gone, may come into the log a while after their command.
    """
    command = ["queue", "declare", "waited-for", "--url", broker.url]
    assert CliRunner().invoke(main, command).exit_code == 0


@pytest.fixture
def on_broker(run: Run, broker: ChildBroker) -> Run:
    """Run a command on the running broker, by its URL."""

    def invoke(*arguments: str | int | Path, stdin: bytes | str | None = None) -> Result:
        return run(*arguments, "--url", broker.url, stdin=stdin)

    return invoke
