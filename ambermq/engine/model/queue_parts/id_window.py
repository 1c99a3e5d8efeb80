"""The message-ids that a queue has got lately: those of its dedup window.

    order   digest: 2 words | arrived_us | word of the message     for each id, the oldest first
    known   digest -> arrived_us << 64 | word of the message

Rule 1. An id is in the window for a time after the arrival of its first message, whatever becomes of that message.
Rule 2. Time alone makes no event: `find` compares times, and each `add` forgets some of what is over.
Rule 3. `known` is derived from `order`. If an id is in `order` twice, the later one holds.
"""

from struct import Struct as Packer
from typing import Final, final

from msgspec import Struct

from ambermq.engine.entries.entry_word import WORD_BYTES, unpack_words
from ambermq.engine.entries.id_digest import DIGEST_BYTES, NO_DIGEST
from ambermq.snapshot.persistent_map import PersistentMap
from ambermq.snapshot.persistent_queue import EMPTY_QUEUE, PersistentQueue

__all__ = ["FORGOTTEN_MAX", "NO_IDS", "WORDS_PER_ID", "IdWindow", "window_of"]

_ID: Final = Packer("<16sqQ")
WORDS_PER_ID: Final = _ID.size // WORD_BYTES
FORGOTTEN_MAX: Final = 256
"""With new ids a window forgets as many old ones, twice, and so many beyond: no step takes long. Part of the fold: it
never changes."""


@final
class IdWindow(Struct, frozen=True):
    """The ids of one queue; immutable."""

    order: PersistentQueue
    known: "PersistentMap[bytes, int]"

    def __len__(self) -> int:
        return self.order.count // WORDS_PER_ID

    def find(self, digest: bytes, now_us: int, window_us: int) -> int:
        """Return the word of the first message with an id if that came within the window; 0 if none did."""
        found = self.known.get(digest)
        if found is None or now_us - (found >> 64) >= window_us:
            return 0
        return found & 0xFFFF_FFFF_FFFF_FFFF

    def add(self, words: bytes, digests: bytes, now_us: int, window_us: int, ids_max: int) -> "IdWindow":
        """Return the window with the ids of new messages, and without old ones: those over, and beyond `ids_max`."""
        pieces: list[bytes] = []
        known = self.known.mutate()
        for index, word in enumerate(unpack_words(words)):
            digest = digests[index * DIGEST_BYTES : (index + 1) * DIGEST_BYTES]
            if digest != NO_DIGEST:
                pieces.append(_ID.pack(digest, now_us, word))
                known[digest] = now_us << 64 | word
        order = self.order.push(b"".join(pieces))
        excess = order.count // WORDS_PER_ID - ids_max
        count = 0
        some = order.head((2 * len(pieces) + FORGOTTEN_MAX) * WORDS_PER_ID)
        for digest, arrived_us, word in _ID.iter_unpack(some):
            if now_us - arrived_us < window_us and count >= excess:
                break
            count += 1
            if known.get(digest) == arrived_us << 64 | word:
                del known[digest]
        return IdWindow(order.pop(count * WORDS_PER_ID)[1] if count else order, known.finish())


NO_IDS: Final = IdWindow(EMPTY_QUEUE, PersistentMap())


def window_of(order: PersistentQueue) -> IdWindow:
    """Return the window of an `order`, which a snapshot holds. Raises ValueError if it is none."""
    if order.count % WORDS_PER_ID:
        raise ValueError(f"{order.count} words are not those of whole ids")
    if not order:
        return NO_IDS
    draft, rest = NO_IDS.known.mutate(), order
    while rest:
        some, rest = rest.pop(FORGOTTEN_MAX * WORDS_PER_ID)
        for digest, arrived_us, word in _ID.iter_unpack(some):
            draft[digest] = arrived_us << 64 | word
    return IdWindow(order, draft.finish())
