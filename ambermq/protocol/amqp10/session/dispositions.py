"""Dispositions that come in, of all links of one session (transport, 2.6.12), and the flows between them.

Rule 1: dispositions that look like the last one are taken in runs, whole ranges of them as one.
Rule 2: a delivery that is not held any more is left out, and so is an outcome that was reported already. A range costs
        what is held of it, whatever its length is.
Rule 3: a receiver that grants credit message by message sends a flow between two dispositions. So a plain flow for an
        attached link is taken here too; the general path reads every other frame.
Rule 4: ids are serial numbers (transport, 2.8.10). A range whose last id is before its first ends the session: taken as
        a range around the circle it would settle every delivery that the session holds.

    size u32 | 02 00 channel u16 00 53 13 c0 | size u8 | count u8 | fields
             | the head of a plain flow      |
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from ambermq.protocol.amqp10.errors import SessionFault
from ambermq.protocol.amqp10.events import Disposed
from ambermq.protocol.amqp10.framing.disposition_recogniser import (
    DispositionRecogniser,
    PlainDisposition,
    learn_disposition,
    read_disposition,
)
from ambermq.protocol.amqp10.framing.frames import decode_frame_body
from ambermq.protocol.amqp10.framing.transfer_recogniser import FLOW_CODE, read_flow_fields
from ambermq.protocol.amqp10.performatives.classes import (
    Accepted,
    Disposition,
    Modified,
    Rejected,
    Released,
    TransactionalState,
)
from ambermq.protocol.amqp10.serial_number import HALF, MASK
from ambermq.protocol.amqp10.session.link_registry import LinkRegistry
from ambermq.protocol.amqp10.session.parent_session import ParentSession
from ambermq.protocol.amqp10.spec import AmqpCondition, Role
from ambermq.protocol.amqp10.types.decode import Buffer

__all__ = ["Dispositions"]

_FLOW_LIST: Final = bytes((0x00, 0x53, FLOW_CODE, 0xC0))
_FLOW_HEAD: Final = Struct(">I8sBB")
_unpack_head: Final = _FLOW_HEAD.unpack_from
_SIZE_BYTES: Final = 13
"""The bytes of a plain flow up to those that its list counts."""
_OUTCOMES: Final = frozenset({Accepted, Rejected, Released, Modified})


class Dispositions:
    """The peer's dispositions of deliveries, in both directions."""

    __slots__ = ("_flow_head", "_links", "_session", "_shape")

    def __init__(self, session: ParentSession, links: LinkRegistry) -> None:
        self._session = session
        self._links = links
        self._flow_head = b""
        """The head of a plain flow on the channel of the last disposition."""
        self._shape: DispositionRecogniser | None = None

    def receive_frame(self, data: Buffer, position: int, body: int, frame_end: int, end: int) -> int:
        """Process the disposition at `position` and the frames like it up to `end`; return the position after them.

        Raises DecodeError, or SessionFault for a range whose last id is before its first.
        """
        plain = read_disposition(data, body, frame_end)
        if plain is None:
            performative, _ = decode_frame_body(data, body, frame_end)
            assert type(performative) is Disposition
            self.receive(performative)
            return frame_end
        if (plain.last_id - plain.first_id) & MASK >= HALF:
            raise _reversed(plain.first_id, plain.last_id)
        self._take(plain.first_id, plain.last_id, plain)
        self._shape = learn_disposition(data, position, body, frame_end, plain)
        if self._shape is None:
            return frame_end
        self._flow_head = bytes(data[position + 4 : position + 8]) + _FLOW_LIST
        self._session.connection.recogniser = self
        return self.take_alike(data, frame_end, end)

    def receive(self, disposition: Disposition) -> None:
        """Process a disposition that the general decoder read. Raises SessionFault as `receive_frame` does."""
        first = disposition.first
        last = first if disposition.last is None else disposition.last
        if (last - first) & MASK >= HALF:
            raise _reversed(first, last)
        self._take(first, last, disposition)

    def take_alike(self, data: Buffer, position: int, end: int) -> int:
        """Process whole dispositions like the last one, and plain flows; return the position after them."""
        shape, flow_head = self._shape, self._flow_head
        final = end - _FLOW_HEAD.size
        while shape is not None and position <= final:
            size, head, list_bytes, count = _unpack_head(data, position)
            if head != flow_head:
                first_id, last_id, next_position = shape.match(data, position, end)
                if next_position == position:
                    break
                self._take(first_id, last_id, shape.disposition)
                position = next_position
                continue
            next_position = position + size
            if next_position > end or list_bytes != size - _SIZE_BYTES:
                break
            fields = read_flow_fields(data, position + _FLOW_HEAD.size, next_position, count)
            if fields is None or (fields[4] is not None and fields[4] not in self._links.by_handle):
                break
            self._session.receive_flow(fields)
            position = next_position
        return position

    def _take(self, first_id: int, last_id: int, disposition: PlainDisposition | Disposition) -> None:
        """Append the events for the held deliveries of a range: their settlement, or an outcome to answer."""
        session, settled = self._session, disposition.settled
        is_of_ours = disposition.role == Role.RECEIVER
        ring = session.sent if is_of_ours else session.received
        if settled:
            runs = ring.take(first_id, last_id)
        elif type(disposition.state) in _OUTCOMES:
            runs = ring.report(first_id, last_id)
        elif is_of_ours and type(disposition.state) is TransactionalState:
            # A rollback makes the outcome void: until then they are as unsettled as before.
            runs = ring.find(first_id, last_id)
        else:
            return
        events = session.connection.events
        for run in runs:
            events.append(Disposed(run.link, run.first_id, run.tokens(), disposition.state, settled))
        # A settlement by the sender makes room for its transfers.
        if settled and not is_of_ours and session.windows.left <= 0:
            session.mark_dirty()


def _reversed(first: int, last: int) -> SessionFault:
    """Return the error for a range whose last id is before its first."""
    return SessionFault(AmqpCondition.INVALID_FIELD, f"a disposition from {first} to {last}: last is before first")
