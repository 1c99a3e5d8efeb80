"""The dispatch of a session's frames to its parts.

Rule 1. Plain flows and dispositions are read directly, transfers by the shape of their link. The frames after a plain
        disposition are read by its shape. The general decoder reads all other frames, and each that those decline.
Rule 2. A performative above `performative_bytes_max` ends its session, or its connection if it belongs to no session or
        its descriptor is long. Only a transfer may be larger, since it has a payload.
"""

from typing import Final

from ambermq.protocol.amqp10.framing.disposition_recogniser import DISPOSITION_CODE
from ambermq.protocol.amqp10.framing.frames import decode_frame_body
from ambermq.protocol.amqp10.framing.performative_size import check_performative
from ambermq.protocol.amqp10.framing.transfer_recogniser import FLOW_CODE, read_flow
from ambermq.protocol.amqp10.performatives.base import Composite
from ambermq.protocol.amqp10.performatives.classes import Attach, Detach, Disposition, Flow, Transfer
from ambermq.protocol.amqp10.session.session import Session
from ambermq.protocol.amqp10.spec import AmqpCondition
from ambermq.protocol.amqp10.state_tables import SessionState
from ambermq.protocol.amqp10.types.decode import Buffer

__all__ = ["SESSION_CODES", "receive_decoded", "receive_plain", "refuse_long"]

SESSION_CODES: Final = frozenset(range(0x12, 0x17))
"""Attach, flow, transfer, disposition, detach."""
_NAMES: Final = {one.CODE: one.NAME for one in (Attach, Flow, Disposition, Detach)}


def receive_plain(session: Session, code: int, data: Buffer, position: int, body: int, frame_end: int, end: int) -> int:
    """Pass a frame with a plain code, but no transfer, to its session; return the position after the taken frames."""
    session.connection.turn_cost += 1
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


def refuse_long(session: Session | None, code: int, data: Buffer, body: int, frame_end: int, *, bytes_max: int) -> bool:
    """Refuse a performative above `bytes_max`: end its session, which ignores later ones. It is not decoded.

    Returns False for a transfer. Raises ConnectionFault if it belongs to no session, or its descriptor is long, and
    DecodeError if such a one is malformed.
    """
    if session is None or code not in SESSION_CODES:
        check_performative(data, body, frame_end, bytes_max=bytes_max)
        return False
    if session.state is SessionState.MAPPED:
        why = f"{_NAMES[code]} of {frame_end - body} bytes, at most {bytes_max} (performative_bytes_max)"
        session.fail(AmqpCondition.RESOURCE_LIMIT_EXCEEDED, why)
    return True


def receive_decoded(
    session: Session, performative: Composite, data: Buffer, position: int, body: int, frame_end: int
) -> None:
    """Pass a frame that the general decoder read to its session."""
    match performative:
        case Flow():
            session.receive_flow([getattr(performative, name) for name in Flow.FIELDS[:10]])
            if performative.properties and performative.handle is not None:
                session.receive_flow_properties(performative.handle, performative.properties)
        case Disposition():
            session.dispositions.receive(performative)
        case Transfer():
            session.incoming.receive(data, position, body, frame_end, frame_end)
        case _:
            session.receive(performative, frame_end - body)
