"""A muxer before a queue with last values and one with a window for ids: a transaction brings both what they need."""

import pytest

from ambermq.engine.commands import AttachMember, BeginTransaction, DeclareMuxer, Discharge, Transaction
from ambermq.engine.model.muxer import MuxerKind
from ambermq.engine.selectors.fields import ABSENT
from ambermq.log.buffer import Buffer
from tests.engine.decide.messages.test_dead_letters import declare
from tests.engine.decide.messages.test_last_values import bodies_of, send
from tests.engine.rig import Rig


class _Fields:
    """The fields of a message `key:id`."""

    def __init__(self, body: Buffer, _added: object = (), /) -> None:
        self._key, _, self._id = bytes(body).decode().partition(":")

    def get(self, name: str) -> object:
        return {"key": self._key, "properties.message-id": self._id}.get(name, ABSENT)


@pytest.mark.parametrize("in_transaction", [False, True])
def test_a_duplicate_of_one_queue_takes_no_key_from_the_other(*, in_transaction: bool) -> None:
    """The parts of a run that differ in their queues keep their keys."""
    rig = Rig(fields_of=_Fields)
    declare(rig, "values", last_value="key")
    declare(rig, "ids", dedup_window_ms=60_000)
    rig.do(DeclareMuxer("key", "fan", MuxerKind.SIMPLE))
    rig.do(AttachMember("key", "fan", "values"), AttachMember("key", "fan", "ids"))
    transaction = Transaction(b"1") if in_transaction else None
    if transaction is not None:
        rig.do(BeginTransaction(transaction))
    values = {"id_hashes": [1, 2, 2, 3], "transaction": transaction}
    send(rig, b"a:1", b"b:2", b"b:2", b"a:3", name="/muxers/fan", **values)
    if transaction is not None:
        rig.do(Discharge("key", transaction))
    assert bodies_of(rig, "values") == [b"b:2", b"a:3"]
    assert bodies_of(rig, "ids") == [b"a:1", b"b:2", b"a:3"]
