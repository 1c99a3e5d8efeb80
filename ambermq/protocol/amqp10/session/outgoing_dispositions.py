"""What a session says of deliveries, kept until the end of the tick, so that what belongs together leaves as one range.

    size u32 | 02 00 channel u16 | 00 53 15 c0 size u8 | 06 role 70 | first u32 | 70 last u32 | settled | state | 42
    head: constant while what is said is alike                      |                         | tail: constant

Rule 1: only consecutive deliveries of which the same is said, byte for byte, are one range; their order is kept.
Rule 2: head and tail are those of a frame that the general encoder wrote, at full width; ids always take five bytes.
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
"""No size and no channel in front of it looks like this."""


class OutgoingDispositions:
    """The dispositions that one session sends; one range of deliveries at most waits."""

    __slots__ = ("_count", "_first_id", "_head", "_role", "_session", "_settled", "_state", "_tail")

    def __init__(self, session: ParentSession) -> None:
        self._session = session
        self._first_id = 0
        self._count = 0
        """Deliveries that wait."""
        self._state: DeliveryState | None = None
        self._settled = False
        self._role: bool | None = None
        """What was said last; None: nothing yet."""
        self._head = self._tail = b""

    def say(self, run: Run, state: DeliveryState | None, *, settled: bool, role: bool) -> None:
        """Join a run to what waits, or let that go first; `role` is ours, and the state must not change any more."""
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
        """Write what waits."""
        count = self._count
        if count:
            last_id = (self._first_id + count - 1) & MASK
            frame = self._head + _range(self._first_id, _UINT, last_id) + self._tail
            self._session.connection.output.add(frame)
            self._count = 0

    def drop(self) -> None:
        """Forget what waits."""
        self._count = 0

    def _learn(self, state: DeliveryState | None, *, settled: bool, role: bool) -> None:
        """Write a frame that the peer takes: what an error says is cut where it would be too long.

        What waits and is alike, byte for byte, goes on waiting: equal values need not be the same ones to AMQP.
        """
        channel, connection = self._session.channel, self._session.connection
        said = Disposition(role=role, first=MASK, last=MASK, settled=settled, state=state)
        frame = fitted(channel, said, connection.remote_frame_bytes_max) or encode_frame(channel, said)
        head, _, tail = frame.partition(_LEARNT_RANGE)
        if head != self._head or tail != self._tail:
            self.flush()
            self._head, self._tail = head, tail
        self._state, self._settled, self._role = state, settled, role
