"""The keys of records in an index. By them it finds the events of one message without a scan.

    entry >> 8      a bucket of 256 entries: records whose words name one of them (acquired, settled, damaged)
    1 << 63 | id    a queue or a consumer: the rare records about it without words (queue deleted, purged,
                    attached to a muxer, detached from it; consumer detached); id 0: the broker started,
                    or the virtual host was reset

Rule 1. A run of consecutive words costs one key for each bucket. Each pair of key and record is yielded once.
Rule 2. A bucket is a hint: a look-up reads the record and compares the words.
Rule 3. Message records need no keys besides their own columns, so a batch of message records costs nothing.
"""

from collections.abc import Iterator, Sequence
from struct import Struct, unpack_from
from typing import Final

from ambermq.engine.entries.entry_word import WORD_BYTES
from ambermq.engine.events import Acquired
from ambermq.engine.events.event_type import IndexKeys
from ambermq.engine.events.registry import NUMBERS, REGISTRY
from ambermq.log.format.batch import Batch

__all__ = ["BROKER", "bucket_key", "node_key", "touches_of"]

BROKER: Final = 0
"""The id of the key for starts of the broker and resets."""

_NODE_BIT: Final = 1 << 63
_BUCKET_SHIFT: Final = 8
_WORD_SHIFT: Final = 16 + _BUCKET_SHIFT
_RECORD: Final = Struct("<I4xI4xqq8xIHBx")
_RECORD_BYTES: Final = 48
_TYPE_AT: Final = 46
_ACQUIRED: Final = NUMBERS[Acquired]
_BODIES_ALONE: Final = bytes(one.number for one in REGISTRY if one.layout.body)
_WITH_WORDS: Final = frozenset(one.number for one in REGISTRY if one.keys is IndexKeys.WORDS)
_ABOUT_ALL: Final = frozenset(one.number for one in REGISTRY if one.keys is IndexKeys.BROKER)
_ABOUT_NODES: Final = _ABOUT_ALL | {one.number for one in REGISTRY if one.keys is IndexKeys.NODE}


def bucket_key(entry: int) -> int:
    """Return the key of the records that can name an entry."""
    return entry >> _BUCKET_SHIFT


def node_key(node: int) -> int:
    """Return the key of the records about a queue, a consumer, or BROKER."""
    return _NODE_BIT | node


def touches_of(batch: Batch) -> Iterator[tuple[int, int]]:
    """Yield each pair (key, record offset) of the records of a batch once."""
    if not batch.records[_TYPE_AT::_RECORD_BYTES].strip(_BODIES_ALONE):
        return
    base, meta, end = batch.header.base_offset, batch.meta, 0
    for delta, meta_bytes, queue, ref, count, aux, kind in _RECORD.iter_unpack(batch.records):
        start, end = end, end + meta_bytes
        if kind in _WITH_WORDS:
            if kind == _ACQUIRED and aux > 1:
                start += aux * WORD_BYTES
            for bucket in _buckets(unpack_from(f"<{count or 1}Q", meta, start)):
                yield bucket, base + delta
        elif kind in _ABOUT_NODES:
            yield _NODE_BIT | (BROKER if kind in _ABOUT_ALL else queue or ref), base + delta


def _buckets(words: Sequence[int]) -> Sequence[int]:
    first, last = min(words), max(words)
    if first >> _WORD_SHIFT == last >> _WORD_SHIFT:
        return (first >> _WORD_SHIFT,)
    if (last >> 16) - (first >> 16) == len(words) - 1:
        # The words are distinct, and as many as the range from the least to the greatest: the range has no gap.
        return range(first >> _WORD_SHIFT, (last >> _WORD_SHIFT) + 1)
    return sorted({word >> _WORD_SHIFT for word in words})
