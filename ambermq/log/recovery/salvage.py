"""What of a damaged log can still be believed: the half of a repair that only reads.

Rule 1. A batch is believed by its head CRC alone, wherever in its segment it lies. One whose bodies are wrong is
kept: its events are right, and its bodies are DAMAGED to whoever reads them, as on any log.
Rule 2. Below the durable end every believed batch is kept, and what is missing between them is lost, by its offsets.
From there on batches are kept as far as they follow each other: that is the tail, and nobody was promised the rest.
Rule 3. Without a manifest the segments' headers tell the order: a file made later that begins at or before another
one's base has taken its place, and one that begins later ends it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from ambermq.log.errors import DamageError, ForeignError, LogError
from ambermq.log.format.batch import KEPT, check_bodies
from ambermq.log.format.segment import COMPRESSIBLE_VERSION, SEGMENT_HEADER_BYTES, SegmentHeader, segment_path
from ambermq.log.manifest.manifest import VERSION, Lost, Manifest, segments_path
from ambermq.log.segments.batch_walk import BatchWalk, find_later
from ambermq.log.segments.segment_reader import SegmentReader
from ambermq.log.segments.tail_survey import EPOCH_OFFSETS
from ambermq.log.storage.interface import Storage

__all__ = ["Claim", "Salvage", "Salvages", "claims_of", "headers_of", "rebuilt", "salvage"]

_NO_END: Final = 1 << 62
_EDITS_PER_FILE: Final = 16
_SALT: Final = slice(12, 16)
_LOG_ID: Final = slice(16, 32)


@dataclass(frozen=True, slots=True)
class Claim:
    """A segment as the manifest, or in its place the order of the headers, names it."""

    file_id: int
    """Names the file."""
    base_offset: int
    """It answers for offsets from here ..."""
    next_offset: int
    """... to just below here; beyond any offset for the last one."""
    size: int | None
    """Bytes that count; None where nobody knows, so up to the end of the file."""


@dataclass(slots=True)
class Salvage:
    """What one segment still holds."""

    claim: Claim
    """What it should hold."""
    path: str
    """Of its file."""
    header: SegmentHeader | None = None
    """As read; where it is damaged, with the salt it may have had. None where there is nothing."""
    faults: list[DamageError] = field(default_factory=list)
    """What is wrong, in order of positions; none where the file can stay as it is."""
    runs: list[tuple[int, int]] = field(default_factory=list)
    """[start, end) of batches that are kept and lie back to back."""
    lost: list[Lost] = field(default_factory=list)
    """Offsets that were durable and are not there."""
    batch_count: int = 0
    """Batches kept."""
    next_offset: int = 0
    """After the last one kept."""

    @property
    def end(self) -> int:
        """Position after the last batch kept."""
        return self.runs[-1][1] if self.runs else SEGMENT_HEADER_BYTES

    def keep(self, walk: BatchWalk) -> None:
        """Keep the batch that `walk` stands on."""
        assert walk.header is not None
        end = walk.position + walk.header.length
        if self.runs and self.runs[-1][1] == walk.position:
            self.runs[-1] = (self.runs[-1][0], end)
        else:
            self.runs.append((walk.position, end))
        self.batch_count += 1
        self.next_offset = walk.next_offset()


@dataclass(slots=True)
class Salvages:
    """What the segments of a log still hold."""

    segments: list[Salvage]
    """In order of their offsets."""
    durable_end: int
    """The largest that the manifest or any believed batch tells."""
    seen_end: int
    """No believed batch holds an offset at or above."""
    has_kept: bool = False
    """Whether history begins with a snapshot: below a horizon there are batches of kept messages."""


def claims_of(manifest: Manifest, headers: list[SegmentHeader]) -> list[Claim]:
    """Return what `manifest` says of its segments, and the header of a spare that may be in use already, in order."""
    claims = [Claim(one.file_id, one.base_offset, one.next_offset, one.size) for one in manifest.sealed]
    if manifest.active is not None:
        active = manifest.active
        spares = [one for one in headers if one.file_id == manifest.spare and one.base_offset > active.base_offset]
        end = spares[0].base_offset if spares else _NO_END
        claims.append(Claim(active.file_id, active.base_offset, end, None))
        claims += [Claim(one.file_id, one.base_offset, _NO_END, None) for one in spares]
    return claims


def headers_of(storage: Storage, directory: str) -> list[SegmentHeader]:
    """Return the headers that can be read of all segment files, in order of their file ids."""
    folder, headers = segments_path(directory), list[SegmentHeader]()
    for name in storage.listdir(folder):
        if name.endswith(".log"):
            header, _ = _read_header(storage, f"{folder}/{name}")
            if header is not None and name == f"{header.file_id:016x}.log":
                headers.append(header)
    return headers


def rebuilt(headers: list[SegmentHeader], *, next_file_id: int) -> tuple[Manifest, list[Claim]]:
    """Return a manifest of no segments in place of a damaged one, and claims by rule 3; `headers` are not empty."""
    log_id = headers[-1].log_id
    own = [header for header in headers if header.log_id == log_id]
    claims: list[Claim] = []
    limit = _NO_END
    for header in reversed(own):
        if header.base_offset < limit:
            claims.append(Claim(header.file_id, header.base_offset, limit, None))
            limit = header.base_offset
    manifest = Manifest(
        version=VERSION,
        log_id=log_id,
        # No file id costs as many edits, so this is above any generation there was.
        generation=next_file_id * _EDITS_PER_FILE,
        epoch=max(header.epoch for header in own),
        next_file_id=next_file_id,
        durable_end=0,
        start_offset=0,
    )
    return manifest, claims[::-1]


def salvage(
    storage: Storage, directory: str, claims: list[Claim], *, durable_end: int, batch_bytes_max: int
) -> Salvages:
    """Look at every claimed segment, twice: the durable end that all of them tell must be known first."""
    found = Salvages([Salvage(one, segment_path(directory, one.file_id)) for one in claims], durable_end, durable_end)
    parts: list[SegmentReader | None] = []
    for one in found.segments:
        part = _open(storage, one, batch_bytes_max)
        parts.append(part)
        for walk in _believed(part) if part else ():
            assert walk.header is not None
            found.durable_end = max(found.durable_end, walk.header.durable_end)
            found.seen_end = max(found.seen_end, found.durable_end, walk.next_offset())
            found.has_kept |= bool(walk.header.flags & KEPT)
    has_tail = True
    for one, part in zip(found.segments, parts, strict=True):
        has_tail = _keep(one, part, found.durable_end, has_tail=has_tail)
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
    """Open a segment whatever its header says; take down what is wrong with that."""
    claim = one.claim
    one.header, error = _read_header(storage, one.path)
    if error is not None:
        fault = error if isinstance(error, DamageError) else DamageError(one.path, 0, "a segment header", str(error))
        one.faults.append(fault)
        if not storage.exists(one.path):
            return None
    file = storage.open(one.path)
    if one.header is None and error is not None:
        # The salt may be right where another field is not; if it is wrong too, no batch will be believed.
        head = file.read(SEGMENT_HEADER_BYTES, 0).ljust(SEGMENT_HEADER_BYTES, b"\0")
        salt = int.from_bytes(head[_SALT], "little")
        # Its batches may be compressed, as far as anybody can tell.
        one.header = SegmentHeader(
            salt, head[_LOG_ID], claim.file_id, claim.base_offset, epoch=0, version=COMPRESSIBLE_VERSION
        )
    if one.header is None:
        file.close()
        return None
    size = file.size() if claim.size is None else min(claim.size, file.size())
    return SegmentReader(one.path, file, one.header, batch_bytes_max, size)


def _believed(part: SegmentReader) -> Iterator[BatchWalk]:
    """Yield a walk on each believed batch of a segment, those beyond a bad one too."""
    walk = part.walk()
    for _ in walk:
        yield walk
    yield from find_later(walk)


def _keep(one: Salvage, part: SegmentReader | None, durable_end: int, *, has_tail: bool) -> bool:
    """Decide by rule 2 what is kept of a segment; tell whether what follows it can go on with the tail."""
    claim, expected = one.claim, one.claim.base_offset
    for walk in _believed(part) if part else ():
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
            _lose(one, expected, min(header.base_offset, durable_end))
        one.keep(walk)
        expected = next_offset
    return _close(one, part, expected, min(claim.next_offset, durable_end)) and has_tail


def _close(one: Salvage, part: SegmentReader | None, expected: int, end_offset: int) -> bool:
    """Take down what is missing at the end of a segment; tell whether it is whole up to there."""
    size = one.claim.size
    if part is not None and size is not None:
        is_whole = one.end == size
    else:
        # Nothing is missing where an epoch, which begins at such an offset, has not yet written anything.
        is_whole = expected >= end_offset or (end_offset % EPOCH_OFFSETS == 0 and not one.faults)
    if not is_whole:
        if part is not None:
            one.faults.append(_fault_at(part, one.end))
        elif not one.faults:
            one.faults.append(DamageError(one.path, 0, "a segment header", "zeros"))
        _lose(one, expected, end_offset)
    return is_whole


def _lose(one: Salvage, first_offset: int, next_offset: int) -> None:
    if first_offset < next_offset:
        one.lost.append(Lost(first_offset, next_offset))


def _fault_at(part: SegmentReader, position: int) -> DamageError:
    probe = part.walk(position)
    for _ in probe:
        break
    expected, found = probe.mismatch or ("a batch", "zeros, as where nothing was ever written")
    return DamageError(part.path, position, expected, found)
