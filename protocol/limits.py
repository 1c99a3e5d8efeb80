"""What a connection may cost us: every bound of the state machines has its name here.

Rule 1: a bound on what a peer may send is also told to the peer wherever AMQP has a field for it.
Rule 2: bytes are bounded before they are kept, never after.
"""

from dataclasses import dataclass

__all__ = ["ConnectionLimits"]


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """The limits of one connection; the defaults are the broker's."""

    frame_bytes_max: int = 1024 * 1024
    """The largest frame we take, advertised as max-frame-size; at least 512."""

    sasl_frame_bytes_max: int = 8192
    """The largest SASL frame we take: the spec says 512, but passwords that are tokens are longer."""

    channel_max: int = 255
    """The highest channel number of the peer, so one less than the sessions it may have."""

    handle_max: int = 1023
    """The highest handle of the peer in each session."""

    links_max: int = 4096
    """Links of all sessions of the connection together, those included whose detach is not answered yet."""

    performative_bytes_max: int = 64 * 1024
    """The largest performative we take: what a peer says is kept as long as its link, unlike what it sends."""

    idle_timeout_ms: int = 60_000
    """A peer silent for longer is dropped; half of it is advertised; 0 is off."""

    close_ms: int = 5_000
    """A peer that has not answered our close for so long is dropped."""

    window_frames: int = 2048
    """The incoming window of a session in transfer frames, renewed when half of it is used."""

    message_bytes_max: int = 16 * 1024 * 1024
    """The largest message we take, advertised as max-message-size."""

    partial_bytes_max: int = 64 * 1024 * 1024
    """What the unfinished deliveries of one connection may hold together, `piece_overhead_bytes` a frame included."""

    piece_overhead_bytes: int = 64
    """What a frame of an unfinished delivery costs beside its payload."""

    unsettled_max: int = 65_536
    """Deliveries unsettled at a time, a session and direction: incoming by the window, outgoing by `sendable`."""

    held_bytes_max: int = 1024 * 1024
    """Input kept while `authenticated`, `accept` or `refuse` is awaited; more ends the connection."""

    large_payload_bytes: int = 16 * 1024
    """Payloads of this size and more are passed on as views and separate buffers, never copied."""
