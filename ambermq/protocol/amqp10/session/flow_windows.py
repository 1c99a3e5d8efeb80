"""The windows of a session: how many transfer frames either side may still send (transport, 2.5.6).

Rule 1: ours is renewed when half of it is used, and promises no more frames than deliveries may still become unsettled.
Rule 2: closing it takes back nothing: what the peer may have sent already is still taken.
"""

from ambermq.protocol.amqp10.serial_number import HALF, MASK

__all__ = ["OUTGOING_WINDOW", "FlowWindows"]

OUTGOING_WINDOW = 0x7FFFFFFF
"""What we say of our own outgoing window: nothing, since the peer's incoming window is what binds us."""


class FlowWindows:
    """Both windows of one session, in transfer frames."""

    __slots__ = (
        "_frames_max",
        "initial_outgoing_id",
        "is_paused",
        "left",
        "low",
        "next_incoming_id",
        "next_outgoing_id",
        "remote",
    )

    def __init__(self, frames_max: int, first_outgoing_id: int) -> None:
        """`frames_max` is what the first window promises, and no other is larger."""
        self._frames_max = frames_max
        self.left = frames_max
        """Frames that the peer may still send, as far as it can know."""
        self.low = frames_max // 2
        """Of these, half: at so few left, or less, a new window is due."""
        self.is_paused = False
        self.next_incoming_id: int | None = None
        """None until the peer's begin."""
        self.initial_outgoing_id = first_outgoing_id
        self.next_outgoing_id = first_outgoing_id
        self.remote = 0
        """Frames that we may still send."""

    def received(self, frames: int) -> bool:
        """Count frames that came; there were no more than `left`. Tells whether half of the window is used."""
        self.left -= frames
        self.next_incoming_id = ((self.next_incoming_id or 0) + frames) & MASK
        return self.left <= self.low

    def sent(self, frames: int) -> None:
        """Count frames that leave; there are no more than `remote`."""
        self.remote -= frames
        self.next_outgoing_id = (self.next_outgoing_id + frames) & MASK

    def incoming(self, room: int) -> int:
        """Hold to a new incoming window, and return it; `room`: deliveries that may still become unsettled."""
        if self.is_paused:
            return 0
        window = max(min(self._frames_max, room), 0)
        self.left = max(self.left, window)
        return window

    def is_due(self, room: int) -> bool:
        """Whether renewing the incoming window is worth a flow."""
        return not self.is_paused and self.left <= self.low and min(self._frames_max, room) > self.left

    def receive_flow(self, next_incoming_id: int | None, incoming_window: int) -> None:
        """Take the peer's view of what it may receive."""
        seen = self.initial_outgoing_id if next_incoming_id is None else next_incoming_id
        ahead = ((seen - self.next_outgoing_id + HALF) & MASK) - HALF
        self.remote = max(ahead + incoming_window, 0)
