"""The segments that were written last, and where they end: tail or damage.

Only the active segment and the spare can hold anything that was not synced, so only they are surveyed; what is sealed
is durable throughout. A survey reads heads, not bodies, but for the tail.

Rule 1. The durable end D is the largest that the manifest or any valid batch tells, those beyond an invalid one
included.
Rule 2. The chain of batches is unbroken while each begins where the one before ended, or where an epoch began: this
one at its start offset, those before it, whose batches were copied, at some multiple of 2^20. It goes from the active
segment into the spare whose header continues where it ends.
Rule 3. A chain that ends below D is damage. At or after D it is the tail: the log ends there, or at the first batch
at or after D whose bodies are wrong, and whatever lies beyond is ignored. Several batches ride one sync, so a loss of
power may keep a later one and lose an earlier: "bad, then good" alone tells nothing.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from ambermq.log.errors import DamageError
from ambermq.log.format.batch import BatchHeader, Mismatch, check_bodies
from ambermq.log.format.segment import SEGMENT_HEADER_BYTES, segment_path
from ambermq.log.manifest.manifest import Manifest, Sealed
from ambermq.log.segments.batch_walk import BatchWalk, find_later
from ambermq.log.segments.segment_reader import SegmentReader, open_part
from ambermq.log.storage.interface import Storage

__all__ = ["EPOCH_OFFSETS", "TailSurvey", "continues", "extend", "survey"]

EPOCH_OFFSETS: Final = 1 << 20
"""An epoch's offsets begin at a multiple of this."""

_UNSEEN_OFFSETS_MAX: Final = EPOCH_OFFSETS >> 1
"""More records than were ever written and lost without a trace: what is not yet synced is a few MiB."""


