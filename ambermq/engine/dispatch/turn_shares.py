"""The shares of a turn: which consumers have one, how many messages it takes, and what they cost.

Rule 1. A turn takes whole rounds over its consumers, so each gets as many messages as the others. One with less than a
        round has the first consumers alone.
Rule 2. The cost of a delivery is counted in plain deliveries.
"""

from bisect import bisect_left
from itertools import accumulate
from typing import Final

from ambermq.engine.dispatch.demand import Want
from ambermq.engine.entries.entry import Entry
from ambermq.engine.entries.entry_word import size_of, unpack_words
from ambermq.log.format.record import AUX_MAX

__all__ = ["count_within", "entry_cost", "fair_share", "most_wanted", "priority_of"]

_REBUILD_COST: Final = 8
_BYTES_PER_DELIVERY: Final = 16
"""A delivery with annotations of outcomes costs as much as 9 others, and one more for each 16 bytes of them."""


def most_wanted(wants: list[Want]) -> list[Want]:
    """Return those consumers that have the highest priority."""
    highest = max((want.priority for want in wants), default=0)
    return [want for want in wants if want.priority == highest]


def fair_share(wants: list[Want], count: int) -> int:
    """Return the number of words in whole rounds over `wants`. For less than one round, cut `wants` to that number."""
    if not wants:
        return 0
    if len(wants) > AUX_MAX:
        # A record cannot name more consumers. These have one turn, and the next record has the others.
        del wants[AUX_MAX:]
        count = min(count, AUX_MAX)
    if count < len(wants):
        del wants[count:]
        return count
    rounds = min(count // len(wants), *[want.credit for want in wants])
    return rounds * len(wants)


def priority_of(want: Want) -> int:
    """Return what sorts consumers by priority, the highest first."""
    return -want.priority


def count_within(words: bytes, size: int) -> int:
    """Return how many of packed `words` reach `size` bytes; together they have at least that size."""
    return bisect_left(list(accumulate(map(size_of, unpack_words(words)))), size) + 1


def entry_cost(entry: Entry | None) -> int:
    """Return the deliveries that an entry costs beside its own.

    Its header is rebuilt; with added annotations the message is decoded and encoded again.
    """
    if entry is None:
        return 0
    if not entry.annotations and entry.marks is None:
        return 1
    return _REBUILD_COST + sum([len(key) + len(value) for key, value in entry.added]) // _BYTES_PER_DELIVERY
