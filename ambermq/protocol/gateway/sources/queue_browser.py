"""A link that browses a queue: the peer gets copies of the messages that were available at one moment.

Rule 1. The queue at that moment is an immutable value: first the returned messages, then the others. Later changes of
        the queue do not affect it. Browsing changes nothing and writes no event.
Rule 2. No message is sent before that moment is durable.
Rule 3. Messages leave as they would to a consumer. A message that is unreadable or not selected is left out. It counts
        against the turn like a message that is sent.
Rule 4. Outcomes have no effect and are settled. A drain is answered when all messages are sent. Without a drain the
        link stays attached.
Rule 5. The browser holds the log until all messages are sent: so messages that a compaction removes can still be read.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain
from typing import Any, Final

from ambermq.engine.commands import Inspect, NoteBrowser
from ambermq.engine.config import EngineConfig
from ambermq.engine.entries.entry import Entry
from ambermq.engine.entries.entry_word import WORD_BYTES, entry_of, size_of, unpack_words
from ambermq.engine.entries.stored_message import StoredMessage
from ambermq.engine.errors import SelectorError
from ambermq.engine.history.background_jobs import BackgroundJob
from ambermq.engine.model.queue import Queue
from ambermq.engine.model.state import State
from ambermq.engine.selectors.pausable_fields import LONG_BYTES, KnownTerms, PausableFields
from ambermq.engine.selectors.selector import Selector, parse_selector
from ambermq.engine.time_budget import MatchUnfinished, TimeBudget
from ambermq.protocol.amqp10.events import Disposed
from ambermq.protocol.amqp10.link.sender import Sender
from ambermq.protocol.amqp10.spec import AmqpCondition, SenderSettleMode
from ambermq.protocol.amqp10.types.decode import Buffer
from ambermq.protocol.gateway.large.message_stream import MessageStream
from ambermq.protocol.gateway.large.turn_budget import TurnBudget, Wait
from ambermq.protocol.gateway.links.attach_terms import ConsumingTerms, Refusal, offered_by
from ambermq.protocol.gateway.links.outgoing_message import redelivered
from ambermq.protocol.gateway.links.routing_fields import RoutingFields
from ambermq.protocol.gateway.sources.source import SourcePeer

__all__ = ["QueueBrowser", "settle_browsed"]

_ENTRY_BYTES: Final = 200
"""An estimate of the memory of an entry's columns and of their place in a map."""


