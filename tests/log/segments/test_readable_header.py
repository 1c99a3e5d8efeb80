"""The salt of a segment whose header is gone, found by its batches."""

from pathlib import Path

from ambermq.log.format.batch import DraftBatch, encode_batch
from ambermq.log.format.checksum import crc32c
from ambermq.log.format.segment import SEGMENT_HEADER_BYTES
from ambermq.log.segments.readable_header import surviving_header
from ambermq.log.storage.disk import DiskStorage

SALT, FORGED = 0x1234, 0x6666
BATCH_BYTES_MAX = 1 << 20


def batch(offset: int, salt: int, body: bytes = b"") -> bytes:
    """Encode a batch without records, whose bodies are any bytes."""
    draft = DraftBatch(offset, 7)
    if body:
        draft.bodies = [body]
        draft.body_bytes = len(body)
    return b"".join(encode_batch(draft, salt_crc=crc32c(salt.to_bytes(4, "little")), durable_end=0, epoch=1))


def surviving_salt(path: Path, *batches: bytes) -> int | None:
    """Return the salt that is found in a segment whose header is zeros."""
    path.write_bytes(bytes(SEGMENT_HEADER_BYTES) + b"".join(batches))
    file = DiskStorage().open(str(path))
    try:
        found = surviving_header(file, bytes(SEGMENT_HEADER_BYTES), batch_bytes_max=BATCH_BYTES_MAX)
    finally:
        file.close()
    return None if found is None else found.salt


def test_two_batches_prove_their_salt(tmp_path: Path) -> None:
    """One alone proves nothing."""
    assert surviving_salt(tmp_path / "two", batch(0, SALT), batch(1, SALT)) == SALT
    assert surviving_salt(tmp_path / "one", batch(0, SALT)) is None


def test_batches_within_a_body_prove_nothing(tmp_path: Path) -> None:
    """A publisher may send what looks like batches; where a damaged head lets them be read, no salt is proved."""
    forged = batch(0, FORGED) + batch(1, FORGED)
    holding = batch(0, SALT, forged)
    whole = (holding, batch(1, SALT), batch(2, SALT))
    assert surviving_salt(tmp_path / "whole", *whole) == SALT
    damaged = bytes(8) + holding[8:]
    assert surviving_salt(tmp_path / "damaged", damaged, *whole[1:]) is None
