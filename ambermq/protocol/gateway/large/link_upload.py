"""One large message that arrives on a link: its outline, the check of its structure, and why it is refused.

Rule 1. The first piece has all sections before the body. They decide the route, so they stay in memory.
Rule 2. A refused message is read to its end, and its bytes are dropped. Then its sender gets the refusal.
Rule 3. Its limits are checked while its bytes are summed.
Rule 4. Its delivery may begin before its last piece has arrived if it goes to a queue alone, at once, in no group.
"""

from typing import Any, final

from ambermq.engine.commands import EndUpload, StoreChunk, Upload
from ambermq.protocol.amqp10.errors import DecodeError
from ambermq.protocol.amqp10.message.body_walk import BodyWalk, head_end
from ambermq.protocol.amqp10.message.delivery_time import AT_ONCE
from ambermq.protocol.amqp10.message.publish_outline import Outline, read_outline
from ambermq.protocol.amqp10.message.redelivery import without_delivery_annotations
from ambermq.protocol.amqp10.performatives.classes import Error, Header
from ambermq.protocol.amqp10.spec import LinkCondition
from ambermq.protocol.amqp10.types.decode import Buffer
from ambermq.protocol.amqp10.types.values import Symbol
from ambermq.protocol.gateway.engine_port import EnginePort
from ambermq.protocol.gateway.large.upload_gate import UploadGate, UploadLink

__all__ = ["LinkUpload"]


@final
class LinkUpload:
    """A message of which not every piece has arrived."""

    __slots__ = (
        "_engine",
        "_gate",
        "_link",
        "_may_cut_through",
        "_open_bytes",
        "_progress",
        "_walk",
        "outline",
        "refusal",
        "size",
        "size_max",
        "upload",
    )

    def __init__(
        self,
        engine: EnginePort,
        gate: UploadGate,
        link: Any,
        *,
        size_max: int,
        refusal: Error | None,
        may_cut_through: bool = False,
    ) -> None:
        """Begin a message; with `refusal` nothing of it is stored. `size_max` is the limit of its queue, 0 for none.

        `may_cut_through`: its link sends to a queue, and it is in no transaction.
        """
        self._engine = engine
        self._gate = gate
        self._link: UploadLink = link
        self._may_cut_through = may_cut_through
        self._walk: BodyWalk | None = None
        self._open_bytes = 0
        """The bytes that count for the limit of all uploads."""
        self._progress = (0, 0)
        """The bytes that had arrived at the last look, and when they had arrived first."""
        self.outline: Outline | None = None
        self.refusal = refusal
        """Why the message is refused; None if it is not."""
        self.size = 0
        """The bytes of its pieces."""
        self.size_max = size_max
        self.upload = Upload(b"")
        gate.count += 1

    def add(self, producer: int, piece: bytes) -> bool:
        """Store a piece; return False if the message is refused."""
        self.size += len(piece)
        if self.refusal is not None:
            return False
        self._gate.open_bytes += len(piece)
        self._open_bytes += len(piece)
        if 0 < self.size_max < self.size:
            self.refuse(
                LinkCondition.MESSAGE_SIZE_EXCEEDED, f"the queue takes at most {self.size_max} bytes in a message"
            )
            return False
        try:
            body = self._begin(piece) if self._walk is None else self._check(piece)
        except DecodeError as error:
            self.refuse(error.condition, error.description)
            return False
        self._gate.submit(self._link, StoreChunk(self._link, producer, self.upload, body))
        return True

    def finish(self, last: Buffer) -> None:
        """Check the last piece."""
        if self.refusal is not None:
            return
        size = self.size + len(last)
        if 0 < self.size_max < size:
            self.refuse(
                LinkCondition.MESSAGE_SIZE_EXCEEDED, f"the queue takes at most {self.size_max} bytes in a message"
            )
            return
        assert self._walk is not None, "the first piece has begun it"
        try:
            self._walk.feed(last, is_last=True)
        except DecodeError as error:
            self.refuse(error.condition, error.description)

    def refuse(self, condition: str, description: str) -> None:
        """Refuse the message: what is stored of it is garbage."""
        if self.refusal is None:
            self.refusal = Error(condition=Symbol(condition), description=description)
            self._release()
            self._end()

    def close(self, *, is_published: bool) -> None:
        """End the upload: its message is published, or will not be."""
        self._release()
        self._gate.count -= 1
        if not is_published:
            self._end()

    def is_idle(self, arrived_bytes: int, now_ms: int, idle_ms: int) -> bool:
        """Return whether no more than `arrived_bytes` have arrived for a time; each look passes the present number."""
        if arrived_bytes != self._progress[0] or not self._progress[1]:
            self._progress = (arrived_bytes, now_ms)
        return now_ms - self._progress[1] > idle_ms

    def restart_idle(self) -> None:
        """Count the time without bytes from now on: they were not read."""
        self._progress = (0, 0)

    def _release(self) -> None:
        self._gate.open_bytes -= self._open_bytes
        self._open_bytes = 0

    def _end(self) -> None:
        if not self.upload.is_ended:
            self.upload.is_ended = True
            self._engine.submit(EndUpload(self.upload))

    def _begin(self, piece: bytes) -> bytes:
        """Read the first piece, and return it as it is stored: without delivery annotations."""
        end, last_code = head_end(piece)
        head = piece[:end]
        self.outline = outline = read_outline(head or Header().encode())
        self._walk = BodyWalk(last_code)
        self._walk.feed(memoryview(piece)[end:])
        if outline.delivery_annotations is not None:
            head = without_delivery_annotations(head, outline.delivery_annotations)
            piece = head + piece[end:]
        self.upload.head, self.upload.ttl_ms = head or Header().encode(), outline.ttl_ms
        self.upload.may_cut_through = self._may_cut_through and outline.delivery == AT_ONCE and not outline.group
        return piece

    def _check(self, piece: bytes) -> bytes:
        assert self._walk is not None, "the caller has checked it"
        self._walk.feed(piece)
        return piece
