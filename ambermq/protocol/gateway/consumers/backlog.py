"""The backlog of a link: runs of deliveries that wait for its window, and the large message that is first among them.

Rule 1. Deliveries leave in the order in which they were dealt. A large one is sent as a stream (gateway/large) while
        the later ones wait behind it.
Rule 2. The delivery of a large message counts as waiting until its first frame is sent.
Rule 3. What the receiver has no credit for any more returns to the queue, but for settled deliveries: they left the
        queue when they were acquired. A message that arrives is left to its queue, which has it when it is complete.
Rule 4. A large message of a settled delivery has left its queue, so it holds the log while it waits: else a compaction
        removes its pieces.
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple, final

from ambermq.engine.effects import Deliver
from ambermq.engine.entries.entry import Entry
from ambermq.engine.entries.entry_word import pack_words
from ambermq.engine.entries.stored_message import StoredMessage
from ambermq.protocol.amqp10.link.sender import Sender
from ambermq.protocol.amqp10.types.decode import Buffer
from ambermq.protocol.gateway.consumers.delivery_locks import attempts_of, tag_prefix
from ambermq.protocol.gateway.engine_port import EnginePort, Hold
from ambermq.protocol.gateway.large.arriving_message import ArrivingMessage
from ambermq.protocol.gateway.large.message_stream import MessageStream
from ambermq.protocol.gateway.large.turn_budget import TurnBudget, Wait
from ambermq.protocol.gateway.links.outgoing_message import redelivered

__all__ = ["Backlog", "DeliveryRun", "LargeDelivery"]


class LargeDelivery(NamedTuple):
    """A large message of the backlog."""

    message: StoredMessage | ArrivingMessage
    entry: Entry | None
    elapsed_us: int
    queue: int
    added: Mapping[str, Any] | None = None
    """Further message annotations."""
    hold: Hold | None = None
    """The hold on the log of a message that is in no queue; its stream releases it."""


class DeliveryRun(NamedTuple):
    """A run of deliveries in the backlog of a link."""

    words: Sequence[int]
    payloads: Sequence[Buffer]
    settled: bool
    large: LargeDelivery | None = None
    """The single message of the run, if it is large; then there are no payloads, and no word while it arrives."""
    attempt: int = 0
    """The attempt of a delivery of a queue with locks, for its delivery-tag."""

    @property
    def is_incomplete(self) -> bool:
        """Whether its message arrives still, so that its queue does not have it."""
        message = None if self.large is None else self.large.message
        return isinstance(message, ArrivingMessage) and not message.cut_through.is_ended


_SENDING: Final = DeliveryRun((), (), settled=True)
"""The first one of a backlog while a large message is being sent: its delivery counts as sent."""


@final
class Backlog:
    """The deliveries that wait, of one link."""

    __slots__ = ("_link", "count", "runs", "stream")

    def __init__(self, link: Sender) -> None:
        self._link = link
        self.runs: deque[DeliveryRun] = deque()
        """What waits, in the order in which it leaves."""
        self.count = 0
        """The deliveries that wait."""
        self.stream: MessageStream | None = None
        """The large message that is first; None if another one is, or if none can be sent now."""

    @property
    def size(self) -> int:
        """The bytes of the deliveries that are in memory."""
        return sum(sum(map(len, one.payloads)) for one in self.runs)

    def add(self, words: Sequence[int], payloads: Sequence[Buffer], *, settled: bool) -> None:
        """Add a run of deliveries."""
        self.runs.append(DeliveryRun(words, payloads, settled))
        self.count += len(words)

    def add_unsent(self, words: Sequence[int], *, settled: bool) -> None:
        """Add deliveries that are never sent, because the connection is lost."""
        self.runs.append(DeliveryRun(words, (), settled))

    def add_each(
        self,
        effect: Deliver,
        payloads: Sequence[Buffer | StoredMessage],
        engine: EnginePort,
        added: Sequence[Mapping[str, Any]] | None = None,
    ) -> None:
        """Add a run with large messages, each message by itself.

        With `added`, the annotations of deliveries with locks, the other messages are not rebuilt yet.
        """
        count = len(payloads)
        entries = effect.entries or (None,) * count
        attempts = attempts_of(effect.entries, count) if added is not None else [0] * count
        for index, (word, payload, entry) in enumerate(zip(effect.words, payloads, entries, strict=True)):
            more, attempt = None if added is None else added[index], attempts[index]
            if isinstance(payload, StoredMessage):
                hold = engine.hold() if effect.settled else None
                large = LargeDelivery(payload, entry, effect.elapsed_us, effect.queue, more, hold)
                self.runs.append(DeliveryRun((word,), (), effect.settled, large, attempt))
            else:
                body = payload if added is None else redelivered(payload, entry, effect.elapsed_us, more)
                self.runs.append(DeliveryRun((word,), (body,), effect.settled, None, attempt))
        self.count += count

    def add_arriving(self, message: ArrivingMessage) -> None:
        """Add the delivery of a message that arrives."""
        large = LargeDelivery(message, None, 0, message.cut_through.queue)
        self.runs.append(DeliveryRun((), (), message.cut_through.settled, large))
        self.count += 1

    def set_word(self, message: ArrivingMessage, word: int, engine: EnginePort) -> bool:
        """Set the word of a message that has arrived; return False if its first frame is sent."""
        for index, one in enumerate(self.runs):
            if one.large is not None and one.large.message is message:
                # If it is the stream already, that takes a hold itself.
                hold = engine.hold() if one.settled and (index or self.stream is None) else None
                self.runs[index] = one._replace(words=(word,), large=one.large._replace(hold=hold))
                return True
        return False

    def abort(self, message: ArrivingMessage) -> None:
        """Remove the delivery of a message that will not be complete."""
        stream = self.stream
        if stream is not None and stream.token == message.cut_through.key:
            stream.abort()
            self._remove_first(stream)
            return
        for one in self.runs:
            if one.large is not None and one.large.message is message:
                self.runs.remove(one)
                self.count -= 1
                return

    def flush(self, engine: EnginePort) -> None:
        """Send as much as the link can take now; a large message that is first becomes the stream."""
        link, runs = self._link, self.runs
        while self.stream is None and runs and (count := link.sendable):
            first = runs[0]
            words, payloads, settled, large, attempt = first
            link.use_tag_prefix(tag_prefix(attempt))
            if large is not None:
                self.stream = _stream_of(engine, link, large, words, settled=settled)
                break
            if len(words) > count:
                runs[0] = first._replace(words=words[count:], payloads=payloads[count:])
            else:
                runs.popleft()
            link.send_run(words[:count], payloads[:count], settled)
            self.count -= min(count, len(words))
        if self.stream is None and not runs:
            link.use_tag_prefix(tag_prefix(0))

    def begin(self, stream: MessageStream) -> None:
        """Begin with a large message that is sent again, ahead of anything new."""
        self.stream = stream
        self.runs.append(_SENDING)
        self.count += 1

    def serve(self, stream: MessageStream, turn: TurnBudget) -> Wait:
        """Send a part of the large message that is first; remove it when it is sent, or damaged."""
        was_begun = stream.is_begun
        wait = stream.serve(turn)
        if stream.is_begun and not was_begun:
            self.count -= 1
            self.runs[0] = _SENDING
        if stream.is_done:
            self._remove_first(stream)
        return wait

    def _remove_first(self, stream: MessageStream) -> None:
        self.stream = None
        self.runs.popleft()
        if not stream.is_begun:
            self.count -= 1

    def take_surplus(self) -> bytes:
        """Remove the end that exceeds the link's credit, and return its packed words: the receiver took credit back."""
        surplus, runs = self.count - self._link.credit, self.runs
        returned: list[bytes] = []
        while surplus > 0 and runs and (not runs[-1].settled or runs[-1].is_incomplete):
            words, payloads, _, large, attempt = runs.pop()
            if large is not None and not words:
                assert isinstance(large.message, ArrivingMessage), "the others have words"
                large.message.is_given_up = True
                surplus -= 1
                self.count -= 1
                continue
            kept = max(len(words) - surplus, 0)
            if kept:
                runs.append(DeliveryRun(words[:kept], payloads[:kept], False, None, attempt))
            returned.insert(0, pack_words(words[kept:]))
            surplus -= len(words) - kept
            self.count -= len(words) - kept
        if self.stream is not None and not runs:
            self.close()
        return b"".join(returned)

    def unsettled_words(self) -> list[bytes]:
        """Return the packed words of the runs that are not settled."""
        return [pack_words(one.words) for one in self.runs if not one.settled]

    def words(self) -> set[int]:
        """Return the words of all deliveries."""
        return set[int]().union(*[one.words for one in self.runs])

    def close(self) -> None:
        """Release what the large message holds: the link has ended, or its delivery returns to the queue."""
        if self.stream is not None:
            self.stream.close()
            self.stream = None
        for one in self.runs:
            if one.large is not None and one.large.hold is not None:
                one.large.hold.release()


def _stream_of(
    engine: EnginePort, link: Sender, large: LargeDelivery, words: Sequence[int], *, settled: bool
) -> MessageStream:
    """Return the stream of a large message; one that arrives has no word yet."""
    message, queue = large.message, large.queue
    if isinstance(message, ArrivingMessage):
        token = words[0] if words else message.cut_through.key
        rebuild: Callable[[Buffer], Buffer] = message.rebuild
    else:
        token = words[0]
        rebuild = partial(redelivered, entry=large.entry, now_us=large.elapsed_us, added=large.added)
    return MessageStream(engine, link, message, rebuild, token, settled=settled, queue=queue, hold=large.hold)
