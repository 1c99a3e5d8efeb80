"""The read-only part of a repair: it finds the valid batches of a damaged log.

Rule 1. A batch is valid if its head CRC is right, at any position in its segment. A batch whose bodies are wrong is
kept: its events are right, and its bodies read as DAMAGED, as in any log.
Rule 2. Below the durable end every valid batch is kept, and the offsets missing between them are lost. From the durable
end on batches are kept as long as they are contiguous: that is the tail. No client got a promise about the rest.
Rule 3. Without a manifest the headers of the segments give their order. A later file that begins at or before the base
of an earlier one has replaced it. A later file that begins after that base ends the earlier one.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from ambermq.log.errors import DamageError, ForeignError, LogError
from ambermq.log.format.batch import KEPT, check_bodies
from ambermq.log.format.segment import SEGMENT_HEADER_BYTES, SegmentHeader, segment_path
from ambermq.log.format.time_range import TimeRange, union
from ambermq.log.manifest.manifest import VERSION, LostRange, Manifest, segments_path
from ambermq.log.segments.batch_walk import BatchWalk, find_later, times_of
from ambermq.log.segments.readable_header import surviving_header
from ambermq.log.segments.segment_reader import SegmentReader
from ambermq.log.segments.tail_survey import EPOCH_OFFSETS
from ambermq.log.storage.interface import Storage

__all__ = ["Claim", "Salvage", "Salvages", "claims_of", "headers_of", "rebuild_manifest", "salvage"]

_NO_END: Final = 1 << 62
_EDITS_PER_FILE: Final = 16
_SEGMENT_NAME: Final = re.compile(r"[0-9a-f]{16}\.log")


@dataclass(frozen=True, slots=True)
class Claim:
    """The expected range of a segment, from the manifest, or from the order of the headers without one."""

    file_id: int
    """The id of the file."""
    base_offset: int
    """The first offset of its range."""
    next_offset: int
    """The first offset after its range; for the last segment above every offset."""
    size: int | None
    """The valid bytes; None if unknown, which means up to the end of the file."""
    has_header: bool = False
    """Whether its header was synced before the manifest named it, so that zeros are damage."""


@dataclass(slots=True)
class Salvage:
    """The valid batches of one segment, and its faults."""

    claim: Claim
    """The range that the segment should have."""
    path: str
    """The path of the file."""
    header: SegmentHeader | None = None
    """The header. A damaged one is rebuilt with the salt of its batches. None if no batch survives."""
    faults: list[DamageError] = field(default_factory=list)
    """The faults in order of positions; empty if the file can stay."""
    runs: list[tuple[int, int]] = field(default_factory=list)
    """The [start, end) positions of contiguous kept batches."""
    lost: list[LostRange] = field(default_factory=list)
    """Ranges of durable offsets that are missing."""
    batch_count: int = 0
    """The number of kept batches."""
    next_offset: int = 0
    """The offset after the last kept batch."""
    times: TimeRange | None = None
    """The times of the records in the kept batches; None if they have none."""

    @property
    def end(self) -> int:
        """The position after the last kept batch."""
        return self.runs[-1][1] if self.runs else SEGMENT_HEADER_BYTES

    def add(self, walk: BatchWalk) -> None:
        """Keep the current batch of `walk`."""
        assert walk.header is not None
        end = walk.position + walk.header.length
        if self.runs and self.runs[-1][1] == walk.position:
            self.runs[-1] = (self.runs[-1][0], end)
        else:
            self.runs.append((walk.position, end))
        self.batch_count += 1
        self.next_offset = walk.next_offset()
        self.times = union(self.times, times_of(walk))


@dataclass(slots=True)
class Salvages:
    """The valid batches of all segments of a log."""

    segments: list[Salvage]
    """The segments in order of their offsets."""
    durable_end: int
    """The largest durable end in the manifest and in the valid batches."""
    seen_end: int
    """An offset above every offset in a valid batch."""
    has_kept: bool = False
    """Whether a batch is marked KEPT, so that history begins with a snapshot."""


def claims_of(storage: Storage, directory: str, manifest: Manifest, headers: list[SegmentHeader]) -> list[Claim]:
    """Return the claims of the manifest's segments in order, with that of a spare that is in use, or damaged."""
    claims = [Claim(one.file_id, one.base_offset, one.next_offset, one.size) for one in manifest.sealed]
    if manifest.active is not None:
        active = manifest.active
        spares = [one for one in headers if one.file_id == manifest.spare and one.base_offset > active.base_offset]
        end = spares[0].base_offset if spares else _NO_END
        has_header = active.base_offset <= manifest.start_offset
        claims.append(Claim(active.file_id, active.base_offset, end, None, has_header))
        claims += [Claim(one.file_id, one.base_offset, _NO_END, None) for one in spares]
        if manifest.spare is not None and not spares:
            path = segment_path(directory, manifest.spare)
            if storage.exists(path) and _read_header(storage, path)[1] is not None:
                # No batch of it survives: nothing is lost, but no start opens it.
                claims.append(Claim(manifest.spare, _NO_END, _NO_END, None))
    return claims


