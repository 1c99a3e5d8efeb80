"""The words of deferred messages: those that wait, and that a consumer has returned as undeliverable-here."""

from ambermq.engine.entries.entry import PLAIN
from ambermq.engine.entries.entry_word import entry_of
from ambermq.engine.model.queue import Queue

__all__ = ["deferred_word"]


def deferred_word(queue: Queue, offset: int, elapsed_us: int = 0) -> int:
    """Return the word of the deferred message at an offset; 0 if there is none.

    `elapsed_us` is the elapsed time: a message that has expired is none. Without it expiry does not count.
    """
    if not 0 <= offset < 1 << 47 or not queue.entries.get(offset, PLAIN).excluded:
        return 0
    for words in queue.available_lists:
        run = words.run_above((offset << 16) - 1) if words.count else b""
        word = int.from_bytes(run[:8], "little")
        if run and entry_of(word) == offset:
            return 0 if 0 < queue.expiry_of(word) <= elapsed_us else word
    return 0
