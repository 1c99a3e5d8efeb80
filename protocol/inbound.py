"""Which frame of a session goes where.

Rule 1: flows and dispositions that are plain are read directly, and transfers by their link's shape; the general
        decoder takes the rest, and whatever those decline.
"""

from typing import Final

from protocol.composite import Composite
from protocol.decode import Buffer
from protocol.frames import decode_frame_body
from protocol.performatives import Disposition, Flow, Transfer
from protocol.session import Session
from protocol.shape import DISPOSITION_CODE, FLOW_CODE, read_disposition, read_flow

__all__ = ["SESSION_CODES", "receive_decoded", "receive_plain"]

SESSION_CODES: Final = frozenset(range(0x12, 0x17))
"""Attach, flow, transfer, disposition, detach."""


def receive_plain(session: Session, code: int, data: Buffer, position: int, body: int, frame_end: int) -> None:
    """Give a frame with a plain code, but no transfer, to its session."""
    if code == FLOW_CODE:
        fields = read_flow(data, body, frame_end)
        if fields is not None:
            session.receive_flow(fields)
            return
    elif code == DISPOSITION_CODE:
        said = read_disposition(data, body, frame_end)
        if said is not None:
            role, first_id, last_id, settled, state = said
            session.receive_disposition(first_id, last_id, state, role=role, settled=settled)
            return
    performative, _ = decode_frame_body(data, body, frame_end)
    receive_decoded(session, performative, data, position, body, frame_end)


def receive_decoded(
    session: Session, performative: Composite, data: Buffer, position: int, body: int, frame_end: int
) -> None:
    """Give a frame that the general decoder read to its session."""
    match performative:
        case Flow():
            session.receive_flow([getattr(performative, name) for name in Flow.FIELDS[:10]])
        case Disposition():
            first_id = performative.first
            last_id = first_id if performative.last is None else performative.last
            session.receive_disposition(
                first_id, last_id, performative.state, role=performative.role, settled=performative.settled
            )
        case Transfer():
            session.incoming.receive(data, position, body, frame_end, frame_end)
        case _:
            session.receive(performative)
