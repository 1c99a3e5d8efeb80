"""A large message on its way to a receiver: its pieces are read from the log one by one, and cut into frames.

Rule 1. A piece is read when the one before it is sent. So memory has one piece, and the next one that is being read.
Rule 2. The delivery begins with its first frame. Until then the message can return to its queue as if it was not dealt.
Rule 3. A damaged piece aborts the delivery. If it is the first one, no delivery begins.
Rule 4. A resumed delivery begins where its receiver was cut off: the pieces before are read, and not sent.
Rule 5. The log is held until the end: the message may leave its queue before, and a compaction would remove it.
Rule 6. The pieces of a message that arrives follow when they are durable. The state keeps them until it is published.
"""

from collections.abc import Callable
from typing import final

from ambermq.engine.entries.stored_message import StoredMessage
from ambermq.protocol.amqp10.link.resumption import offset_in
from ambermq.protocol.amqp10.link.sender import Sender
from ambermq.protocol.amqp10.performatives.classes import DeliveryState
from ambermq.protocol.amqp10.types.decode import Buffer
from ambermq.protocol.gateway.engine_port import EnginePort, Hold
from ambermq.protocol.gateway.large.arriving_message import ArrivingMessage
from ambermq.protocol.gateway.large.turn_budget import TurnBudget, Wait

__all__ = ["MessageStream"]


@final
class MessageStream:
    """One message and the link that sends it."""

    __slots__ = (
        *("_engine", "_hold", "_index", "_link", "_message", "_part", "_rebuild", "_settled"),
        *(
            "_left_out",
            "_resumes",
            "_skipped_bytes",
            "_state",
            "delivery_id",
            "is_begun",
            "is_damaged",
            "is_done",
            "queue",
            "token",
        ),
        "word",
    )

    def __init__(
        self,
        engine: EnginePort,
        link: Sender,
        message: StoredMessage | ArrivingMessage,
        rebuild: Callable[[Buffer], Buffer],
        token: int,
        *,
        settled: bool,
        queue: int = 0,
        resumes: bool = False,
        state: DeliveryState | None = None,
        hold: Hold | None = None,
    ) -> None:
        """`rebuild` returns the first piece as this delivery has it; `queue` is the queue of a consumer's delivery.

        `resumes`: the delivery is resumed, and `state` is what its receiver has of it. `hold`: the message holds the
        log already.
        """
        self._engine = engine
        self._link = link
        self._message = message
        self._rebuild = rebuild
        self._settled = settled
        self._hold = hold or (engine.hold() if message.is_whole else None)
        self._index = 0
        """The piece that is sent now."""
        self._part: memoryview | None = None
        """What is left of that piece; None if it is not read."""
        self._resumes = resumes
        self._state = state
        self._left_out = 0
        """The bytes of this piece and the next ones that the receiver has."""
        self._skipped_bytes = 0
        """The size of the last piece that was left out."""
        self.delivery_id = 0
        """Its id in the session; known when it is begun."""
        self.token = self.word = token
        """`token` is what the session knows the delivery by, `word` what the engine knows the message by."""
        self.queue = queue
        self.is_begun = False
        """Whether the peer has got its first frame."""
        self.is_done = False
        """Whether nothing more is sent: the message is complete, damaged, or aborted."""
        self.is_damaged = False

    def serve(self, turn: TurnBudget) -> Wait:
        """Send as much as the turn and the link allow, and return what the link waits for."""
        link, message = self._link, self._message
        if isinstance(message, ArrivingMessage) and not message.is_whole:
            message.follow(self._engine.durable_end)
        last = len(message.offsets) - 1
        while not self.is_done and not turn.is_spent:
            if self._index > last:
                # Its next piece has not arrived.
                return Wait.PEER
            part = self._part or self._read()
            if part is None:
                return Wait.PEER if self.is_done else Wait.BODIES
            if not part:
                turn.spend(0, self._skipped_bytes)
                continue
            is_first = not self.is_begun
            if is_first and link.sendable < 1:
                link.session.await_room()
                return Wait.PEER
            if is_first:
                self._begin()
                is_first = not self._resumes
            some = part[: turn.size]
            is_last = message.is_whole and self._index == last and len(some) == len(part)
            count = link.send_part(self.delivery_id, self.token, some, is_first=is_first, is_last=is_last)
            turn.spend(0, count)
            if count < len(some):
                self._part = part[count:]
                return Wait.PEER
            self._part = part[count:] if count < len(part) else None
            if self._part is None:
                self._index += 1
                if self._index > last and message.is_whole:
                    self._end()
        return Wait.PEER if self.is_done else Wait.TURN

    def complete(self, word: int, *, is_known_by_key: bool) -> None:
        """Send the rest: the message is published under a word.

        `is_known_by_key`: the delivery has begun, and its token stays the key of the upload.
        """
        message = self._message
        assert isinstance(message, ArrivingMessage), "the others are complete"
        message.complete(word)
        self.word = word
        if not is_known_by_key:
            self.token = word
        if not self.is_done:
            self._hold = self._engine.hold()

    def abort(self) -> None:
        """End a delivery that is not complete: the peer has settled it, or its message is damaged."""
        if not self.is_done and self.is_begun:
            self._link.abort_parts(self.delivery_id)
        self._end()

    def close(self) -> None:
        """Release the log: the link has ended."""
        self._end()

    def _read(self) -> memoryview | None:
        """Return the next piece; None if it must be read from the disk, or if it is damaged.

        It is empty if the receiver has it.
        """
        piece = self._engine.piece(self._message, self._index)
        if piece is None:
            return None
        if not piece:
            self.is_damaged = True
            self.abort()
            return None
        part = memoryview(piece if self._index else self._rebuild(piece))
        return part if self._state is None or self.is_begun else self._rest_of(part)

    def _rest_of(self, part: memoryview) -> memoryview:
        """Return what the receiver has not of a piece, before the delivery has begun."""
        if not self._index:
            self._left_out = offset_in(part, self._state)
            if not self._left_out:
                self._state = None
        size = len(part)
        if self._left_out < size:
            return part[self._left_out :]
        self._left_out -= size
        self._skipped_bytes = size
        self._index += 1
        if self._index == len(self._message.offsets):
            # There is no such position after all.
            self._index, self._state = 0, None
        return part[size:]

    def _begin(self) -> None:
        """Begin the delivery."""
        link = self._link
        if self._resumes:
            self.delivery_id = link.resume_parts(self.token, self._state)
        else:
            self.delivery_id = link.begin_parts(self.token, self._settled)
        self.is_begun = True
        if isinstance(self._message, ArrivingMessage):
            self._message.cut_through.is_sent = True

    def _end(self) -> None:
        self.is_done, self._part = True, None
        if self._hold is not None:
            self._hold.release()
