"""The maximum size of a performative: only a transfer may be larger, since it has a payload."""

from ambermq.protocol.amqp10.errors import ConnectionFault
from ambermq.protocol.amqp10.framing.frames import decode_frame_body
from ambermq.protocol.amqp10.framing.transfer_recogniser import TRANSFER_CODE
from ambermq.protocol.amqp10.spec import AmqpCondition
from ambermq.protocol.amqp10.types.decode import Buffer

__all__ = ["check_performative"]


def check_performative(data: Buffer, body: int, frame_end: int, *, bytes_max: int) -> None:
    """Raise ConnectionFault for a frame body above `bytes_max` that is no transfer; DecodeError if it is malformed."""
    performative, _ = decode_frame_body(data, body, frame_end)
    if performative.CODE != TRANSFER_CODE:
        raise ConnectionFault(
            AmqpCondition.RESOURCE_LIMIT_EXCEEDED,
            f"{performative.NAME} of {frame_end - body} bytes, at most {bytes_max} (performative_bytes_max)",
        )
