"""What really happened, noted event by event as the loop applies them; the laws of single transitions hold here."""

from collections import Counter

from ambermq.engine.entries.entry import PLAIN
from ambermq.engine.entries.entry_word import WORD_BYTES, total_size, unpack_words
from ambermq.engine.entries.outcome import OutcomeKind
from ambermq.engine.events import (
    Acquired,
    Chunked,
    ConsumerDetached,
    Event,
    Published,
    Settled,
    Started,
)
from ambermq.engine.fold.apply import apply
from ambermq.engine.model.queue import Queue
from ambermq.engine.model.state import State

__all__ = ["History", "check_conservation", "words_on"]


def words_on(queue: Queue) -> list[int]:
    """Return every word that a queue holds, available or acquired."""
    held = [word for words in queue.acquired.values() for word in words]
    return [*(word for words in queue.waiting_lists for word in words), *held]


def check_conservation(queue: Queue) -> None:
    """Nothing appears or disappears on a queue, and what it says of itself is what it holds."""
    counters = queue.counters
    gone = queue.accepted + counters.rejected + counters.purged + counters.damaged
    assert queue.published == queue.available + queue.acquired_count + gone
    words = words_on(queue)
    assert len(words) == len(set(words)) == queue.depth
    assert queue.acquired_count == sum(map(len, queue.acquired.values()))
    assert all(queue.acquired.values())
    assert list(queue.ready) == sorted(queue.ready)
    assert list(queue.returned) == sorted(queue.returned)
    assert queue.size == sum(total_size(word.to_bytes(WORD_BYTES, "little")) for word in words)
    assert set(queue.entries) <= {word >> 16 for word in words}
    assert queue.exclusions == sum(bool(entry.excluded) for entry in queue.entries.values())


class History:
    """Stands in for `apply` of the loop and of its dispatch, and remembers."""

    def __init__(self) -> None:
        self.states: dict[int, State] = {}
        """End of an event's records -> the state after it."""
        self.bodies: dict[int, bytes] = {}
        """Offset of a message -> its whole body."""
        self.volatile: set[int] = set()
        """Offsets of messages that were not published as durable."""
        self.acquisitions: Counter[tuple[int, int]] = Counter()
        """How often an entry, named by queue and offset, was acquired."""
        self.settled_ends: dict[tuple[int, int], list[int]] = {}
        """Entry -> the ends of the outcomes over it."""
        self._chunks: dict[int, bytes] = {}

    def apply(self, state: State, event: Event) -> State:
        """Apply, check, remember."""
        after = apply(state, event)
        end = event.offset + (len(event.words) // WORD_BYTES if type(event) is Published else 1)
        assert end not in self.states
        self.states[end] = after
        self._note(event, end)
        self._check_counts(state, event, after)
        return after

    def settled_end(self, entry: tuple[int, int], *, since: int) -> int:
        """Return the end of the first outcome over an entry after the offset `since`, 0 where there was none."""
        return next((end for end in self.settled_ends.get(entry, ()) if end > since), 0)

    def forget_from(self, end: int) -> None:
        """Forget the states after `end`: they are lost, and no offset is used twice."""
        self.states = {each: state for each, state in self.states.items() if each <= end}

    def _note(self, event: Event, end: int) -> None:
        match event:
            case Chunked():
                self._chunks[event.offset] = bytes(event.body)
            case Published():
                before = b"".join([self._chunks.pop(offset) for offset in event.chunks])
                for index, body in enumerate(event.bodies):
                    self.bodies[event.offset + index] = before + bytes(body)
                if not event.durable:
                    self.volatile.update(range(event.offset, end))
            case Acquired():
                self.acquisitions.update((event.queue, word >> 16) for word in unpack_words(event.words))
            case Settled():
                for word in unpack_words(event.words):
                    self.settled_ends.setdefault((event.queue, word >> 16), []).append(end)
            case _:
                pass

    def _check_counts(self, before: State, event: Event, after: State) -> None:
        """A count rises by one where a consumer was lost, the broker started or the outcome says so, else never."""
        failed: set[tuple[int, int]] = set()
        if type(event) is Started:
            failed = {(queue.id, word) for queue in before.queues.values() for word in _held(queue)}
        elif type(event) is ConsumerDetached:
            consumer = before.consumers[event.consumer]
            failed = {(consumer.queue, word) for word in before.queues[consumer.queue].held_by(consumer.id)}
        elif type(event) is Settled:
            outcome = event.outcome
            if outcome.kind is OutcomeKind.MODIFIED and outcome.delivery_failed:
                failed = {(event.queue, word) for word in unpack_words(event.words)}
        for queue_id, queue in after.queues.items():
            old = before.queues.get(queue_id)
            if old is None or old is queue:
                continue
            for word in words_on(queue):
                was, now = old.entries.get(word >> 16, PLAIN), queue.entries.get(word >> 16, PLAIN)
                assert now.count == was.count + ((queue_id, word) in failed)
                assert now.chunks == was.chunks or word not in words_on(old)


def _held(queue: Queue) -> list[int]:
    return [word for words in queue.acquired.values() for word in words]
