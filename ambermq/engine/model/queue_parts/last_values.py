"""The keys of the messages of a last-value queue: which message of each key is the newest.

    newest    key -> word      the newest available or acquired message of each key
    keys      word -> key      those messages, and the scheduled ones, whose time is to come
    replaced  words            messages that a newer one has replaced, until they leave the queue

Rule 1. A key is the hash of a value, 16 bytes. Two values with one hash are one key; no sender meets with one in 2^64
        messages.
Rule 2. `replaced` and `keys` have no word in common. A word is in them as long as the queue has it, and not set aside.
Rule 3. A scheduled message replaces none, and none replaces it, before its time has come.
Rule 4. A queue without a key has no value of this class.
"""

from collections.abc import Iterable, Sequence
from typing import Final, final

from msgspec import Struct

from ambermq.engine.entries.entry_word import WORD_BYTES, pack_words
from ambermq.engine.entries.redelivery_order import merge_returned
from ambermq.snapshot.packed_table import PackedTable, new_table
from ambermq.snapshot.persistent_queue import EMPTY_QUEUE, PersistentQueue

__all__ = ["KEY_BYTES", "NO_KEY", "LastValues", "keyed_by", "only_words", "restored", "with_keys", "without_keys"]

KEY_BYTES: Final = 16
NO_KEY: Final = bytes(KEY_BYTES)
"""The place of a key for a message without one."""


@final
class LastValues(Struct, frozen=True):
    """The keys of the messages of one queue; immutable."""

    newest: PackedTable
    keys: PackedTable
    replaced: PersistentQueue = EMPTY_QUEUE

    def key_of(self, word: int) -> bytes | None:
        """Return the key of a message that none has replaced; None if it has none."""
        return self.keys.get(word.to_bytes(WORD_BYTES, "little"))

    def newest_of(self, key: bytes) -> int:
        """Return the word of the newest message of a key; 0 if there is none."""
        word = self.newest.get(key)
        return 0 if word is None else int.from_bytes(word, "little")


_NOTHING: Final = LastValues(new_table(KEY_BYTES, WORD_BYTES), new_table(WORD_BYTES, KEY_BYTES))


def with_keys(
    values: LastValues | None, words: Sequence[tuple[int, bytes]], scheduled: Iterable[tuple[int, bytes]]
) -> LastValues | None:
    """Return the keys with those of more messages, in the order of their entries."""
    before = values or _NOTHING
    newest, keys, replaced = before.newest.mutate(), before.keys.mutate(), b""
    for number, key in words:
        word = number.to_bytes(WORD_BYTES, "little")
        older = newest.put(key, word)
        if older is not None and older != word:
            keys.pop(older)
            replaced += older
        keys.put(word, key)
    for number, key in scheduled:
        keys.put(number.to_bytes(WORD_BYTES, "little"), key)
    after = LastValues(newest.finish(), keys.finish(), merge_returned(before.replaced, replaced))
    return _filled(after)


def without_keys(values: LastValues, words: bytes) -> LastValues | None:
    """Return the keys without those of packed `words`, which leave the queue."""
    newest, keys, replaced = values.newest.mutate(), values.keys.mutate(), values.replaced
    for start in range(0, len(words), WORD_BYTES):
        word = words[start : start + WORD_BYTES]
        key = keys.pop(word)
        if key is not None and newest.get(key) == word:
            newest.pop(key)
    if replaced:
        replaced = replaced.remove_ordered(words)[1]
    return _filled(LastValues(newest.finish(), keys.finish(), replaced))


def only_words(values: LastValues, words: Sequence[int], scheduled: Iterable[int]) -> LastValues | None:
    """Return the keys of these words alone, which are all that stay on the queue."""
    later = set(scheduled)
    rows = [(word, key) for word in words if (key := values.key_of(word)) is not None]
    replaced = [word for word in words if values.replaced.holds(word)] if values.replaced else []
    return restored(rows, later, EMPTY_QUEUE.push(pack_words(sorted(replaced))))


def restored(rows: Sequence[tuple[int, bytes]], scheduled: "set[int]", replaced: PersistentQueue) -> LastValues | None:
    """Return the keys from words with their keys; `scheduled` are those of them whose time is to come."""
    known = [(word.to_bytes(WORD_BYTES, "little"), key) for word, key in rows]
    keys = _NOTHING.keys.filled((word + key for word, key in known), len(known))
    if scheduled:
        known = [(word, key) for word, key in known if int.from_bytes(word, "little") not in scheduled]
    newest = _NOTHING.newest.filled((key + word for word, key in known), len(known))
    return _filled(LastValues(newest, keys, replaced))


def keyed_by(keys: bytes) -> list[bytes]:
    """Return the keys of packed `keys`."""
    return [keys[start : start + KEY_BYTES] for start in range(0, len(keys), KEY_BYTES)]


def _filled(values: LastValues) -> LastValues | None:
    return values if values.keys.count or values.replaced.count else None
