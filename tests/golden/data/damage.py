"""Damage to the files of a stopped broker: one byte of a batch that holds a message."""

from pathlib import Path

from ambermq.log.read.log_reader import open_reader

__all__ = ["damage"]


def damage(path: Path, text: bytes, *, is_head: bool) -> None:
    """Change one byte of the batch that holds a message with `text`: of its first record, or of the text itself."""
    file, position = _place_of(path, text, is_head=is_head)
    with file.open("r+b") as segment:
        segment.seek(position)
        (byte,) = segment.read(1)
        segment.seek(position)
        segment.write(bytes([byte ^ 1]))


def _place_of(path: Path, text: bytes, *, is_head: bool) -> tuple[Path, int]:
    with open_reader(str(path)) as reader:
        for batch in reader.batches():
            header, position = batch.batch.header, batch.batch.position
            stored = batch._part.file.read(header.length, position)
            if text in stored[header.head_bytes :]:
                return Path(batch._part.path), position + (70 if is_head else stored.index(text, header.head_bytes))
    raise AssertionError(f"no message with {text!r}")
