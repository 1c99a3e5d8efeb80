"""The limits of a connection: every bound of its state machines is a field here.

Rule 1. A bound on what a peer may send is announced to the peer if AMQP has a field for it.
Rule 2. Bytes are checked against their bound before they are stored.
Rule 3. A field has a range if some numbers are useless. AMQP has no room for a number above the range. Below it no
        peer could connect. `range_of` returns the range of a field.
"""

from dataclasses import Field, dataclass, field
from typing import Any, Final

__all__ = ["UINT_MAX", "ConnectionLimits", "bounded", "range_of"]

UINT_MAX: Final = (1 << 32) - 1
"""The largest uint of AMQP."""
_USHORT_MAX: Final = (1 << 16) - 1
_FRAME_BYTES_MIN: Final = 512
"""The frame that a peer may always send (transport, 2.7.1)."""


def bounded(default: int, *, least: int = 0, most: int | None = None) -> Any:
    """Return a dataclass field with a default and a range; None for no upper bound."""
    return field(default=default, metadata={"range": (least, most)})


def range_of(limit: Field[Any]) -> tuple[int, int | None]:
    """Return the smallest and the largest value of a field; None for no upper bound."""
    least, most = limit.metadata.get("range", (0, None))
    return least, most


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """The limits of one connection; the defaults are the broker's."""

    frame_bytes_max: int = bounded(1024 * 1024, least=_FRAME_BYTES_MIN, most=UINT_MAX)
    """The largest frame that a peer may send. The open announces it as max-frame-size."""

    sasl_frame_bytes_max: int = bounded(8192, least=_FRAME_BYTES_MIN)
    """The largest SASL frame that a peer may send. AMQP allows 512 bytes, but a password that is a token is longer."""

    channel_max: int = bounded(255, most=_USHORT_MAX)
    """The highest channel number of the peer. The peer may have one session more than that."""

    handle_max: int = bounded(1023, most=UINT_MAX)
    """The highest handle of the peer in each session. The peer may have one link more than that in a session."""

    links_max: int = bounded(4096, least=1)
    """Links of one connection, in all its sessions. A link counts until its detach is answered."""

    performative_bytes_max: int = bounded(64 * 1024, least=_FRAME_BYTES_MIN)
    """The largest performative, a frame without its payload. The broker keeps an attach as long as its link exists."""

    idle_timeout_ms: int = bounded(60_000, most=UINT_MAX)
    """A connection without input for this time is closed. The open announces half of it as idle-time-out; 0 is off."""

    idle_timeout_ms_min: int = bounded(200, most=UINT_MAX)
    """The least idle-time-out that a peer may ask for: it costs the broker two frames in that time. Less is refused."""

    close_ms: int = 5_000
    """Time for a peer to answer a close. After it the socket is closed."""

    window_frames: int = bounded(2048, least=1)
    """The incoming window of a session, in transfer frames. It is renewed when half of it is used."""

    message_bytes_max: int = bounded(16 * 1024 * 1024, least=1)
    """The largest message that a peer may send. The attach announces it as max-message-size."""

    partial_bytes_max: int = 64 * 1024 * 1024
    """Memory for the incomplete messages of one connection. Each of their frames adds `piece_overhead_bytes`."""

    piece_overhead_bytes: int = 64
    """Memory that a frame of an incomplete message takes besides its payload."""

    unsettled_max: int = bounded(65_536, least=1)
    """Unsettled deliveries of a session in each direction. At the bound, transfers wait for a settlement."""

    held_bytes_max: int = bounded(1024 * 1024, least=_FRAME_BYTES_MIN)
    """Input that is kept while the broker authenticates a peer or answers its open. More input ends the connection."""

    large_payload_bytes: int = 16 * 1024
    """A payload of this size or more is passed on as a view or as a buffer of its own, and is not copied."""
