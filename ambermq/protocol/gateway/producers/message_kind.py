"""The kinds of messages of one link, and how a message is read: decoded, or recognised as like the last decoded one.

Rule 1. The messages of a command are of one kind. Only the times for which they are scheduled, and those when they
        expire, may differ.
Rule 2. A message that is decoded becomes the one that the next ones are compared with (message_recogniser.py).
"""

from typing import Final, NamedTuple, final

from ambermq.engine.commands import Publish
from ambermq.engine.entries.priority import PRIORITY_DEFAULT
from ambermq.protocol.amqp10.message.delivery_time import AT_ONCE, DeliveryTime
from ambermq.protocol.amqp10.message.message_recogniser import MessageRecogniser, learn_message
from ambermq.protocol.amqp10.message.publish_outline import Outline, read_outline
from ambermq.protocol.amqp10.message.redelivery import without_delivery_annotations
from ambermq.protocol.amqp10.types.decode import Buffer

__all__ = ["PLAIN_KIND", "MessageKind", "PublishReader", "PublishedMessage", "kind_of"]


class MessageKind(NamedTuple):
    """What messages of one command have in common."""

    is_durable: bool
    ttl_ms: int
    priority: int
    delivery: DeliveryTime
    """When they are available."""
    expires_ms: int

    def may_join(self, other: "MessageKind") -> bool:
        """Return whether one command takes messages of both kinds: at most times of schedules and expiries differ."""
        if self == other:
            return True
        return _shape_of(self) == _shape_of(other)

    def describe(self, publish: Publish) -> None:
        """Set the fields of a command for messages of this kind."""
        publish.durable = self.is_durable
        publish.ttl_ms, publish.priority = self.ttl_ms, self.priority
        publish.time_ms, publish.delay_ms = self.delivery
        publish.expires_ms = self.expires_ms


def _shape_of(kind: MessageKind) -> tuple[bool, int, int, bool, bool, bool]:
    """Return what messages of one command have in common, and which times they have."""
    times = kind.delivery.time_ms > 0, kind.ttl_ms > 0, kind.expires_ms > 0
    return kind.is_durable, kind.priority, kind.delivery.delay_ms, *times


PLAIN_KIND: Final = MessageKind(False, 0, PRIORITY_DEFAULT, AT_ONCE, 0)


class PublishedMessage(NamedTuple):
    """A message as it is stored."""

    body: Buffer
    kind: MessageKind
    id_hash: int
    group: int
    """0 for none."""


def kind_of(outline: Outline | MessageRecogniser) -> MessageKind:
    """Return the kind of a message that was read, or of those that are recognised."""
    return MessageKind(outline.is_durable, outline.ttl_ms, outline.priority, outline.delivery, outline.expires_ms)


@final
class PublishReader:
    """Reads the messages of one link."""

    __slots__ = ("recogniser",)

    def __init__(self) -> None:
        self.recogniser: MessageRecogniser | None = None
        """Recognises messages like the last decoded one; None without one, or if it cannot be learned."""

    def read(self, payload: Buffer) -> PublishedMessage:
        """Return a message as it is stored. Raises DecodeError."""
        recogniser = self.recogniser
        if recogniser is not None:
            hashes = recogniser.id_hashes((payload,))
            if hashes is not None:
                groups = recogniser.groups((payload,)) if recogniser.may_group else []
                return PublishedMessage(payload, kind_of(recogniser), hashes[0], groups[0] if groups else 0)
        outline = read_outline(payload)
        self.recogniser = learn_message(outline, payload)
        if outline.delivery_annotations is not None:
            payload = without_delivery_annotations(payload, outline.delivery_annotations)
        return PublishedMessage(payload, kind_of(outline), outline.id_hash, outline.group)
