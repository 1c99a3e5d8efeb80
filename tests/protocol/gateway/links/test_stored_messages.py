"""Messages that a log holds already, malformed ones too: they are delivered, and end nothing."""

from typing import Any

import pytest

from ambermq.engine.entries.entry import Entry
from ambermq.protocol.amqp10.message.message import Message
from ambermq.protocol.amqp10.performatives.classes import Modified
from ambermq.protocol.amqp10.performatives.read import decode_composite
from ambermq.protocol.amqp10.types.decode import decode
from ambermq.protocol.amqp10.types.values import Symbol
from ambermq.protocol.gateway.links.outcome_mapping import outcome_of
from ambermq.protocol.gateway.links.outgoing_message import redelivered
from tests.engine.rig import Rig
from tests.protocol.amqp10.message.test_publish_outline import MALFORMED
from tests.protocol.watching import Watching

STORED = [bytes.fromhex(written) for written in MALFORMED.values()]


def test_stored_malformed_messages_are_delivered_byte_for_byte() -> None:
    """An earlier version accepted some of them: what is on the queue comes as it was stored, after a start too."""
    stored = [payload for payload in STORED if len(payload) < 10_000]
    rig = Rig()
    for payload in stored:
        rig.do(rig.publish(rig.producer(), payload))
    assert Watching(rig).browse("q") == stored
    assert Watching(rig.next_life()).browse("q") == stored


@pytest.mark.parametrize("payload", STORED, ids=MALFORMED)
def test_a_malformed_message_is_redelivered(payload: bytes) -> None:
    """A failed delivery of it ends in another delivery, whatever its bytes are."""
    for entry in (Entry(count=1), Entry(annotations=((b"\xa3\x01a", b"\x40"),))):
        after = bytes(redelivered(payload, entry))
        assert after == payload or after.startswith((b"\0Sp", b"\0Sr"))


def nested(depth: int) -> Any:
    """Return a list in a list in a list, with a number in the innermost."""
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize("depth", [1, 29, 30, 31])
def test_annotations_nest_as_deep_as_an_outcome_can(depth: int) -> None:
    """The deepest annotation that a peer can write into its outcome reaches the next receiver."""
    written = Modified(delivery_failed=True, message_annotations={Symbol("a"): nested(depth)}).encode()
    state, _ = decode_composite(written, 0, len(written))
    assert isinstance(state, Modified)
    outcome = outcome_of(state, None)
    assert outcome is not None
    body = Message(message_annotations={"b": 2}).encode()
    after = redelivered(body, Entry(count=1, annotations=outcome.annotations))
    annotations, _ = decode(after, bytes(after).index(b"\0Sr") + 3)
    assert annotations == {"a": nested(depth), "b": 2}
    assert bytes(after).endswith(Message().encode())
