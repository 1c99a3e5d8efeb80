"""Dispositions that come, of all links of one session (transport, 2.6.12).

Rule 1: what looks like the last one is taken in runs, whole ranges of them as one.
Rule 2: what is not held any more is left out, and so is an outcome that was told already.
"""

from __future__ import annotations

from typing import Final

from ambermq.protocol.amqp10.events import Disposed
from ambermq.protocol.amqp10.framing.disposition_recogniser import (
    DispositionRecogniser,
    PlainDisposition,
    learn_disposition,
    read_disposition,
)
from ambermq.protocol.amqp10.framing.frames import decode_frame_body
from ambermq.protocol.amqp10.performatives.classes import Accepted, Disposition, Modified, Rejected, Released
from ambermq.protocol.amqp10.session.parent_session import ParentSession
from ambermq.protocol.amqp10.spec import Role
from ambermq.protocol.amqp10.types.decode import Buffer

__all__ = ["Dispositions"]

_OUTCOMES: Final = frozenset({Accepted, Rejected, Released, Modified})


class Dispositions:
    """What the peer says of deliveries, in both directions."""

    __slots__ = ("_session", "_shape")

    def __init__(self, session: ParentSession) -> None:
        self._session = session
        self._shape: DispositionRecogniser | None = None

    def receive_frame(self, data: Buffer, position: int, body: int, frame_end: int, end: int) -> int:
        """Take the disposition frame at `position` and what follows it alike up to `end`; returns the position behind.

        DecodeError where it is none.
        """
        said = read_disposition(data, body, frame_end)
        if said is None:
            performative, _ = decode_frame_body(data, body, frame_end)
            assert type(performative) is Disposition
            self.receive(performative)
            return frame_end
        self._take(said.first_id, said.last_id, said)
        self._shape = learn_disposition(data, position, body, frame_end, said)
        if self._shape is None:
            return frame_end
        self._session.connection.recogniser = self
        return self.take_alike(data, frame_end, end)

    def receive(self, said: Disposition) -> None:
        """Take a disposition that the general decoder read."""
        self._take(said.first, said.first if said.last is None else said.last, said)

    def take_alike(self, data: Buffer, position: int, end: int) -> int:
        """Take whole frames like the last one from `position`; returns the position behind, `position` to decline."""
        shape = self._shape
        while shape is not None and position < end:
            first_id, last_id, behind = shape.match(data, position, end)
            if behind == position:
                break
            self._take(first_id, last_id, shape.said)
            position = behind
        return position

    def _take(self, first_id: int, last_id: int, said: PlainDisposition | Disposition) -> None:
        """Take what is held of a range: its end, or an outcome that asks for ours."""
        session, settled = self._session, said.settled
        is_of_ours = said.role == Role.RECEIVER
        ring = session.sent if is_of_ours else session.received
        if settled:
            runs = ring.take(first_id, last_id)
        elif type(said.state) in _OUTCOMES:
            runs = ring.tell(first_id, last_id)
        else:
            return
        events = session.connection.events
        for run in runs:
            events.append(Disposed(run.link, run.first_id, run.tokens(), said.state, settled))
        # What a sender settles makes room for its transfers.
        if settled and not is_of_ours and session.windows.left <= 0:
            session.mark_dirty()
