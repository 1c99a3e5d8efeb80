"""The pieces of large messages wait for each other, and for nothing else."""

from typing import Any
from unittest import mock

from ambermq.engine.commands import Publish, StoreChunk, Upload
from ambermq.protocol.gateway.large.upload_gate import UploadGate
from ambermq.protocol.server_limits import ServerLimits


class Link:
    """A link that counts what waits."""

    held = 0


def gate(unsynced: int) -> tuple[UploadGate, Any]:
    gateway = mock.Mock()
    gateway.limits = ServerLimits(uploads_unsynced_bytes=unsynced)
    return UploadGate(gateway), gateway.engine


def piece(link: Link, size: int) -> StoreChunk:
    return StoreChunk(link, 1, Upload(b""), bytes(size))


def test_pieces_beyond_the_limit_wait_in_their_order() -> None:
    """One piece passes, however large it is; the next ones when it is durable."""
    uploads, engine = gate(100)
    links = Link(), Link()
    commands = [piece(links[0], 500), piece(links[1], 60), piece(links[0], 40), piece(links[1], 1)]
    for command in commands:
        uploads.submit(command.link, command)
    assert [call.args[0] for call in engine.submit.call_args_list] == commands[:1]
    assert [link.held for link in links] == [1, 2]
    uploads.stored(500)
    assert [call.args[0] for call in engine.submit.call_args_list] == commands[:3]
    uploads.stored(60)
    assert [call.args[0] for call in engine.submit.call_args_list] == commands
    assert [link.held for link in links] == [0, 0]


def test_a_publish_follows_the_pieces_of_its_link() -> None:
    """And the commands of a link that ends do not wait any more."""
    uploads, engine = gate(10)
    one, other = Link(), Link()
    last = Publish(one, 1, 0, [b"x"], [0], 1)
    for link, command in ((one, piece(one, 10)), (one, piece(one, 10)), (other, piece(other, 10)), (one, last)):
        uploads.submit(link, command)
    assert not engine.publish.called
    uploads.flush(one)
    assert engine.publish.call_args.args[0] is last
    assert engine.submit.call_count == 2
    assert (one.held, other.held) == (0, 1)
    uploads.stored(10)
    uploads.stored(10)
    assert other.held == 0
