"""Copying some records of a segment into batches of their own: what a backup keeps, and a compaction.

    records in   [ 100 101 102 103 ] [ 104 105 ]           of one sealed segment, batch by batch
    kept           101     103         105                 offsets, rising
    batches out  [ 101 103 105 ]                           offsets as they were, with holes between

Rule 1. A picked record is what it was: offset, time, columns, meta, body. Only the deltas begin anew, and the batch is
marked KEPT: what was between its records is gone, so nobody may fold it.
Rule 2. A batch ends as soon as it holds 256 KiB, or before a record would take it past the bound of all batches, or
where the epoch changes: small enough to read for one message, large enough to be read for many.
Rule 3. Bodies are checked before they are copied, and every offset asked for must be there: else it is damage.
Rule 4. Pure, and alike to the last byte for the same input: a copy can be made again anywhere and compared.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from log.batch import BATCH_ALIGNMENT, BATCH_HEADER_BYTES, KEPT, Batch, check_bodies, encode_batch
from log.buffer import Buffer
from log.errors import DamageError
from log.record import RECORD
from log.scan import Walk

__all__ = ["pick_records"]

_BATCH_BYTES_TARGET: Final = 256 << 10
_DELTA_END: Final = 1 << 32


class _Gathering:
    """The records of the batch that is gathered."""

    __slots__ = (
        "base_offset",
        "base_timestamp_us",
        "bodies",
        "body_bytes",
        "durable_end",
        "epoch",
        "metas",
        "records",
        "size",
    )

    def __init__(self, epoch: int, base_offset: int, base_timestamp_us: int) -> None:
        self.epoch = epoch
        self.base_offset = base_offset
        self.base_timestamp_us = base_timestamp_us
        self.durable_end = 0
        self.records: list[bytes] = []
        self.metas: list[bytes] = []
        self.bodies: list[bytes] = []
        self.body_bytes = 0
        self.size = BATCH_HEADER_BYTES + BATCH_ALIGNMENT

    def has_room(self, epoch: int, offset: int, record_bytes: int, *, batch_bytes_max: int) -> bool:
        return (
            epoch == self.epoch
            and self.size < _BATCH_BYTES_TARGET
            and self.size + record_bytes <= batch_bytes_max
            and offset - self.base_offset < _DELTA_END
        )

    def encode(self, salt_crc: int) -> list[Buffer]:
        return encode_batch(
            salt_crc=salt_crc,
            base_offset=self.base_offset,
            base_timestamp_us=self.base_timestamp_us,
            durable_end=self.durable_end,
            epoch=self.epoch,
            count=len(self.records),
            records=b"".join(self.records),
            meta=b"".join(self.metas),
            bodies=self.bodies,
            body_bytes=self.body_bytes,
            flags=KEPT,
        )


def pick_records(walks: Iterable[Walk], kept: Sequence[int], *, path: str, salt_crc: int) -> Iterator[list[Buffer]]:
    """Yield batches, as buffers to be written one after the other, of the records of one segment that are in `kept`.

    `walks` stand on each batch of the segment at `path`, `kept` are rising offsets that it must hold, and `salt_crc` is
    that of the segment that the batches are for. Raises DamageError where bodies are not what was written, or a record
    is not there.
    """
    gathering: _Gathering | None = None
    index = 0
    for walk in walks:
        header = walk.header
        assert header is not None
        end = bisect_left(kept, walk.next_offset(), index)
        if index == end:
            continue
        batch, bodies = walk.batch(), _checked_bodies(walk, path)
        for columns, meta, body in _picked(batch, bodies, kept[index:end], path):
            offset, time_us = header.base_offset + columns[0], header.base_timestamp_us + columns[6]
            size = RECORD.size + len(meta) + len(body)
            if gathering is None or not gathering.has_room(
                header.epoch, offset, size, batch_bytes_max=walk.batch_bytes_max
            ):
                if gathering is not None:
                    yield gathering.encode(salt_crc)
                gathering = _Gathering(header.epoch, offset, time_us)
            _add(gathering, offset, time_us, columns, meta, body)
            gathering.durable_end = max(gathering.durable_end, header.durable_end)
        index = end
    if index < len(kept):
        raise DamageError(path, 0, f"a record at offset {kept[index]}", "none")
    if gathering is not None:
        yield gathering.encode(salt_crc)


def _checked_bodies(walk: Walk, path: str) -> memoryview:
    header, bodies = walk.header, walk.bodies()
    assert header is not None
    mismatch = check_bodies(header, bodies)
    if mismatch is not None:
        raise DamageError(path, walk.position + header.head_bytes, mismatch.expected, mismatch.found)
    return memoryview(bodies)


def _picked(
    batch: Batch, bodies: memoryview, kept: Sequence[int], path: str
) -> Iterator[tuple[tuple[int, ...], bytes, bytes]]:
    """Yield columns, meta and body of those records of a batch that are in `kept`, all of which it must hold."""
    base_offset = batch.header.base_offset
    meta_at = body_at = found = 0
    for columns in batch.rows():
        meta_end, body_end = meta_at + columns[2], body_at + columns[1]
        if found < len(kept) and base_offset + columns[0] == kept[found]:
            # A copy: a view would keep all of its batch in memory until the new one is written.
            yield columns, batch.meta[meta_at:meta_end], bytes(bodies[body_at:body_end])
            found += 1
        meta_at, body_at = meta_end, body_end
    if found < len(kept):
        raise DamageError(path, batch.position, f"a record at offset {kept[found]}", "none")


def _add(gathering: _Gathering, offset: int, time_us: int, columns: tuple[int, ...], meta: bytes, body: bytes) -> None:
    _, body_length, meta_length, id_hash, queue, ref, _, *rest = columns
    delta, time_delta = offset - gathering.base_offset, time_us - gathering.base_timestamp_us
    gathering.records.append(RECORD.pack(delta, body_length, meta_length, id_hash, queue, ref, time_delta, *rest))
    gathering.metas.append(meta)
    gathering.bodies.append(body)
    gathering.body_bytes += body_length
    gathering.size += RECORD.size + meta_length + body_length
