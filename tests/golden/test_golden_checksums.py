"""The CRCs in the golden bytes by crcmod-plus, at the positions that the format pages give, without our own code."""

from collections.abc import Iterator
from pathlib import Path
from struct import unpack_from

import crcmod.predefined
import pytest

from tests.golden import GOLDEN_DIRECTORY
from tests.golden.data.archive import unpack

_SALT_CRC = 0x12345678
"""Of the batches in hex: where their head CRC begins."""
_SEGMENT_HEADER_BYTES = 4096
_SPOILED = b"\xa1\x07rpoiled"
"""Of the one message whose body was changed on the disk: a bit of its message-id, once `spoiled`."""
_BACKUPS = sorted(GOLDEN_DIRECTORY.glob("data/*/nightly.backup"))
_DIRECTORIES = sorted(GOLDEN_DIRECTORY.glob("data/*/data.tar.zst"))

crc32c = crcmod.predefined.mkPredefinedCrcFun("crc-32c")


def golden(name: str) -> bytes:
    return bytes.fromhex((GOLDEN_DIRECTORY / name).read_text())


def check_batch(content: bytes, at: int, salt_crc: int) -> int:
    """Check both CRCs of the batch at a position; return where the next one begins."""
    length, head_crc, body_crc = unpack_from("<3I", content, at + 4)
    count, _, meta_bytes, body_bytes = unpack_from("<4I", content, at + 40)
    bodies = at + 64 + count * 48 + meta_bytes
    assert crc32c(content[at + 12 : bodies], crc32c(content[at : at + 8], salt_crc)) == head_crc
    is_whole = crc32c(content[bodies : bodies + body_bytes]) == body_crc
    assert is_whole or _SPOILED in content[bodies : bodies + body_bytes]
    return int(at + length)


def check_document(content: bytes) -> None:
    """Check the last line of a manifest or a table."""
    text, _, line = content.rpartition(b"crc32c ")
    assert int(line, 16) == crc32c(text)


def check_snapshot(content: bytes) -> None:
    """Check the header and every block."""
    assert unpack_from("<I", content, 60) == (crc32c(content[:60]),)
    position, kind = 64, 0
    while position < len(content):
        kind, length, crc = unpack_from("<3I", content, position)
        assert crc == crc32c(content[position + 16 : position + 16 + length], crc32c(content[position : position + 8]))
        position += 16 + length
    assert kind == 255


def check_backup(content: bytes) -> None:
    """Check header, trailer, table and every frame."""
    assert unpack_from("<I", content, 60) == (crc32c(content[:60]),)
    position, length, _, crc = unpack_from("<QQII", content, len(content) - 24)
    assert crc == crc32c(content[-32:-4])
    check_document(content[position : position + length])
    at = 64
    while at < position:
        (stored,) = unpack_from("<I", content, at)
        assert unpack_from("<I", content, at + 12) == (
            crc32c(content[at + 16 : at + 16 + stored], crc32c(content[at : at + 12])),
        )
        at += 16 + stored
    assert at == position


def batches(content: bytes) -> Iterator[int]:
    """Yield the positions of a segment's batches, each checked, and check its header."""
    assert unpack_from("<I", content, 52) == (crc32c(content[:52]),)
    salt_crc, at = crc32c(content[12:16]), _SEGMENT_HEADER_BYTES
    while content[at : at + 4] == b"AMBB":
        yield at
        at = check_batch(content, at, salt_crc)


@pytest.mark.parametrize("name", ["batch.hex", "batch_compressed.hex"])
def test_batches(name: str) -> None:
    """Head and bodies."""
    content = golden(name)
    assert check_batch(content, 0, _SALT_CRC) == len(content)


def test_a_segment_header() -> None:
    """The header's own CRC."""
    assert list(batches(golden("segment_header.hex"))) == []


def test_a_snapshot() -> None:
    """Header and blocks."""
    check_snapshot(golden("snapshot.hex"))


def test_a_backup() -> None:
    """Every part of it."""
    check_backup(golden("backup.hex"))


@pytest.mark.parametrize("path", sorted(GOLDEN_DIRECTORY.glob("*manifest*.txt")), ids=lambda path: path.name)
def test_documents(path: Path) -> None:
    """The line that ends each."""
    check_document(path.read_bytes())


@pytest.mark.parametrize("archive", _DIRECTORIES, ids=lambda path: path.parent.name)
def test_a_data_directory(archive: Path, tmp_path: Path) -> None:
    """Every segment, snapshot and manifest of every version."""
    unpack(archive, tmp_path)
    segments, snapshots = list(tmp_path.rglob("segments/*.log")), list(tmp_path.rglob("*.snapshot"))
    assert all(list(batches(path.read_bytes())) for path in segments)
    for path in snapshots:
        check_snapshot(path.read_bytes())
    for path in (*tmp_path.rglob("MANIFEST"), *tmp_path.rglob("VHOSTS")):
        check_document(path.read_bytes())
    assert segments
    assert snapshots


@pytest.mark.parametrize("path", _BACKUPS, ids=lambda path: path.parent.name)
def test_a_backup_of_a_version(path: Path) -> None:
    """Every frame of it."""
    check_backup(path.read_bytes())