class QueueBrowser:
    """A queue at one moment, and the link that sends its messages."""

    __slots__ = (
        "_chunks",
        "_entries",
        "_hold",
        "_job",
        "_known",
        "_queue",
        "_selector",
        "_stream",
        "_words",
        "is_open",
        "link",
        "past_bytes",
        "peer",
        "terms",
    )

    def __init__(self, peer: SourcePeer, link: Sender, terms: ConsumingTerms) -> None:
        """Create the browser without its queue. Raises Refusal for a bad selector."""
        self._selector = _compiled(terms.selector, peer.gateway.engine.config)
        self.peer = peer
        self.link = link
        self.terms = terms
        self.is_open = True
        self._chunks: Iterator[bytes] = iter(())
        self._words: Sequence[int] = ()
        """The words of the present chunk that are not sent."""
        self._entries: Any = {}
        self._known: KnownTerms = {}
        """What is known of the test of a large message that is not finished."""
        self._stream: MessageStream | None = None
        """The large message that is being sent; None without one."""
        self._job: BackgroundJob | None = None
        self._queue = 0
        """The present queue that it browses, 0 for none: the link is a use of it."""
        self._hold = peer.gateway.engine.hold()
        self.past_bytes = 0
        """Bytes that this browser keeps of a moment in the past; 0 for the present, which the engine keeps anyway."""

    @property
    def duration_ms_max(self) -> int:
        """The bound of the link's duration, since it keeps a state of the past."""
        return self.peer.gateway.limits.browse_ms_max

    def inspect_queue(self, name: str) -> None:
        """Submit the command that reads the present queue."""
        self.peer.gateway.engine.submit(Inspect(self, partial(_queue_named, name), name))

    def await_job(self, job: BackgroundJob) -> None:
        """Wait for the job that finds the queue of the past."""
        self._job = job

    def answered(self, queue: Queue | None) -> None:
        """Answer the attach. Raises Refusal if the queue does not exist."""
        self._job = None
        if queue is None:
            when = "" if self.terms.at is None else " at that moment"
            raise Refusal(AmqpCondition.NOT_FOUND, f"there is no queue at {self.terms.address!r:.300}{when}")
        if self.terms.at is not None:
            needed_bytes = WORD_BYTES * (queue.available + 2 * queue.expiries.count)
            needed_bytes += _ENTRY_BYTES * len(queue.entries)
            self.peer.gateway.sources.check_past_room(needed_bytes)
            self.past_bytes = needed_bytes
        else:
            self._queue = queue.id
            self.peer.gateway.engine.submit(NoteBrowser(queue.id, 1))
        self._chunks = chain.from_iterable([words.chunks() for words in queue.available_lists])
        self._entries = queue.entries
        self.link.available = queue.available
        offered = offered_by(self.terms)
        self.link.accept(source=self.terms.source, target=self.terms.target, offered_capabilities=offered)

    def serve(self, turn: TurnBudget) -> Wait:
        """Send as many messages as the turn and the link allow, and return what the link waits for."""
        while self._fill() and not turn.is_spent:
            if self._stream is not None or self._is_large(self._words[0]):
                wait = self._serve_large(turn)
                if wait is Wait.PEER:
                    break
                if wait is not None:
                    return wait
                continue
            if not (count := min(self.link.sendable, turn.messages)):
                break
            words = self._next_run(count, turn.size)
            entries = self._columns(words)
            bodies = self.peer.gateway.engine.messages(words, entries)
            if bodies is None:
                return Wait.BODIES
            payloads = self._selected(bodies, entries, turn)
            words = words[: len(payloads)]
            self._pass_by(words)
            self._send(words, payloads)
            turn.spend(len(words), sum(map(size_of, words)))
        self.link.end_drain(has_more=bool(self._words))
        return self._wait()

    def _wait(self) -> Wait:
        """Return what the link waits for after a turn."""
        if self._words and self.link.sendable:
            return Wait.TURN
        self.link.session.await_room()
        return Wait.PEER

    def _is_large(self, word: int) -> bool:
        """Return whether a message is stored in pieces."""
        entry = self._entries.get(entry_of(word)) if self._entries else None
        return entry is not None and bool(entry.chunks)

    def _serve_large(self, turn: TurnBudget) -> Wait | None:
        """Send a part of the large message that is next; return what the link waits for, None if another one is next.

        Its first piece has all that a selector reads.
        """
        word, stream, engine = self._words[0], self._stream, self.peer.gateway.engine
        if stream is None:
            (entry,) = self._columns((word,)) or (None,)
            bodies = engine.messages([word], [entry])
            assert bodies is not None, "it is not read here"
            assert isinstance(bodies[0], StoredMessage), "the caller has checked it"
            rebuild = partial(redelivered, entry=entry, now_us=self._elapsed_us)
            if self._selector is not None:
                first = engine.piece(bodies[0], 0)
                if first is None:
                    return Wait.BODIES
                selected = self._selected([first or None], [entry], turn)
                if not selected:
                    return Wait.TURN
                if selected[0] is None:
                    self._pass_by((word,))
                    turn.spend(1, 0)
                    return None
            is_settled = self.link.sender_settle_mode != SenderSettleMode.UNSETTLED
            stream = MessageStream(engine, self.link, bodies[0], rebuild, word, settled=is_settled)
            self._stream = stream
        wait = stream.serve(turn)
        if not stream.is_done:
            return wait
        self._stream = None
        self._pass_by((word,))
        turn.spend(1, 0)
        return None

    def _pass_by(self, words: Sequence[int]) -> None:
        """Note that the next words are sent, or left out."""
        self._words = self._words[len(words) :]
        self.link.available -= len(words)

    def disposed(self, event: Disposed) -> None:
        """Settle the deliveries that the peer has not settled."""
        if self._stream is not None and self._stream.is_begun and self._stream.token in event.tokens:
            self._stream.abort()
        settle_browsed(self.link, event)

    def close(self) -> None:
        """Release the queue and the log, and cancel the job."""
        if self._queue:
            self.peer.gateway.engine.submit(NoteBrowser(self._queue, -1))
            self._queue = 0
        self.is_open = False
        if self._stream is not None:
            self._stream.close()
            self._stream = None
        self._hold.release()
        self._chunks, self._words, self._entries, self.past_bytes = iter(()), (), {}, 0
        if self._job is not None:
            self.peer.gateway.sources.drop(self._job)
            self._job = None

    def _fill(self) -> bool:
        """Read the next chunk if the present one is sent, and return whether any message is left."""
        if not self._words:
            self._words = unpack_words(next(self._chunks, b""))
            if not self._words:
                # All messages are sent: release their memory, since the link may stay attached.
                self._chunks, self._entries, self.past_bytes = iter(()), {}, 0
                self._hold.release()
        return bool(self._words)

    def _next_run(self, count: int, size: int) -> Sequence[int]:
        """Return the next words: at most `count`, up to and including the one that reaches `size` bytes.

        A large message, which is not the first, ends them.
        """
        words = self._words[:count]
        for index, word in enumerate(words):
            if index and self._entries and self._is_large(word):
                return words[:index]
            size -= size_of(word)
            if size <= 0:
                return words[: index + 1]
        return words

    def _columns(self, words: Sequence[int]) -> list[Entry | None] | None:
        entries = self._entries
        return [entries.get(entry_of(word)) for word in words] if entries else None

    def _selected(
        self, bodies: Sequence[Buffer | StoredMessage | None], entries: Sequence[Entry | None] | None, turn: TurnBudget
    ) -> list[Buffer | None]:
        """Return the messages to send; an element is None if the message is unreadable or not selected.

        They are fewer than the bodies if the time for selectors is over. Then the turn ends.
        """
        payloads = _payloads(bodies, entries, self._elapsed_us)
        selector, matching = self._selector, self.peer.gateway.engine.matching
        if selector is None:
            return payloads
        selected: list[Buffer | None] = []
        for payload in payloads:
            try:
                is_selected = payload is not None and self._is_selected(selector, payload, matching)
            except MatchUnfinished:
                turn.end()
                break
            selected.append(payload if is_selected else None)
            if matching.is_spent():
                turn.end()
                break
        return selected

    @property
    def _elapsed_us(self) -> int:
        """The elapsed time, by which the time to live of a message is what is left; 0: it is as it was sent."""
        return 0

    def _is_selected(self, selector: Selector, payload: Buffer, matching: TimeBudget) -> bool:
        """Return whether a message is selected. Raises MatchUnfinished; the next test is that of the same message."""
        fields = RoutingFields(payload)
        if len(payload) <= LONG_BYTES:
            return selector.matches(fields)
        is_selected = selector.matches(PausableFields(fields, matching, self._known))
        self._known = {}
        return is_selected

    def _send(self, words: Sequence[int], payloads: list[Buffer | None]) -> None:
        pairs = [(word, payload) for word, payload in zip(words, payloads, strict=True) if payload is not None]
        if pairs:
            is_settled = self.link.sender_settle_mode != SenderSettleMode.UNSETTLED
            self.link.send_run([word for word, _ in pairs], [payload for _, payload in pairs], is_settled)


def _compiled(text: str, config: EngineConfig) -> Selector | None:
    if not text:
        return None
    try:
        return parse_selector(text, bytes_max=config.argument_bytes_max, tokens_max=config.selector_tokens_max)
    except SelectorError as error:
        raise Refusal(AmqpCondition.INVALID_FIELD, f"the selector {text!r:.80}: {error}") from error


def _queue_named(name: str, state: State) -> Queue | None:
    return state.queue_named(name)


def _payloads(
    bodies: Sequence[Buffer | StoredMessage | None], entries: Sequence[Entry | None] | None, now_us: int
) -> list[Buffer | None]:
    whole = [None if isinstance(body, StoredMessage) else body for body in bodies]
    if entries is None:
        return whole
    return [
        body if body is None else redelivered(body, entry, now_us) for body, entry in zip(whole, entries, strict=True)
    ]


def settle_browsed(link: Sender, event: Disposed) -> None:
    """Settle deliveries whose peer has sent an outcome and waits for the settlement (receiver-settle-mode second)."""
    if not event.settled:
        link.settle_sent(event.first_id, len(event.tokens), event.state)
