"""The messages of one run that are decoded one by one, and that become one command.

Rule 1. They are consecutive, of one kind (message_kind.py), and of no more bytes than the limit of a run.
Rule 2. Times of schedules and expiries are kept for each message only if they differ.
"""

from typing import final

from ambermq.engine.commands import Publish
from ambermq.protocol.amqp10.types.decode import Buffer
from ambermq.protocol.gateway.producers.message_kind import PLAIN_KIND, MessageKind, PublishedMessage

__all__ = ["PublishBatch"]


@final
class PublishBatch:
    """Consecutive messages of one kind."""

    __slots__ = ("_bodies", "_groups", "_id_hashes", "_kind", "_lives_ms", "_size", "_times_ms", "first_id")

    def __init__(self, first_id: int, kind: MessageKind = PLAIN_KIND) -> None:
        self.first_id = first_id
        """The delivery-id of its first message."""
        self._kind = kind
        self._bodies: list[Buffer] = []
        self._id_hashes: list[int] = []
        self._groups: list[int] = []
        self._times_ms: list[int] = []
        """For which times the messages are scheduled, if they are."""
        self._lives_ms: list[int] = []
        """Their times to live, or else the times when they expire, if they have any."""
        self._size = 0
        """In bytes, as the messages are stored."""

    def __len__(self) -> int:
        """Return the number of messages."""
        return len(self._bodies)

    def takes(self, message: PublishedMessage, size: int, bytes_max: int) -> bool:
        """Return whether a message of `size` bytes as it arrived may be added."""
        return not self._bodies or (message.kind.may_join(self._kind) and self._size + size <= bytes_max)

    def add(self, message: PublishedMessage) -> None:
        """Add a message."""
        self._kind = message.kind
        if time_ms := message.kind.delivery.time_ms:
            self._times_ms.append(time_ms)
        if life_ms := message.kind.ttl_ms or message.kind.expires_ms:
            self._lives_ms.append(life_ms)
        self._bodies.append(message.body)
        self._id_hashes.append(message.id_hash)
        self._groups.append(message.group)
        self._size += len(message.body)

    def command(self, link: object, producer: int, *, settled: bool) -> Publish:
        """Return the command that publishes the messages."""
        publish = Publish(link, producer, self.first_id, self._bodies, self._id_hashes, self._size, settled=settled)
        publish.groups = self._groups if any(self._groups) else []
        self._kind.describe(publish)
        times_ms, lives_ms = self._times_ms, self._lives_ms
        if times_ms and times_ms.count(publish.time_ms) < len(times_ms):
            publish.times_ms = times_ms
        if lives_ms and lives_ms.count(lives_ms[0]) < len(lives_ms):
            publish.lives_ms = lives_ms
        return publish
