"""The frames of a connection's begin and end: both opens, and our close (transport, 2.4.1, 2.4.3).

Rule: an open comes before each close. One that is sent late announces with its properties that a close follows.
"""

from collections.abc import Sequence
from typing import Any, Final

from ambermq.protocol.amqp10.errors import ConnectionFault
from ambermq.protocol.amqp10.framing.frames import encode_frame
from ambermq.protocol.amqp10.framing.size_limit import fitted
from ambermq.protocol.amqp10.limits import ConnectionLimits
from ambermq.protocol.amqp10.performatives.classes import Close, Error, Open
from ambermq.protocol.amqp10.spec import MIN_MAX_FRAME_SIZE, AmqpCondition

__all__ = ["CLOSE_FOLLOWS", "check_open", "close_frame", "open_frame"]

CLOSE_FOLLOWS: Final = {"amqp:connection-establishment-failed": True}
"""The properties of an open that is followed by a close."""


def open_frame(
    limits: ConnectionLimits,
    *,
    container_id: str,
    hostname: str | None,
    properties: dict[Any, Any] | None,
    offered_capabilities: Sequence[str],
    desired_capabilities: Sequence[str],
) -> bytes:
    """Return our open. It advertises half of our idle timeout, so a peer has a margin of two."""
    performative = Open(
        container_id=container_id,
        hostname=hostname,
        max_frame_size=limits.frame_bytes_max,
        channel_max=limits.channel_max,
        idle_time_out=limits.idle_timeout_ms // 2 or None,
        offered_capabilities=tuple(offered_capabilities),
        desired_capabilities=tuple(desired_capabilities),
        properties=properties,
    )
    return encode_frame(0, performative)


def check_open(remote: Open) -> None:
    """Raise ConnectionFault if the peer's open has a value that the specification forbids."""
    if remote.max_frame_size < MIN_MAX_FRAME_SIZE:
        why = f"max-frame-size {remote.max_frame_size}, expected at least {MIN_MAX_FRAME_SIZE}"
        raise ConnectionFault(AmqpCondition.INVALID_FIELD, why)


def close_frame(error: Error | None, frame_bytes_max: int) -> bytes:
    """Return our close. Where the peer's frames are too small, its error has no description."""
    frame = fitted(0, Close(error=error), frame_bytes_max)
    assert frame is not None, "a condition without a description always fits"
    return frame
