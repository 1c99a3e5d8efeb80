"""The windows of a session: how many transfer frames each end may still send (transport, 2.5.6).

Rule 1. Our window is renewed when half of it is used. It promises no more frames than deliveries may become unsettled.
        A paused window is closed as soon as no delivery is unfinished, a held one at once.
Rule 2. A closed window takes no frames back: frames that the peer may have sent already are accepted.
"""

from ambermq.protocol.amqp10.serial_number import HALF, MASK

__all__ = ["OUTGOING_WINDOW", "FlowWindows"]

OUTGOING_WINDOW = 0x7FFFFFFF
"""Our outgoing window as flows report it: no limit, since the peer's incoming window limits us."""


class FlowWindows:
    """Both windows of one session, in transfer frames."""

    __slots__ = (
        "_frames_max",
        "initial_outgoing_id",
        "is_held",
        "is_paused",
        "left",
        "low",
        "next_incoming_id",
        "next_outgoing_id",
        "remote",
        "unfinished",
    )

    def __init__(self, frames_max: int, first_outgoing_id: int) -> None:
        """Open with the first window, `frames_max`; no later window is larger."""
        self._frames_max = frames_max
        self.left = frames_max
        """The frames that the peer may still send, as far as it can know."""
        self.low = frames_max // 2
        """Half of the window: a new window is due when no more frames are left."""
        self.is_held = False
        """Whether the owner has closed the window: what has arrived waits for the disk."""
        self.is_paused = False
        self.unfinished = 0
        """The deliveries whose first frames have arrived: they may be completed while the window is paused."""
        self.next_incoming_id: int | None = None
        """None before the peer's begin."""
        self.initial_outgoing_id = first_outgoing_id
        self.next_outgoing_id = first_outgoing_id
        self.remote = 0
        """The frames that we may still send."""

    def received(self, frames: int) -> bool:
        """Count received frames, at most `left`; return whether half of the window is used."""
        self.left -= frames
        self.next_incoming_id = ((self.next_incoming_id or 0) + frames) & MASK
        return self.left <= self.low

    def sent(self, frames: int) -> None:
        """Count sent frames, at most `remote`."""
        self.remote -= frames
        self.next_outgoing_id = (self.next_outgoing_id + frames) & MASK

    def incoming(self, room: int) -> int:
        """Return a new incoming window, and count on it. `room` is how many deliveries may become unsettled."""
        if self.is_held or (self.is_paused and not self.unfinished):
            return 0
        window = max(min(self._frames_max, room), 0)
        self.left = max(self.left, window)
        return window

    def is_due(self, room: int) -> bool:
        """Return whether a new incoming window is worth a flow."""
        is_closed = self.is_held or (self.is_paused and not self.unfinished)
        return not is_closed and self.left <= self.low and min(self._frames_max, room) > self.left

    def receive_flow(self, next_incoming_id: int | None, incoming_window: int) -> None:
        """Set our remaining frames by the peer's flow."""
        seen = self.initial_outgoing_id if next_incoming_id is None else next_incoming_id
        ahead = ((seen - self.next_outgoing_id + HALF) & MASK) - HALF
        self.remote = max(ahead + incoming_window, 0)
