"""A data directory as one compressed file: zstandard over a tar without owners and times.

Rule: spare segments and the ballast stay outside. They hold nothing, and a broker allocates them again.
"""

import io
import tarfile
from pathlib import Path
from typing import Final

import zstandard

__all__ = ["BLANK_BYTES", "pack", "unpack"]

BLANK_BYTES: Final = 64
"""A segment whose header begins with so many zeros was never written to: it is a spare."""
_LEVEL: Final = 19


def pack(directory: Path, path: Path) -> None:
    """Write the files below `directory` to a new archive at `path`."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for one in sorted(directory.rglob("*")):
            if not _is_allocated_ahead(one):
                archive.add(one, one.relative_to(directory).as_posix(), recursive=False, filter=_anonymous)
    with path.open("xb") as file:
        file.write(zstandard.ZstdCompressor(level=_LEVEL).compress(stream.getvalue()))


def unpack(path: Path, directory: Path) -> None:
    """Write the files of the archive at `path` to a new directory."""
    with zstandard.open(path, "rb") as file, tarfile.open(fileobj=io.BytesIO(file.read())) as archive:
        archive.extractall(directory, filter="data")


def _is_allocated_ahead(path: Path) -> bool:
    if path.name == "ballast":
        return True
    if path.suffix != ".log" or path.parent.name != "segments":
        return False
    with path.open("rb") as file:
        return not any(file.read(BLANK_BYTES))


def _anonymous(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = member.mtime = 0
    member.uname = member.gname = ""
    return member
