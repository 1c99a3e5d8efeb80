"""The bodies of a batch as they were, whether they lie plain or as one zstandard frame.

    plain_bodies   what every reader of bodies calls: checked, and decompressed where need be
    decompressed   one frame of a size that is known
    Compressor     what a compaction writes them with

Rule 1. The CRC is of what lies on the disk and is checked first: only bytes that were written are given to zstandard,
and who copies a batch needs none of it.
Rule 2. Nothing is allocated for a claim. The header's is bounded before (`check_bounds`), the frame's must be the same,
and that is all the memory there is for the outcome.
Rule 3. The same bodies give the same bytes on every machine: level, parameters and the number of threads are fixed
here. (Another version of zstandard may write others, which all versions read.)
Rule 4. What would not become smaller by an eighth stays as it is: to read it costs nothing then.
"""

from collections.abc import Sequence
from typing import Final

import zstandard

from ambermq.log.buffer import Buffer
from ambermq.log.format.batch import COMPRESSED, BatchHeader, Mismatch, check_bodies

__all__ = ["Compressor", "decompressed", "plain_bodies"]

_LEVEL: Final = 3
_WORTH_DIVISOR: Final = 8


class Compressor:
    """Compresses the bodies of one batch after the other; for one thread."""

    __slots__ = ("_zstandard",)

    def __init__(self) -> None:
        self._zstandard = zstandard.ZstdCompressor(
            level=_LEVEL, write_checksum=True, write_content_size=True, write_dict_id=False, threads=0
        )

    def compress(self, bodies: Sequence[Buffer]) -> bytes | None:
        """Return the frame of the bodies, back to back; None where it is not worth it."""
        plain = b"".join(bodies)
        frame = self._zstandard.compress(plain)
        return frame if len(frame) <= len(plain) - len(plain) // _WORTH_DIVISOR - 1 else None


def plain_bodies(header: BatchHeader, stored: Buffer) -> Buffer | Mismatch:
    """Return the bodies of a batch whose head is right, back to back; where they are not what was written, say how.

    `stored` is the batch from `header.head_bytes` to `header.length`, padding included, or what there was before the
    end of the file. The outcome has `header.bodies_bytes`.
    """
    wrong = check_bodies(header, stored)
    if wrong is not None:
        return wrong
    lying = memoryview(stored)[: header.body_bytes]
    return decompressed(lying, header.plain_bytes) if header.flags & COMPRESSED else lying


def decompressed(frame: Buffer, plain_bytes: int) -> bytes | Mismatch:
    """Return what one frame holds, which must be `plain_bytes`, claimed by the frame itself; else say what is wrong."""
    expected = f"one zstandard frame of {plain_bytes} bytes"
    try:
        claimed = zstandard.frame_content_size(frame)
        if claimed != plain_bytes:
            return Mismatch(expected, "one that does not tell its size" if claimed < 0 else f"one of {claimed}")
        # A decompressor serves one thread at a time; one for each batch costs a hundredth of the work.
        plain = zstandard.ZstdDecompressor().decompress(frame, allow_extra_data=False)
    except zstandard.ZstdError as error:
        return Mismatch(expected, str(error))
    return plain if len(plain) == plain_bytes else Mismatch(expected, f"one of {len(plain)}")
