"""Which frame of a session goes where.

Rule 1: flows and dispositions that are plain are read directly, transfers by their link's shape, and what follows such
        a disposition by that one's; the general decoder takes the rest, and whatever those decline.
"""

from typing import Final

from ambermq.protocol.amqp10.framing.disposition_recogniser import DISPOSITION_CODE
from ambermq.protocol.amqp10.framing.frames import decode_frame_body
from ambermq.protocol.amqp10.framing.transfer_recogniser import FLOW_CODE, read_flow
from ambermq.protocol.amqp10.performatives.base import Composite
from ambermq.protocol.amqp10.performatives.classes import Disposition, Flow, Transfer
from ambermq.protocol.amqp10.session.session import Session
from ambermq.protocol.amqp10.types.decode import Buffer

__all__ = ["SESSION_CODES", "receive_decoded", "receive_plain"]

SESSION_CODES: Final = frozenset(range(0x12, 0x17))
"""Attach, flow, transfer, disposition, detach."""


def receive_plain(session: Session, code: int, data: Buffer, position: int, body: int, frame_end: int, end: int) -> int:
    """Give a frame with a plain code, but no transfer, to its session; returns the position behind what was taken."""
    if code == FLOW_CODE:
        fields = read_flow(data, body, frame_end)
        if fields is not None:
            session.receive_flow(fields)
            return frame_end
    elif code == DISPOSITION_CODE:
        return session.dispositions.receive_frame(data, position, body, frame_end, end)
    performative, _ = decode_frame_body(data, body, frame_end)
    receive_decoded(session, performative, data, position, body, frame_end)
    return frame_end


def receive_decoded(
    session: Session, performative: Composite, data: Buffer, position: int, body: int, frame_end: int
) -> None:
    """Give a frame that the general decoder read to its session."""
    match performative:
        case Flow():
            session.receive_flow([getattr(performative, name) for name in Flow.FIELDS[:10]])
        case Disposition():
            session.dispositions.receive(performative)
        case Transfer():
            session.incoming.receive(data, position, body, frame_end, frame_end)
        case _:
            session.receive(performative)