def headers_of(storage: Storage, directory: str, *, batch_bytes_max: int) -> list[SegmentHeader]:
    """Return the headers of all segment files, in order of their file ids.

    The place of a damaged header is taken by what its batches say, if any survives.
    """
    folder, headers = segments_path(directory), dict[int, SegmentHeader]()
    names = [name for name in storage.listdir(folder) if _SEGMENT_NAME.fullmatch(name)]
    damaged = []
    for name in names:
        header, _ = _read_header(storage, f"{folder}/{name}")
        if header is None:
            damaged.append(name)
        elif header.file_id == int(name[:16], 16):
            headers[header.file_id] = header
    log_id = headers[max(headers)].log_id if headers else None
    for name in damaged:
        found = _header_by_batches(storage, f"{folder}/{name}", batch_bytes_max)
        if found is not None:
            file_id = int(name[:16], 16)
            headers[file_id] = found._replace(file_id=file_id, log_id=log_id or found.log_id)
    return [headers[file_id] for file_id in sorted(headers)]


def _header_by_batches(storage: Storage, path: str, batch_bytes_max: int) -> SegmentHeader | None:
    """Return a header with the salt, base offset and epoch of a segment's batches; None if no batch survives."""
    file = storage.open(path)
    try:
        found = surviving_header(file, file.read(SEGMENT_HEADER_BYTES, 0), batch_bytes_max=batch_bytes_max)
        if found is None:
            return None
        for walk in _valid_batches(SegmentReader(path, file, found, batch_bytes_max, file.size())):
            if walk.header is not None:
                return found._replace(base_offset=walk.header.base_offset, epoch=walk.header.epoch)
        return None
    finally:
        file.close()


def rebuild_manifest(headers: list[SegmentHeader], *, next_file_id: int) -> tuple[Manifest, list[Claim]]:
    """Return a manifest without segments to replace a damaged one, and claims by rule 3. `headers` is not empty."""
    log_id = headers[-1].log_id
    own_headers = [header for header in headers if header.log_id == log_id]
    claims: list[Claim] = []
    limit = _NO_END
    for header in reversed(own_headers):
        if header.base_offset < limit:
            claims.append(Claim(header.file_id, header.base_offset, limit, None))
            limit = header.base_offset
    manifest = Manifest(
        version=VERSION,
        log_id=log_id,
        # One file id never costs that many edits, so this is above every earlier generation.
        generation=next_file_id * _EDITS_PER_FILE,
        epoch=max(header.epoch for header in own_headers),
        next_file_id=next_file_id,
        durable_end=0,
        start_offset=0,
    )
    return manifest, claims[::-1]


def salvage(
    storage: Storage, directory: str, claims: list[Claim], *, durable_end: int, batch_bytes_max: int
) -> Salvages:
    """Return the valid batches of the claimed segments. It reads them twice, to know the durable end first."""
    found = Salvages([Salvage(one, segment_path(directory, one.file_id)) for one in claims], durable_end, durable_end)
    parts: list[SegmentReader | None] = []
    for one in found.segments:
        part = _open(storage, one, batch_bytes_max)
        parts.append(part)
        for walk in _valid_batches(part) if part else ():
            assert walk.header is not None
            found.durable_end = max(found.durable_end, walk.header.durable_end)
            found.seen_end = max(found.seen_end, found.durable_end, walk.next_offset())
            found.has_kept |= bool(walk.header.flags & KEPT)
    has_tail = True
    for one, part in zip(found.segments, parts, strict=True):
        has_tail = _select_batches(one, part, found.durable_end, has_tail=has_tail)
        if part is not None:
            part.file.close()
    return found


