"""The messages that a request to the node NAME/$management means, and the limits of an answer with messages.

Rule: the functions with a state are called by the engine (Inspect), and return a value for the node.
"""

from collections.abc import Sequence
from itertools import islice
from typing import Final, NamedTuple

from ambermq.engine.entries.entry import Entry
from ambermq.engine.entries.entry_word import pack_words, size_of, total_size
from ambermq.engine.errors import Refused
from ambermq.engine.model.deferred_word import deferred_word
from ambermq.engine.model.queue_parts.word_ranges import words_from
from ambermq.engine.model.state import State
from ambermq.protocol.amqp10.spec import AmqpCondition, LinkCondition
from ambermq.protocol.gateway.nodes.entity_operations import message_row, state_of
from ambermq.protocol.gateway.nodes.message_reader import MessageReader

__all__ = [
    "PEEK_BYTES_MAX",
    "RECEIVE_BYTES_MAX",
    "ROW_BYTES",
    "SHOWN_BYTES_MAX",
    "Found",
    "Retry",
    "Taken",
    "answer_size",
    "deferred_messages",
    "retry",
    "too_large",
    "waiting_page",
]

PEEK_BYTES_MAX: Final = 1 << 20
"""An answer to a peek ends before the message that passes this size, unless it is the first one."""
SHOWN_BYTES_MAX: Final = 64 << 10
"""How much of the body of a large message a peek shows."""
RECEIVE_BYTES_MAX: Final = 4 << 20
"""The most bytes of the messages that one request receives."""
ROW_BYTES: Final = 256
"""The most bytes that an answer adds to a message, and that it has beside its messages."""


class Found(NamedTuple):
    """Messages whose bytes are needed for an answer."""

    words: Sequence[int]
    entries: Sequence[Entry | None]
    states: Sequence[int]


class Taken(NamedTuple):
    """Deferred messages that the consumer of a request has acquired."""

    words: Sequence[int]
    entries: Sequence[Entry | None]
    until_ms: int


class Retry(NamedTuple):
    """The disk may have read what an answer needs."""


def waiting_page(name: str, first: int, count: int, state: State) -> Found | Refused:
    """Return the messages that wait on a queue from an offset on, in the order of their offsets."""
    queue = state.queue_named(name)
    if queue is None:
        return Refused(AmqpCondition.NOT_FOUND, f"there is no queue {name!r:.80}")
    words: list[int] = []
    size = 0
    for word in islice(words_from([one for one in queue.waiting_lists if one.count], first), count):
        entry = queue.entries.get(word >> 16)
        words.append(word)
        size += min(size_of(word), SHOWN_BYTES_MAX) if entry is not None and entry.chunks else size_of(word)
        if size >= PEEK_BYTES_MAX:
            break
    return Found(words, [queue.entries.get(word >> 16) for word in words], [state_of(queue, word) for word in words])


def deferred_messages(name: str, offsets: Sequence[int], bytes_max: int, state: State) -> Found | Refused:
    """Return deferred messages of a queue: all of them, or why not."""
    queue = state.queue_named(name)
    words = [] if queue is None else [deferred_word(queue, offset) for offset in dict.fromkeys(offsets)]
    if queue is None or 0 in words:
        return Refused(AmqpCondition.NOT_FOUND, f"{words.count(0)} of {len(words)} messages are not deferred")
    if (size := total_size(pack_words(words))) > bytes_max:
        return too_large(len(words), size, max(bytes_max, 0))
    return Found(words, [queue.entries.get(word >> 16) for word in words], ())


def too_large(count: int, size: int, bytes_max: int) -> Refused:
    """Return the refusal of deferred messages that are too large for an answer."""
    found = f"the answer with {count} messages would have {size} bytes, {bytes_max} are allowed"
    why = f"{found}: they stay deferred, and a receiver of the queue can get them"
    return Refused(LinkCondition.MESSAGE_SIZE_EXCEEDED, why)


def answer_size(reader: MessageReader) -> int:
    """Return the most bytes of an answer with deferred messages: annotations may have been added to them."""
    rows = zip(reader.words, reader.entries, reader.bodies, strict=True)
    return ROW_BYTES + sum(
        [ROW_BYTES + len(message_row(word, entry, body or b"", state=1)["message"]) for word, entry, body in rows]
    )


def retry(_state: State) -> Retry:
    """Return at once: the answer to a command says that the disk may have read something."""
    return Retry()
