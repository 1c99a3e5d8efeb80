"""The errors of AMQP, by the side that caused them.

Rule 1. An `AmqpError` is an error of the peer. It carries the condition for the close, end or detach frame.
Rule 2. A `LocalError` is an error of this program. It is never sent to a peer.
Rule 3. A subclass stands for the scope that ends, since a caller acts on that. The condition says the rest.
"""

from ambermq.protocol.amqp10.spec import AmqpCondition, ConnectionCondition

__all__ = [
    "AmqpError",
    "ConnectionFault",
    "DecodeError",
    "FramingError",
    "LinkFault",
    "LocalError",
    "SessionFault",
]


class AmqpError(Exception):
    """An error of the peer, with the condition of AMQP's error type (transport, 2.8.14)."""

    def __init__(self, condition: str, description: str) -> None:
        super().__init__(f"{condition}: {description}")
        self.condition = condition
        self.description = description


class DecodeError(AmqpError):
    """Bytes that are not an AMQP value, or not a value of the expected type."""

    def __init__(self, description: str) -> None:
        super().__init__(AmqpCondition.DECODE_ERROR, description)


class FramingError(AmqpError):
    """Bytes that are not a frame; the error ends the connection."""

    def __init__(self, description: str) -> None:
        super().__init__(ConnectionCondition.FRAMING_ERROR, description)


class ConnectionFault(AmqpError):
    """An error of the peer that ends the connection."""


class SessionFault(AmqpError):
    """An error of the peer that ends one session."""


class LinkFault(AmqpError):
    """An error of the peer that ends one link."""


class LocalError(Exception):
    """A bad argument of a call, such as a value that AMQP cannot encode."""