def _read_header(storage: Storage, path: str) -> tuple[SegmentHeader | None, LogError | None]:
    try:
        file = storage.open(path)
    except FileNotFoundError:
        return None, DamageError(path, 0, "a segment that the manifest names", "no file")
    try:
        return SegmentHeader.decode(file.read(SEGMENT_HEADER_BYTES, 0), path), None
    except (DamageError, ForeignError) as error:
        return None, error
    finally:
        file.close()


def _open(storage: Storage, one: Salvage, batch_bytes_max: int) -> SegmentReader | None:
    """Return an open segment even if its header is damaged, and add that fault; None if it has no bytes."""
    claim = one.claim
    one.header, error = _read_header(storage, one.path)
    if error is not None:
        fault = error if isinstance(error, DamageError) else DamageError(one.path, 0, "a segment header", str(error))
        one.faults.append(fault)
        if not storage.exists(one.path):
            return None
    file = storage.open(one.path)
    if one.header is None:
        found = surviving_header(file, file.read(SEGMENT_HEADER_BYTES, 0), batch_bytes_max=batch_bytes_max)
        if found is not None:
            one.header = found._replace(file_id=claim.file_id, base_offset=claim.base_offset)
        if error is None and (found is not None or claim.has_header):
            one.faults.append(DamageError(one.path, 0, "a segment header", "zeros"))
    if one.header is None:
        file.close()
        return None
    size = file.size() if claim.size is None else min(claim.size, file.size())
    return SegmentReader(one.path, file, one.header, batch_bytes_max, size)


def _valid_batches(part: SegmentReader) -> Iterator[BatchWalk]:
    """Yield a walk at each valid batch of a segment, those after a bad one too."""
    walk = part.walk()
    for _ in walk:
        yield walk
    yield from find_later(walk)


def _select_batches(one: Salvage, part: SegmentReader | None, durable_end: int, *, has_tail: bool) -> bool:
    """Keep batches of a segment by rule 2; return whether the next segment can continue the tail."""
    claim, expected = one.claim, one.claim.base_offset
    for walk in _valid_batches(part) if part else ():
        header, next_offset = walk.header, walk.next_offset()
        assert header is not None
        assert part is not None
        if header.base_offset < expected or next_offset > claim.next_offset:
            continue
        is_broken = walk.position != one.end
        if next_offset > durable_end and (is_broken or not has_tail or check_bodies(header, walk.bodies())):
            has_tail = False
            break
        if is_broken:
            one.faults.append(_fault_at(part, one.end))
            _add_lost(one, expected, min(header.base_offset, durable_end))
        one.add(walk)
        expected = next_offset
    return _check_segment_end(one, part, expected, min(claim.next_offset, durable_end)) and has_tail


def _check_segment_end(one: Salvage, part: SegmentReader | None, expected: int, end_offset: int) -> bool:
    """Add the fault and the lost offsets at the end of a segment; return whether it is whole up to there."""
    size = one.claim.size
    if part is not None and size is not None:
        is_whole = one.end == size
    else:
        # An epoch begins at such an offset. Nothing is missing if it has not written anything yet.
        is_whole = expected >= end_offset or (end_offset % EPOCH_OFFSETS == 0 and not one.faults)
    if not is_whole:
        if part is not None:
            one.faults.append(_fault_at(part, one.end))
        elif not one.faults:
            one.faults.append(DamageError(one.path, 0, "a segment header", "zeros"))
        _add_lost(one, expected, end_offset)
    return is_whole


def _add_lost(one: Salvage, first_offset: int, next_offset: int) -> None:
    if first_offset < next_offset:
        one.lost.append(LostRange(first_offset, next_offset))


def _fault_at(part: SegmentReader, position: int) -> DamageError:
    probe = part.walk(position)
    for _ in probe:
        break
    expected, found = probe.mismatch or ("a batch", "zeros, as in unwritten space")
    return DamageError(part.path, position, expected, found)
