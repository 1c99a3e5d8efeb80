"""Compression of the bodies of a batch: plain, or one zstandard frame.

    plain_bodies   check the bodies and decompress them if needed; every reader of bodies calls it
    decompress     decompress one frame of a known size
    Compressor     compress bodies; a compaction writes with it

Rule 1. The CRC covers the stored bytes and is checked first. So zstandard reads only bytes that were written, and a
copy of a batch needs no zstandard.
Rule 2. No memory is allocated for an unchecked size. `check_bounds` limits the size in the header, the size in the
frame must equal it, and the result gets no more memory than that.
Rule 3. The same bodies give the same bytes on every machine: level, parameters and the number of threads are fixed
here. Another version of zstandard may write other bytes; all versions read them.
Rule 4. Bodies that would not shrink by an eighth stay plain: reading them then costs nothing.
"""

from collections.abc import Sequence
from typing import Final

import zstandard

from ambermq.log.buffer import Buffer
from ambermq.log.format.batch import COMPRESSED, BatchHeader, Mismatch, check_bodies

__all__ = ["Compressor", "decompress", "plain_bodies"]

_LEVEL: Final = 3
_WORTH_DIVISOR: Final = 8


class Compressor:
    """A compressor for the bodies of one batch after the other. Only one thread may use it."""

    __slots__ = ("_zstandard",)

    def __init__(self) -> None:
        self._zstandard = zstandard.ZstdCompressor(
            level=_LEVEL, write_checksum=True, write_content_size=True, write_dict_id=False, threads=0
        )

    def compress(self, bodies: Sequence[Buffer]) -> bytes | None:
        """Return the bodies, joined, as one frame; None if the frame saves less than an eighth."""
        plain = b"".join(bodies)
        frame = self._zstandard.compress(plain)
        return frame if len(frame) <= len(plain) - len(plain) // _WORTH_DIVISOR - 1 else None


def plain_bodies(header: BatchHeader, stored: Buffer) -> Buffer | Mismatch:
    """Return the joined bodies of a batch whose head is right, or a Mismatch if they are not what was written.

    `stored` is the batch from `header.head_bytes` to `header.length`, padding included, or fewer bytes if the file ends
    before. The result has `header.bodies_bytes` bytes.
    """
    mismatch = check_bodies(header, stored)
    if mismatch is not None:
        return mismatch
    stored_bodies = memoryview(stored)[: header.body_bytes]
    return decompress(stored_bodies, header.plain_bytes) if header.flags & COMPRESSED else stored_bodies


def decompress(frame: Buffer, plain_bytes: int) -> bytes | Mismatch:
    """Return the content of one frame; a Mismatch if its size field or its content is not `plain_bytes` long."""
    expected = f"one zstandard frame of {plain_bytes} bytes"
    try:
        claimed = zstandard.frame_content_size(frame)
        if claimed != plain_bytes:
            return Mismatch(expected, "a frame without its size" if claimed < 0 else f"a frame of {claimed} bytes")
        # A decompressor serves one thread at a time. Making one for each batch costs 1 % of the decompression.
        plain = zstandard.ZstdDecompressor().decompress(frame, allow_extra_data=False)
    except zstandard.ZstdError as error:
        return Mismatch(expected, str(error))
    return plain if len(plain) == plain_bytes else Mismatch(expected, f"{len(plain)} bytes")