@dataclass(slots=True)
class TailSurvey:
    """What the last segments hold."""

    durable_end: int
    """D of rule 1."""
    valid_end: int
    """The offset at which the log ends."""
    seen_end: int
    """No valid batch anywhere holds an offset at or above."""
    parts: list[SegmentReader] = field(default_factory=list)
    """The segments that were written to, in order."""
    fault: DamageError | None = None
    """Why the chain ends where it does; None where nothing was ever written behind it."""

    @property
    def next_start(self) -> int:
        """The multiple of 2^20 above any offset that can ever have been seen; 0 where none can."""
        if not self.seen_end:
            return 0
        return -(-(self.seen_end + _UNSEEN_OFFSETS_MAX) // EPOCH_OFFSETS) * EPOCH_OFFSETS

    def tail(self) -> Iterator[tuple[SegmentReader, BatchWalk]]:
        """Yield each batch from `durable_end` to `valid_end`: its segment, and a walk that stands on it."""
        for part in self.parts:
            start = part.positions.locate(self.durable_end) or SEGMENT_HEADER_BYTES
            walk = part.walk(start, end=part.end)
            for header in walk:
                if self.durable_end <= header.base_offset:
                    yield part, walk

    def sealed(self) -> tuple[Sealed, ...]:
        """Return the segments as far as they hold batches below `durable_end`."""
        sealed = []
        for index, part in enumerate(self.parts):
            size = _cut(part, self.durable_end)
            following = self.parts[index + 1 :]
            next_offset = min([self.durable_end] + [other.header.base_offset for other in following])
            if size > SEGMENT_HEADER_BYTES:
                sealed.append(Sealed(part.header.file_id, part.header.base_offset, next_offset, size))
        return tuple(sealed)


def survey(storage: Storage, directory: str, manifest: Manifest, *, batch_bytes_max: int) -> TailSurvey:
    """Survey the segments that `manifest` names active and spare; raise DamageError where they lack durable bytes."""
    base_offset = manifest.active.base_offset if manifest.active else manifest.durable_end
    found = TailSurvey(manifest.durable_end, base_offset, max(manifest.durable_end, manifest.start_offset))
    if manifest.active is not None:
        _survey_chain(found, manifest, _parts(storage, directory, manifest, batch_bytes_max))
    end = found.valid_end
    if end >= manifest.durable_end:
        # All that earlier epochs left is there; between it and this one's first offset there never was anything.
        end = max(end, manifest.start_offset)
    if end < found.durable_end:
        raise found.fault or _missing(directory, manifest, found)
    found.durable_end = min(found.durable_end, found.valid_end)
    _check_tail(found)
    return found


def extend(found: TailSurvey, manifest: Manifest) -> None:
    """Take into a survey what was written behind its end since, as long as that is in the same segment."""
    if found.parts:
        part = found.parts[-1]
        part.size = part.file.size()
        _follow(found, manifest, part, part.walk(part.end))
        found.durable_end = min(found.durable_end, found.valid_end)


def _missing(directory: str, manifest: Manifest, found: TailSurvey) -> DamageError:
    assert manifest.active is not None
    path = found.parts[-1].path if found.parts else segment_path(directory, manifest.active.file_id)
    position = found.parts[-1].end if found.parts else 0
    return DamageError(path, position, f"batches up to offset {found.durable_end}", f"none from {found.valid_end}")


def _parts(storage: Storage, directory: str, manifest: Manifest, batch_bytes_max: int) -> Iterator[SegmentReader]:
    assert manifest.active is not None
    file_ids = [manifest.active.file_id]
    # The spare is named before its file is made.
    if manifest.spare is not None and storage.exists(segment_path(directory, manifest.spare)):
        file_ids.append(manifest.spare)
    for file_id in file_ids:
        part = open_part(storage, directory, manifest, file_id, batch_bytes_max=batch_bytes_max)
        if part is not None:
            yield part


def _survey_chain(found: TailSurvey, manifest: Manifest, parts: Iterator[SegmentReader]) -> None:
    for part in parts:
        if continues(manifest, found.valid_end, part.header.base_offset):
            found.parts.append(part)
            _survey_part(found, manifest, part)
            continue
        walk = part.walk()
        _note_all(found, walk)
        for later in find_later(walk):
            assert later.header is not None
            _note(found, later, later.header)


def _survey_part(found: TailSurvey, manifest: Manifest, part: SegmentReader) -> None:
    """Follow the chain through a part, and take note of valid batches beyond its end.

    Where a broker writes beside, those may be of the chain by now: it is followed again from its end before any of
    them is believed to lie beyond a hole.
    """
    walk = part.walk()
    broken = _follow(found, manifest, part, walk)
    beyond, is_sure = find_later(walk), False
    while (later := next(beyond, None)) is not None:
        if not is_sure and broken is None:
            end, again = part.end, part.walk(part.end)
            broken = _follow(found, manifest, part, again)
            if part.end > end:
                walk, beyond = again, find_later(again)
                continue
        is_sure = True
        assert later.header is not None
        _note(found, later, later.header)
    found.fault = _fault(part, broken or walk.mismatch)


def continues(manifest: Manifest, valid_end: int, base_offset: int) -> bool:
    """Tell whether what begins at `base_offset` follows a chain up to `valid_end`: directly, or as an epoch's start."""
    if base_offset <= valid_end:
        return base_offset == valid_end
    if valid_end < manifest.durable_end:
        return base_offset % EPOCH_OFFSETS == 0
    return base_offset == manifest.start_offset


def _follow(found: TailSurvey, manifest: Manifest, part: SegmentReader, walk: BatchWalk) -> Mismatch | None:
    """Walk a part that continues the chain, up to its end; tell where the offsets do not follow."""
    for header in walk:
        base_offset = header.base_offset
        if not continues(manifest, found.valid_end, base_offset):
            _note(found, walk, header)
            _note_all(found, walk)
            return Mismatch(f"base offset {found.valid_end}", f"{base_offset}")
        found.valid_end = _note(found, walk, header)
        part.positions.add(base_offset, walk.position)
        part.end = walk.position + header.length
    return None


def _note_all(found: TailSurvey, walk: BatchWalk) -> None:
    """Take note of batches that are not of the chain."""
    for header in walk:
        _note(found, walk, header)


def _note(found: TailSurvey, walk: BatchWalk, header: BatchHeader) -> int:
    """Take note of a valid batch and return the offset after it."""
    next_offset = walk.next_offset()
    found.durable_end = max(found.durable_end, header.durable_end)
    found.seen_end = max(found.seen_end, next_offset, header.durable_end)
    return next_offset


def _fault(part: SegmentReader, mismatch: Mismatch | None) -> DamageError | None:
    return None if mismatch is None else DamageError(part.path, part.end, mismatch.expected, mismatch.found)


def _cut(part: SegmentReader, offset: int) -> int:
    """Return the position of the first batch at or after `offset`, the part's end where there is none."""
    walk = part.walk(part.positions.locate(offset - 1) or SEGMENT_HEADER_BYTES, end=part.end)
    for header in walk:
        if header.base_offset >= offset:
            return walk.position
    return part.end


def _check_tail(found: TailSurvey) -> None:
    """End the chain before the first batch of the tail whose bodies are wrong."""
    end = found.durable_end
    for part, walk in found.tail():
        assert walk.header is not None
        mismatch = check_bodies(walk.header, walk.bodies())
        if mismatch is None:
            end = walk.next_offset()
        else:
            part.end, found.valid_end = walk.position, end
            found.fault = _fault(part, mismatch)
            del found.parts[found.parts.index(part) + 1 :]
            return
