"""`receive` creates nothing, `send` says what it creates, and an unknown name has near ones."""

from pathlib import Path

import pytest

from ambermq.protocol.amqp10.link.link import EXISTING
from ambermq.tools.broker.child_broker import ChildBroker
from ambermq.tools.client.broker_url import BrokerUrl
from ambermq.tools.client.link_client import LinkClient, created_queue
from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.exit_codes import ExitCode
from tests.tools.conftest import Run


def test_what_only_looks_creates_nothing(on_broker: Run) -> None:
    """An unknown queue is exit 6 with the nearest names, and does not exist afterwards."""
    on_broker("queue", "declare", "orders")
    for command in (
        ("receive", "ordres"),
        ("receive", "/queues/ordres"),
        ("send", "ordres", "x", "--no-create"),
        ("queue", "show", "ordres"),
        ("queue", "purge", "ordres"),
    ):
        result = on_broker(*command)
        assert (result.exit_code, result.stdout) == (ExitCode.NOT_FOUND, ""), command
        assert "did you mean 'orders'?" in result.stderr
    assert '"ordres"' not in on_broker("queue", "list", "--output", "json").stdout


def test_a_browse_has_near_names(run: Run, broker: ChildBroker) -> None:
    """It reads the files of the log, and creates nothing either."""
    run("queue", "declare", "browsed", "--url", broker.url)
    result = run("queue", "browse", "browsde", "--data", broker.directory)
    assert result.exit_code == ExitCode.NOT_FOUND
    assert "did you mean 'browsed'?" in result.stderr


def test_a_send_says_what_it_creates(on_broker: Run) -> None:
    """Once: the second message finds the queue."""
    assert on_broker("send", "new one", "x").stderr == "created queue 'new one'\n"
    assert on_broker("send", "new one", "x", "--no-create").stderr == ""


def test_the_answer_to_an_attach_offers_and_tells(broker: ChildBroker) -> None:
    """It offers the capability that was desired, and names the queue of another attach that created one."""
    with LinkClient.connect(BrokerUrl.parse(broker.url)) as client:
        made = client.attach_sender("made")
        assert created_queue(made) == "made"
        assert created_queue(client.attach_receiver("made-2")) == "made-2"
        for link in (
            client.attach_sender("made", must_exist=True),
            client.attach_receiver("made", must_exist=True),
            client.attach_receiver("/topics/made", must_exist=True),
        ):
            assert link.remote is not None
            assert link.remote.offered_capabilities == (EXISTING,)
            assert created_queue(link) == ""
        assert made.remote is not None
        assert made.remote.offered_capabilities == ()
        with pytest.raises(ToolError, match="amqp:not-found") as caught:
            client.attach_receiver("nothing", must_exist=True)
        assert caught.value.exit_code == ExitCode.NOT_FOUND


def test_each_line_is_a_message(on_broker: Run, tmp_path: Path) -> None:
    """Blank ones too; a line end at the end makes none."""
    path = tmp_path / "lines"
    path.write_bytes(b"one\n\n\xff\nlast")
    assert on_broker("send", "lined", "--lines", "--file", path).stdout.startswith("accepted 4 of 4")
    found = on_broker("receive", "lined", "--count", 4).stdout.splitlines()
    assert found == ["one", "", "/w==", "last"]


@pytest.mark.parametrize("size", [0, 1 << 20, (1 << 20) + 1, 3 << 20])
def test_a_file_is_one_body(on_broker: Run, tmp_path: Path, size: int) -> None:
    """Whatever its size: the large ones are never read whole."""
    path = tmp_path / "body"
    path.write_bytes(b"ab" * (size // 2) + b"c" * (size % 2))
    assert on_broker("send", "filed", "--file", path, "--count", 2, "--id", "i").exit_code == ExitCode.OK
    assert on_broker("receive", "filed", "--count", 2).stdout.encode() == (path.read_bytes() + b"\n") * 2


def test_a_file_beyond_the_limit_of_the_broker_is_refused(on_broker: Run, tmp_path: Path) -> None:
    """Before a byte of it is sent: one message with both sizes."""
    path = tmp_path / "body"
    with path.open("wb") as file:
        file.truncate(17 << 20)
    result = on_broker("send", "limited", "--file", path)
    assert result.exit_code == ExitCode.USAGE
    assert f"{path}: the message is too large: expected at most 16,777,216 bytes, found 17," in result.stderr
