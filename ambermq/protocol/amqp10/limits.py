"""What a connection may cost us: every bound of the state machines has its name here.

Rule 1: a bound on what a peer may send is also told to the peer wherever AMQP has a field for it.
Rule 2: bytes are bounded before they are kept, never after.
Rule 3: a field says what it may be where not every number serves: what AMQP has no room for could not be told to the
        peer, and below what every peer may send none could connect. Who reads a limit from outside asks `range_of`.
"""

from dataclasses import Field, dataclass, field
from typing import Any, Final

__all__ = ["UINT_MAX", "ConnectionLimits", "bounded", "range_of"]

UINT_MAX: Final = (1 << 32) - 1
"""What AMQP's uint takes."""
_USHORT_MAX: Final = (1 << 16) - 1
_FRAME_BYTES_MIN: Final = 512
"""What every peer may send before it was told anything (transport, 2.7.1)."""


def bounded(default: int, *, least: int = 0, most: int | None = None) -> Any:
    """Make a dataclass's field with a default that tells from what to what it may be; None: any number above."""
    return field(default=default, metadata={"range": (least, most)})


def range_of(limit: Field[Any]) -> tuple[int, int | None]:
    """Return the least and the most that a field may be; the most is None where it does not say."""
    least, most = limit.metadata.get("range", (0, None))
    return least, most


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """The limits of one connection; the defaults are the broker's."""

    frame_bytes_max: int = bounded(1024 * 1024, least=_FRAME_BYTES_MIN, most=UINT_MAX)
    """The largest frame we take, advertised as max-frame-size; at least 512."""

    sasl_frame_bytes_max: int = bounded(8192, least=_FRAME_BYTES_MIN)
    """The largest SASL frame we take: the spec says 512, but passwords that are tokens are longer."""

    channel_max: int = bounded(255, most=_USHORT_MAX)
    """The highest channel number of the peer, so one less than the sessions it may have."""

    handle_max: int = bounded(1023, most=UINT_MAX)
    """The highest handle of the peer in each session."""

    links_max: int = bounded(4096, least=1)
    """Links of all sessions of the connection together, those included whose detach is not answered yet."""

    performative_bytes_max: int = bounded(64 * 1024, least=_FRAME_BYTES_MIN)
    """The largest performative we take: what a peer says is kept as long as its link, unlike what it sends."""

    idle_timeout_ms: int = bounded(60_000, most=UINT_MAX)
    """A peer silent for longer is dropped; half of it is advertised; 0 is off."""

    close_ms: int = 5_000
    """A peer that has not answered our close for so long is dropped."""

    window_frames: int = bounded(2048, least=1)
    """The incoming window of a session in transfer frames, renewed when half of it is used."""

    message_bytes_max: int = bounded(16 * 1024 * 1024, least=1)
    """The largest message we take, advertised as max-message-size."""

    partial_bytes_max: int = 64 * 1024 * 1024
    """What the unfinished deliveries of one connection may hold together, `piece_overhead_bytes` a frame included."""

    piece_overhead_bytes: int = 64
    """What a frame of an unfinished delivery costs beside its payload."""

    unsettled_max: int = bounded(65_536, least=1)
    """Deliveries unsettled at a time, a session and direction: incoming by the window, outgoing by `sendable`."""

    held_bytes_max: int = bounded(1024 * 1024, least=_FRAME_BYTES_MIN)
    """Input kept while `authenticated`, `accept` or `refuse` is awaited; more ends the connection."""

    large_payload_bytes: int = 16 * 1024
    """Payloads of this size and more are passed on as views and separate buffers, never copied."""
