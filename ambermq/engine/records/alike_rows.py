"""The rest of a run of alike records in a batch, found column by column: a start reads millions of them.

A column is a view with a step. Two views are compared at the speed of C, so the equality of all records of a run is
that of each column with itself, one record further. A record of a long run costs a fifth of what its row costs.
"""

from typing import Final

from ambermq.log.format.record import RECORD

__all__ = ["alike_sizes"]

_SIZE: Final = RECORD.size
_WORDS: Final = _SIZE // 8
_TAIL_WORDS: Final = (5, 2, 3, 4)
"""The 8 byte words of RECORD_TAIL: count, aux, type and flags together; queue, ref, timestamp_delta."""
_NUMBERS: Final = _SIZE // 4
_BODY_LENGTH: Final = 1
_META_LENGTH: Final = 2
_WINDOW: Final = 64


def alike_sizes(records: bytes, row: int) -> list[int]:
    """Return the body sizes of the records behind a row that are like it, and whose offsets follow one another.

    Alike are records whose columns are equal, but for offset, length of the body and hash of the message-id. They
    are compared in windows, each four times as large as the one before. After one that is not alike they become
    smaller, down to the first size: of the end of a run, few rows are left to be read one by one.
    """
    view = memoryview(records)
    sizes: list[int] = []
    width, left = _WINDOW, len(view) // _SIZE - row
    largest = left
    while left > 1:
        # A window begins with the last record of the one before.
        count = min(width, left)
        window = view[row * _SIZE : (row + count) * _SIZE]
        numbers = window.cast("I")
        # Offsets rise in a batch: with a gap the last one is further away.
        if numbers[-_NUMBERS] - numbers[0] != count - 1 or not _are_alike(window, numbers):
            if count <= _WINDOW:
                break
            width = largest = max(_WINDOW, count // 4)
            continue
        lengths = numbers[_BODY_LENGTH::_NUMBERS]
        sizes += [lengths[0]] * (count - 1) if _is_constant(lengths) else lengths.tolist()[1:]
        row, left, width = row + count - 1, left - count + 1, min(width * 4, largest)
    return sizes


def _are_alike(window: memoryview, numbers: memoryview) -> bool:
    words = window.cast("Q")
    is_tail_constant = all(_is_constant(words[word::_WORDS]) for word in _TAIL_WORDS)
    return is_tail_constant and _is_constant(numbers[_META_LENGTH::_NUMBERS])


def _is_constant(column: memoryview) -> bool:
    return column[:-1] == column[1:]
