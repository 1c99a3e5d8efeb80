"""The words that each consumer of a queue holds, in the order of acquiring."""

from ambermq.snapshot.persistent_map import PersistentMap
from ambermq.snapshot.persistent_queue import EMPTY_QUEUE, PersistentQueue

__all__ = ["Holdings", "all_held", "distributed", "without_held"]

Holdings = PersistentMap[int, PersistentQueue]
"""Words by the id of the consumer; no consumer without a word."""


def distributed(acquired: Holdings, consumers: tuple[int, ...], words: bytes) -> Holdings:
    """Return what consumers hold after they acquired packed words, one each in turn."""
    view = memoryview(words).cast("Q")
    after = acquired.mutate()
    for index, consumer in enumerate(consumers):
        share = bytes(view[index :: len(consumers)])
        if share:
            after[consumer] = after.get(consumer, EMPTY_QUEUE).push(share)
    return after.finish()


def all_held(acquired: Holdings) -> bytes:
    """Return the packed words that all consumers hold."""
    return b"".join([held.to_bytes() for held in acquired.values()])


def without_held(acquired: Holdings, words: bytes) -> tuple[bytes, Holdings]:
    """Return those of packed `words` that consumers hold, and what each consumer holds without them."""
    found, after = b"", acquired
    for consumer, held in acquired.items():
        taken, left = held.remove(words)
        if taken:
            found += taken
            after = after.set(consumer, left) if left else after.delete(consumer)
    return found, after
