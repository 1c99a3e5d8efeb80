"""Large messages in transactions: the discharge comes after those of them that wait for the disk."""

import pytest

from ambermq.engine.config import EngineConfig
from ambermq.protocol.amqp10.message.message import AmqpValue, Data, Message
from ambermq.protocol.amqp10.performatives.classes import (
    Accepted,
    Discharge,
    Disposition,
    Rejected,
    TransactionalState,
    Transfer,
)
from ambermq.protocol.server_limits import ServerLimits
from tests.engine.rig import Rig
from tests.protocol.gateway.transactions.test_connection_transactions import Transacting
from tests.protocol.peers import Wire


@pytest.mark.parametrize("settled", [False, True])
@pytest.mark.parametrize("fails", [False, True])
def test_a_discharge_overtakes_no_large_post(*, settled: bool, fails: bool) -> None:
    """All is in one read, and only one piece may wait for the disk at a time."""
    rig = Rig(config=EngineConfig(chunk_bytes=1000))
    peer = Transacting(rig, limits=ServerLimits(uploads_unsynced_bytes=1000))
    transaction = peer.declare()
    data = bytearray()
    for number in range(3):
        delivery_id, peer._next_id = peer._next_id, (peer._next_id + 1) & 0xFFFFFFFF
        message = Message(body=(Data(b"%d" % number * 2500),)).encode()
        pieces = [message[start : start + 800] for start in range(0, len(message), 800)]
        for index, piece in enumerate(pieces):
            transfer = Transfer(handle=1, more=index + 1 < len(pieces))
            if not index:
                transfer.delivery_id, transfer.delivery_tag, transfer.settled = delivery_id, b"t", settled
                transfer.state = TransactionalState(txn_id=transaction)
            data += Wire.frame(transfer, piece)
    discharge = Message(body=(AmqpValue(Discharge(txn_id=transaction, fail=fails)),)).encode()
    end = Transfer(handle=0, delivery_id=peer._next_id, delivery_tag=b"end")
    frames = peer.give(bytes(data) + Wire.frame(end, discharge))
    for _ in range(10):
        frames += peer.settle()
    said = [one for one, _ in frames if isinstance(one, Disposition)]
    assert isinstance(said[-1].state, Accepted)
    assert not any(isinstance(one.state, Rejected) for one in said)
    assert rig.queue().depth == (0 if fails else 3)
    assert not rig.loop.state.uploads
