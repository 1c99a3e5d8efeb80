"""The dispositions that a session sends, joined until the end of the tick, so that consecutive ones leave as one range.

    size u32 | 02 00 channel u16 | 00 53 15 c0 size u8 | 06 role 70 | first u32 | 70 last u32 | settled | state | 42
    head: constant for equal settlements                            |                         | tail: constant

Rule 1. Only consecutive deliveries with an equal state, byte for byte, are one range; the order is preserved.
Rule 2. Head and tail come from a frame of the general encoder, at full width; ids always take five bytes.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from ambermq.protocol.amqp10.framing.frames import encode_frame
from ambermq.protocol.amqp10.framing.size_limit import fitted
from ambermq.protocol.amqp10.performatives.classes import DeliveryState, Disposition
from ambermq.protocol.amqp10.serial_number import MASK
from ambermq.protocol.amqp10.session.parent_session import ParentSession
from ambermq.protocol.amqp10.session.unsettled import Run

__all__ = ["OutgoingDispositions"]

_UINT: Final = 0x70
_range: Final = Struct(">IBI").pack
_LEARNT_RANGE: Final = _range(MASK, _UINT, MASK)
"""The ids of the frame that head and tail are cut from; neither size nor channel equals them."""


class OutgoingDispositions:
    """The outgoing dispositions of one session, with at most one pending range."""

    __slots__ = ("_count", "_first_id", "_head", "_role", "_session", "_settled", "_state", "_tail")

    def __init__(self, session: ParentSession) -> None:
        self._session = session
        self._first_id = 0
        self._count = 0
        """The deliveries of the pending range."""
        self._state: DeliveryState | None = None
        self._settled = False
        self._role: bool | None = None
        """The role of the last disposition; None before the first."""
        self._head = self._tail = b""

    def add(self, run: Run, state: DeliveryState | None, *, settled: bool, role: bool) -> None:
        """Add a run to the pending range, which is written first if the run does not continue it.

        `role` is ours. The caller must not change the state afterwards.
        """
        first_id = run.first_id
        if state is not self._state or settled != self._settled or role != self._role:
            self._learn(state, settled=settled, role=role)
        if self._count and first_id != (self._first_id + self._count) & MASK:
            self.flush()
        if not self._count:
            self._first_id = first_id
            self._session.connection.dirty[self._session] = None
        self._count += run.count

    def flush(self) -> None:
        """Write the pending range."""
        count = self._count
        if count:
            last_id = (self._first_id + count - 1) & MASK
            frame = self._head + _range(self._first_id, _UINT, last_id) + self._tail
            self._session.connection.output.add(frame)
            self._count = 0

    def drop(self) -> None:
        """Drop the pending range."""
        self._count = 0

    def _learn(self, state: DeliveryState | None, *, settled: bool, role: bool) -> None:
        """Encode the head and tail of a frame that the peer accepts; the texts of an error are cut to fit.

        A pending range with the same bytes is not flushed: values that are equal in Python may differ in AMQP.
        """
        channel, connection = self._session.channel, self._session.connection
        disposition = Disposition(role=role, first=MASK, last=MASK, settled=settled, state=state)
        frame = fitted(channel, disposition, connection.remote_frame_bytes_max) or encode_frame(channel, disposition)
        head, _, tail = frame.partition(_LEARNT_RANGE)
        if head != self._head or tail != self._tail:
            self.flush()
            self._head, self._tail = head, tail
        self._state, self._settled, self._role = state, settled, role
