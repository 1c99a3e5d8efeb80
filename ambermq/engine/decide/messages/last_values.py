"""The keys of messages for queues that keep the last value of each key, and the messages that newer ones replace.

    "red", 'red as a symbol    one key: text        1, 1.0, 1 of any width    one key: number
    b"red"    true    1        three keys           absent, null, a list      no key

Rule 1. The key of a message is a hash of the value of the queue's field, read from the message when it comes to the
        queue. The event Keyed is in the batch of the message.
Rule 2. Equality is that of attachments (matching/field_terms.py).
Rule 3. What a message replaces ends by the event Discarded, right after the command that brought the message. A message
        that a consumer holds ends when it comes back. So at a maximum a message that replaces a waiting one has room.
"""

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Any, Final

from ambermq.engine.commands import Publish
from ambermq.engine.decide.context import DecisionContext
from ambermq.engine.entries.entry_word import pack_words, size_of, unpack_words
from ambermq.engine.events import Event, Keyed
from ambermq.engine.matching.field_terms import Sign, key_of
from ambermq.engine.model.queue import Queue
from ambermq.engine.model.queue_parts.last_values import KEY_BYTES, NO_KEY, keyed_by
from ambermq.engine.model.queue_parts.word_ranges import words_between
from ambermq.engine.model.state import State
from ambermq.engine.selectors.fields import ABSENT, Fields

__all__ = [
    "KEYED_MAX",
    "NO_KEYS",
    "Keys",
    "key_events",
    "keyed_queues",
    "keys_for",
    "keys_of_run",
    "keys_of_words",
    "part_of",
    "replaced_words",
    "room_of_replaced",
]

Keys = tuple[tuple[tuple[int, ...], bytes], ...]
"""For each field that is a key: the queues, and the packed keys of the messages."""
NO_KEYS: Final[Keys] = ()
KEYED_MAX: Final = 1000
"""The maximum of keys in one event, which is in one batch with the event of the messages."""


def keyed_queues(state: State, queues: Iterable[int]) -> dict[str, tuple[int, ...]]:
    """Return those of the queues that keep last values, by their field."""
    found: dict[str, tuple[int, ...]] = {}
    for one in queues:
        queue = state.queues.get(one)
        if queue is not None and (field := queue.settings.last_value):
            found[field] = (*found.get(field, ()), one)
    return found


def keys_of_run(state: State, command: Publish, queues: tuple[int, ...], context: DecisionContext) -> Keys:
    """Return the keys of a run of messages for those of the queues that keep last values."""
    wanted = keyed_queues(state, queues)
    return keys_for(wanted, map(context.router.fields_of, command.heads)) if wanted else NO_KEYS


def keys_for(wanted: dict[str, tuple[int, ...]], messages: Iterable[Fields | None]) -> Keys:
    """Return the keys of messages by the fields of queues; an unreadable message has none."""
    keys: dict[str, list[bytes]] = {field: [] for field in wanted}
    for fields in messages:
        for field, some in keys.items():
            some.append(NO_KEY if fields is None else _key_of(fields.get(field)))
    return tuple([(wanted[field], b"".join(some)) for field, some in keys.items() if any(map(any, some))])


def keys_of_words(
    wanted: dict[str, tuple[int, ...]], source: Queue, words: Sequence[int], context: DecisionContext
) -> Keys | None:
    """Return the keys of waiting messages of another queue; None if they must be read from the disk first."""
    entries = [source.entries.get(word >> 16) for word in words]
    fields = context.peek(source.id, words, entries)
    return None if fields is None or len(fields) < len(words) else keys_for(wanted, fields)


def part_of(keys: Keys, start: int, end: int) -> Keys:
    """Return the keys of the messages from index `start` up to `end`."""
    return tuple([(queues, some[start * KEY_BYTES : end * KEY_BYTES]) for queues, some in keys])


def key_events(keys: Keys, first: int, offset: int, time_us: int) -> list[Event]:
    """Return the events of keys of messages from entry `first` on; the first event has `offset`."""
    some = [(queues, packed) for queues, packed in keys if any(packed)]
    return [Keyed(offset + index, time_us, queues, first, packed) for index, (queues, packed) in enumerate(some)]


def replaced_words(before: State, after: State, event: Keyed) -> dict[int, bytes]:
    """Return the packed words that an event has replaced, by queue; `before` and `after` are the states around it."""
    found: dict[int, bytes] = {}
    for queue_id in event.queues:
        queue, old = after.queues.get(queue_id), before.queues.get(queue_id)
        values = None if queue is None else queue.keyed
        if values is None or not values.replaced:
            continue
        end = event.first + len(event.keys) // KEY_BYTES
        words = set(unpack_words(words_between(values.replaced, event.first, end)))
        if old is not None and old.keyed is not None:
            words.update(map(old.keyed.newest_of, set(keyed_by(event.keys))))
        replaced = sorted(word for word in words if word and values.replaced.holds(word))
        if replaced:
            found[queue_id] = pack_words(replaced)
    return found


def room_of_replaced(queue: Queue, command: Publish, context: DecisionContext) -> tuple[int, int]:
    """Return the messages, and their bytes, that the first message of a run replaces where they wait: one or none."""
    values = queue.keyed
    if values is None:
        return 0, 0
    word = values.newest_of(_key_of(context.router.fields_of(command.heads[0]).get(queue.settings.last_value)))
    return (1, size_of(word)) if word and queue.holds(word) else (0, 0)


def _key_of(value: Any) -> bytes:
    if value is ABSENT or value is None:
        return NO_KEY
    key = key_of(value)
    if key is Sign.NOTHING:
        return NO_KEY
    return blake2b(_text_of(key), digest_size=KEY_BYTES).digest()


def _text_of(key: Any) -> bytes:
    """Return the bytes that tell a key from every other one."""
    if isinstance(key, Sign):
        return b"!" + key.value.encode()
    if isinstance(key, str):
        return b"s" + key.encode("utf-8", "surrogatepass")
    if isinstance(key, bytes):
        return b"b" + key
    if isinstance(key, float) and not key.is_integer():
        return b"n" + repr(float(key)).encode()
    return b"n" + str(int(key)).encode()
