"""The link of a consumer of a non-destructive queue: the peer gets each message of the queue once, then the new ones.

Rule 1. The place of a link is the last entry that it has passed. So its memory does not depend on the queue, and
        messages come in the order of their entries, whatever their priority is.
Rule 2. Each turn reads the queue as it is then: a message that has expired, or was replaced or purged, is not sent.
Rule 3. No message is sent before it is durable.
Rule 4. Outcomes have no effect, and are settled. A drain is answered when there is no message behind the place.
Rule 5. To the engine the link is a consumer: it counts, and it ends with its queue. It acquires nothing.
"""

from collections.abc import Sequence
from heapq import merge
from itertools import islice, takewhile
from typing import Final, final

from ambermq.engine.entries.entry import Entry
from ambermq.engine.entries.entry_word import WORD_BYTES, unpack_words
from ambermq.engine.model.queue import Queue
from ambermq.protocol.amqp10.types.decode import Buffer
from ambermq.protocol.gateway.consumers.consumer_link import ConsumerLink
from ambermq.protocol.gateway.large.turn_budget import TurnBudget, Wait
from ambermq.protocol.gateway.sources.queue_browser import QueueBrowser

__all__ = ["QueueFollower"]

_AHEAD: Final = 256
"""The words that a link reads at once."""


@final
class QueueFollower(QueueBrowser):
    """The place of one consumer on a non-destructive queue, and the link that sends its messages."""

    __slots__ = ("_consumer_link", "_followed", "_place", "_seen")

    def __init__(self, consumer_link: ConsumerLink, queue: int) -> None:
        # The peer of a consumer is that of a source too: one object serves all links of a connection.
        super().__init__(consumer_link.peer, consumer_link.link, consumer_link.terms)  # type: ignore[arg-type]
        self._hold.release()
        self._consumer_link = consumer_link
        self._followed = queue
        self._place = -1
        """The last word that was sent or left out."""
        self._seen: tuple[Queue | None, int] = (None, 0)
        """The queue and the end of the durable events when nothing was left to send."""

    @property
    def duration_ms_max(self) -> int:
        """Return 0, no bound: this source keeps no state of the past."""
        return 0

    def wake(self) -> None:
        """See Follower."""
        self.peer.gateway.sources.wake(self)

    def end(self) -> None:
        """See Follower."""
        self.peer.gateway.sources.forget(self)

    def serve(self, turn: TurnBudget) -> Wait:
        """Send as many messages as the turn and the link allow, and return what the link waits for."""
        engine = self.peer.gateway.engine
        queue = engine.state.queues.get(self._followed)
        if queue is None:
            # The end of the consumer follows.
            return Wait.PEER
        if queue is self._seen[0] and (engine.durable_end == self._seen[1] or not self._is_behind(queue)):
            self.link.end_drain(has_more=False)
            return Wait.EVENTS
        if self._stream is None:
            self._words = ()
        self._entries = queue.entries
        return super().serve(turn)

    def _columns(self, words: Sequence[int]) -> list[Entry | None] | None:
        """Return the columns of messages, also when they expire: their deliveries have what is left of that."""
        queue = self.peer.gateway.engine.state.queues[self._followed]
        return queue.columns_of(words) if queue.has_columns else None

    def _fill(self) -> bool:
        """Read the next words if the present ones are sent, and return whether there are any."""
        if not self._words:
            engine = self.peer.gateway.engine
            queue = engine.state.queues[self._followed]
            self._words = () if queue.settings.paused else self._ahead(queue, engine.durable_end)
            self.link.available = len(self._words)
            self._seen = (None, 0) if self._words else (queue, engine.durable_end)
        return bool(self._words)

    def _ahead(self, queue: Queue, end: int) -> Sequence[int]:
        """Return the next words behind the place, in order."""
        runs = [run for words in queue.available_lists if words and (run := words.run_above(self._place))]
        if not runs:
            return ()
        # A run ends with its chunk: there may be more of its list before the words of another one.
        last = min([int.from_bytes(run[-WORD_BYTES:], "little") for run in runs])
        words = merge(*[unpack_words(run) for run in runs])
        found = tuple(islice(takewhile(lambda word: word <= last and word >> 16 < end, words), _AHEAD))
        if not queue.is_timed:
            return found
        # Those that have expired leave the queue in a moment.
        now_us = self._elapsed_us
        return tuple([word for word in found if not 0 < queue.expiry_of(word) <= now_us])

    @property
    def _elapsed_us(self) -> int:
        # The newest event is hardly older than the delivery: each credit and each message is one, or follows one.
        state = self.peer.gateway.engine.state
        return state.elapsed_us(state.time_us)

    def _is_behind(self, queue: Queue) -> bool:
        """Return whether the queue has messages behind the place, durable or not."""
        return any(words.run_above(self._place) for words in queue.available_lists if words)

    def _pass_by(self, words: Sequence[int]) -> None:
        super()._pass_by(words)
        if words:
            self._place = words[-1]

    def _send(self, words: Sequence[int], payloads: list[Buffer | None]) -> None:
        super()._send(words, payloads)
        sizes = [len(payload) for payload in payloads if payload is not None]
        link, traffic = self._consumer_link, self._consumer_link.traffic
        link.messages += len(sizes)
        link.bytes += sum(sizes)
        traffic.messages_out += len(sizes)
        traffic.bytes_out += sum(sizes)

    def _wait(self) -> Wait:
        if self._words:
            return super()._wait()
        return Wait.EVENTS if self.link.credit else Wait.PEER
