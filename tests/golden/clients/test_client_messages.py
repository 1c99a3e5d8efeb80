"""Default messages of every client take the fast path, and mean there what the codec reads.

The law is that of the scanner: for any bytes it says what the codec says. These bytes are what clients really send.
"""

from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest

from ambermq.engine.commands import Publish
from ambermq.protocol.amqp10.events import TransferRun
from ambermq.protocol.amqp10.framing.frames import decode_frame_body
from ambermq.protocol.amqp10.framing.transfer_recogniser import learn
from ambermq.protocol.amqp10.link.receiver import ANY_RUN
from ambermq.protocol.amqp10.message.message_recogniser import learn_message
from ambermq.protocol.amqp10.message.publish_outline import message_id_hash, read_outline
from ambermq.protocol.amqp10.performatives.classes import Header, Properties, Transfer
from ambermq.protocol.gateway.links.traffic import Traffic
from ambermq.protocol.gateway.producers.producer_link import ProducerLink
from ambermq.protocol.server_limits import ServerLimits
from tests.golden.clients import CLIENT_NAMES, ClientMessage, read_client
from tests.interop.matrix.clients import CLIENTS
from tests.protocol.amqp10.message.codec_reference import reference_message

KINDS = {
    (name, message.kind): [other for other in read_client(name) if other.kind == message.kind]
    for name in CLIENT_NAMES
    for message in read_client(name)
}
"""The messages of each client and kind, one link each."""

every_kind = pytest.mark.parametrize("recorded", KINDS.values(), ids=["-".join(key) for key in KINDS])


def general(payload: bytes) -> tuple[bool, int]:
    """Return durable and the hash of the id, as the general codec reads a message."""
    message = reference_message(payload)
    header, properties = message.header or Header(), message.properties or Properties()
    return bool(header.durable), message_id_hash(properties.message_id)


def test_every_client_library_of_the_matrix_is_recorded() -> None:
    """Each has its text and its binary message; a framework sends those of its library."""
    assert sorted(client.name for client in CLIENTS if not client.is_framework) == CLIENT_NAMES
    for name in CLIENT_NAMES:
        assert (name, "text") in KINDS
        assert (name, "binary") in KINDS


@every_kind
def test_frames_are_whole(recorded: list[ClientMessage]) -> None:
    """Head and message together are one transfer frame, which the general codec reads."""
    for message in recorded:
        frame = message.head + message.payload
        assert int.from_bytes(frame[:4]) == len(frame)
        transfer, payload_start = decode_frame_body(frame, 4 * frame[4], len(frame))
        assert isinstance(transfer, Transfer)
        assert payload_start == len(message.head)
        assert not transfer.more


@every_kind
def test_the_outline_is_the_codecs(recorded: list[ClientMessage]) -> None:
    """One scan of a recorded message says what the general codec says of it."""
    for message in recorded:
        outline = read_outline(message.payload)
        assert (outline.is_durable, outline.id_hash) == general(message.payload)


@every_kind
def test_messages_of_a_kind_are_recognised(recorded: list[ClientMessage]) -> None:
    """The first message of a link is read; those behind it are recognised in a run, ids and all."""
    payloads = [message.payload for message in recorded]
    alike = learn_message(read_outline(payloads[0]), payloads[0])
    assert alike is not None
    hashes = alike.id_hashes(payloads)
    assert hashes is not None
    assert [(alike.is_durable, one) for one in hashes] == [general(payload) for payload in payloads]


@every_kind
def test_a_link_publishes_them_without_reading(recorded: list[ClientMessage], monkeypatch: pytest.MonkeyPatch) -> None:
    """A producing link scans the first message of a kind, and none of the others."""
    submitted: list[Publish] = []
    link = producing(submitted)
    nothing: Any = None
    first, *others = [message.payload for message in recorded]
    link.publish(TransferRun(nothing, 0, [first], settled=False))
    monkeypatch.setattr("ambermq.protocol.gateway.producers.message_kind.read_outline", None)
    link.publish(TransferRun(nothing, 1, list(others), settled=False))
    published = [
        (command.durable, id_hash, bytes(body))
        for command in submitted
        for body, id_hash in zip(command.bodies, command.id_hashes, strict=True)
    ]
    assert published == [(*general(payload), payload) for payload in (first, *others)]


@every_kind
def test_frames_of_a_kind_are_recognised(recorded: list[ClientMessage]) -> None:
    """A transfer is like the one before it, but where an encoding grows: a delivery-id from zero."""
    for before, message in pairwise(recorded):
        frame = before.head + before.payload
        shape = learn(frame, 0, len(before.head), 1 << 20, settled=False)
        if transfer_of(before).delivery_id == 0:
            assert shape is None
            continue
        assert shape is not None
        following = message.head + message.payload
        next_id = transfer_of(message).delivery_id or 0
        assert shape.match(following, 0, len(following), next_id, 10) == ([message.payload], len(following))


def transfer_of(message: ClientMessage) -> Transfer:
    """Return the transfer of a recorded frame, as the general codec reads it."""
    transfer, _ = decode_frame_body(message.head, 8, len(message.head))
    assert isinstance(transfer, Transfer)
    return transfer


def producing(submitted: list[Publish]) -> ProducerLink:
    """Make a producing link whose engine only notes what it is told."""
    engine = SimpleNamespace(publish=submitted.append)
    peer: Any = SimpleNamespace(gateway=SimpleNamespace(engine=engine, traffic=Traffic()))
    nothing: Any = None
    link: Any = SimpleNamespace(run_max=ANY_RUN)
    return ProducerLink(peer, link, ServerLimits(), nothing)
