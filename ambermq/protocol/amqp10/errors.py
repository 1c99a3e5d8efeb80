"""What can go wrong in AMQP, and who is to blame.

Rule 1: the peer's fault is an `AmqpError`: it carries the condition that goes into close, end or detach.
Rule 2: our own fault is a `LocalError`, and is never sent to a peer.
Rule 3: a subclass stands for a scope that ends, since that is what a caller acts on; the rest is in the condition.
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
    """A fault of the peer, as AMQP's error type names it (transport, 2.8.14)."""

    def __init__(self, condition: str, description: str) -> None:
        super().__init__(f"{condition}: {description}")
        self.condition = condition
        self.description = description


class DecodeError(AmqpError):
    """Bytes that are no AMQP value, or not the value that belongs there."""

    def __init__(self, description: str) -> None:
        super().__init__(AmqpCondition.DECODE_ERROR, description)


class FramingError(AmqpError):
    """Bytes that are no frame; the connection cannot go on."""

    def __init__(self, description: str) -> None:
        super().__init__(ConnectionCondition.FRAMING_ERROR, description)


class ConnectionFault(AmqpError):
    """A fault that ends the connection."""


class SessionFault(AmqpError):
    """A fault that ends one session."""


class LinkFault(AmqpError):
    """A fault that ends one link."""


class LocalError(Exception):
    """The API was called with what it cannot take, such as a value that AMQP cannot encode."""
