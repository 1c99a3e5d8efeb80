"""A body that is a file: sent in pieces, and received into a file that is complete or not there."""

import errno
import os
import random
from io import BytesIO
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ambermq.protocol.amqp10.events import TransferAborted, TransferPiece, TransferRun
from ambermq.protocol.amqp10.message.message import AmqpValue, Data, Message, decode_message
from ambermq.tools.messages import message_file, subscriber
from ambermq.tools.messages.message_file import EMPTY_BODY, BodyFile, message_size, pieces_of
from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.exit_codes import ExitCode
from tests.tools.conftest import Run

START = Message(body=(Data(b""),)).encode()
MIB = 1 << 20


@settings(max_examples=50)
@given(st.integers(0, 5000), st.integers(64, 3000), st.integers(1, 2000))
def test_what_is_sent_in_pieces_is_received_in_pieces(size: int, piece_bytes: int, section_bytes: int) -> None:
    """For any size of the body, of pieces and of sections; the message is the one that was announced."""
    body = random.Random(size).randbytes(size)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(message_file, "_SECTION_BYTES_MAX", section_bytes)
        sent = list(pieces_of(START, BytesIO(body), size, piece_bytes))
        whole = b"".join(piece for piece, _ in sent)
        assert len(whole) == message_size(START, size)
    assert [is_last for _, is_last in sent] == [False] * (len(sent) - 1) + [True]
    assert all(0 < len(piece) <= piece_bytes for piece, _ in sent)
    assert b"".join(section.value for section in decode_message(whole).body) == body


@pytest.mark.parametrize("piece_bytes", [1, 7, 100, 10_000])
def test_a_file_gets_binary_and_text(piece_bytes: int, tmp_path: Path) -> None:
    """Of several sections, behind others, cut anywhere."""
    path = tmp_path / "body"
    for body, expected in (
        ((Data(b"a" * 300), Data(b""), Data(b"b")), b"a" * 300 + b"b"),
        ((AmqpValue("text" * 100),), b"text" * 100),
    ):
        encoded = Message(application_properties={"k": "v"}, body=body).encode()
        with BodyFile(str(path)) as file:
            for start in range(0, len(encoded), piece_bytes):
                file.write(encoded[start : start + piece_bytes], is_last=start + piece_bytes >= len(encoded))
            assert not path.exists()
            file.keep()
        assert path.read_bytes() == expected
        assert [one.name for one in tmp_path.iterdir()] == ["body"]
        path.unlink()


def test_only_a_file_is_replaced(tmp_path: Path) -> None:
    """A pipe, a device or a directory is refused before a message comes; a link stays, and its file is replaced."""
    os.mkfifo(tmp_path / "pipe")
    for name in ("pipe", "."):
        with pytest.raises(OSError, match="not a regular file"):
            BodyFile(str(tmp_path / name))
    (tmp_path / "link").symlink_to(tmp_path / "body")
    with BodyFile(str(tmp_path / "link")) as file:
        file.write(Message(body=(Data(b"x"),)).encode(), is_last=True)
        file.keep()
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "body").read_bytes() == b"x"
    assert {one.name for one in tmp_path.iterdir()} == {"pipe", "link", "body"}


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk is full."""
    with BodyFile(str(tmp_path / "body")) as file:
        monkeypatch.setattr(os, "fsync", Mock(side_effect=OSError(errno.ENOSPC, "No space left on device")))
        with pytest.raises(ToolError, match="body: cannot write: No space left on device"):
            file.keep()


def test_a_file_that_is_not_complete_is_removed(tmp_path: Path) -> None:
    """Also one whose message has another body."""
    with BodyFile(str(tmp_path / "body")) as file:
        file.write(Message(body=(Data(bytes(500)),)).encode()[:300], is_last=False)
    with pytest.raises(ToolError), BodyFile(str(tmp_path / "body")) as file:
        file.write(Message(body=(AmqpValue({"a": 1}),)).encode(), is_last=True)
    assert not list(tmp_path.iterdir())


def test_a_file_travels_through_a_broker(on_broker: Run, tmp_path: Path) -> None:
    """Of several MiB, and empty; nothing is left in the queue."""
    for size in (0, 5 * MIB + 17):
        source, copy = tmp_path / "source", tmp_path / "copy"
        source.write_bytes(random.Random(size).randbytes(size))
        assert on_broker("send", "files", "--file", source).exit_code == ExitCode.OK
        result = on_broker("receive", "files", "--to-file", copy)
        assert (result.exit_code, result.stdout) == (ExitCode.OK, "")
        assert copy.read_bytes() == source.read_bytes()
    assert on_broker("receive", "files", "--to-file", copy, "--timeout", "0.1").exit_code == ExitCode.TIMEOUT
    assert copy.stat().st_size == 5 * MIB + 17
    assert not (tmp_path / "copy.part").exists()


@pytest.mark.parametrize("taken", [False, True])
def test_an_aborted_delivery_makes_room_for_the_next(tmp_path: Path, *, taken: bool) -> None:
    """Its credit is granted again, also if it ended before its first piece was taken; the file begins anew."""
    link = Mock(credit=0, partial=None)
    link.grant.side_effect = lambda count: setattr(link, "credit", count)
    body = Message(body=(Data(b"body"),)).encode()
    aborted = [TransferPiece(link, 0, START, 0), TransferAborted(link)] if taken else []
    steps = iter([aborted, [TransferRun(link, 1, [body], False)]])

    def step(_deadline: float | None) -> list[Any]:
        assert link.credit
        link.credit = 0
        return next(steps)

    with BodyFile(str(tmp_path / "body")) as file:
        assert subscriber.Subscriber(Mock(step=step), link).to_file(file, idle_seconds=None, show=Mock())
    assert (tmp_path / "body").read_bytes() == b"body"


def test_a_file_is_for_one_message(on_broker: Run, tmp_path: Path) -> None:
    """Other options of `receive` exclude it; a directory that is not there is a usage error."""
    assert on_broker("receive", "files", "--to-file", tmp_path / "x", "--all").exit_code == ExitCode.USAGE
    assert on_broker("send", "files", "x").exit_code == ExitCode.OK
    assert on_broker("receive", "files", "--to-file", tmp_path / "no" / "x").exit_code == ExitCode.USAGE
    assert on_broker("receive", "files").stdout == "x\n"


def test_the_empty_body_is_that_of_a_draft() -> None:
    """The pieces replace it."""
    assert START.endswith(EMPTY_BODY)


def test_a_message_that_is_too_large_to_be_printed_returns(
    on_broker: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command names the option that writes it to a file; it does not hold the message in memory."""
    monkeypatch.setattr(subscriber, "_MESSAGE_BYTES_MAX", 2 * MIB)
    (tmp_path / "source").write_bytes(bytes(3 * MIB))
    assert on_broker("send", "printed", "--file", tmp_path / "source").exit_code == ExitCode.OK
    result = on_broker("receive", "printed")
    assert (result.exit_code, result.stdout) == (ExitCode.FAILED, "")
    assert "expected at most 2,097,152 bytes" in result.stderr
    assert "receive it with --to-file" in result.stderr
    assert on_broker("receive", "printed", "--to-file", tmp_path / "copy").exit_code == ExitCode.OK
    assert (tmp_path / "copy").stat().st_size == 3 * MIB
