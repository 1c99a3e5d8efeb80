r"""Text files whose last line is a checksum, and the JSON documents in them.

The last line is `crc32c XXXXXXXX\n`: CRC-32C of every byte before it, in 8 hex digits. A document is a JSON object with
a `version`. The version is checked before anything else, because a later version may have any fields.
"""

import json
import re
from typing import Any, Final, TypeVar

import msgspec

from ambermq.log.errors import DamageError, ForeignError
from ambermq.log.format.checksum import crc32c

__all__ = ["Document", "json_with_crc_line", "read_document", "with_crc_line", "without_crc_line"]

Document = TypeVar("Document")
_CRC_LINE: Final = re.compile(rb"crc32c ([0-9a-f]{8})\n\Z")


def json_with_crc_line(value: Any, *, optional: tuple[str, ...] = (), **overrides: Any) -> bytes:
    """Return a dataclass as JSON with one value a line and a CRC line; `overrides` replace fields by name.

    The fields `optional` are left out if they are None, as in documents from before they were added.
    """
    # A manifest names every segment and is written at each roll. msgspec indents in C; json.dumps(indent=1) is Python.
    document = msgspec.to_builtins(value, builtin_types=(bytes,)) | overrides
    for name in optional:
        if document[name] is None:
            del document[name]
    return with_crc_line(msgspec.json.format(json.dumps(document), indent=1).encode() + b"\n")


def with_crc_line(text: bytes) -> bytes:
    """Return `text` with its CRC line appended."""
    return text + b"crc32c %08x\n" % crc32c(text)


def without_crc_line(text: bytes, *, file: str) -> bytes:
    """Return `text` without its CRC line. Raises DamageError naming `file` if that line is missing or wrong."""
    line = _CRC_LINE.search(text)
    if line is None:
        raise DamageError(file, len(text), "a last line with a CRC", f"{text[-20:]!r}")
    body = text[: line.start()]
    expected, found = int(line[1], 16), crc32c(body)
    if expected != found:
        raise DamageError(file, line.start(), f"crc32c {expected:08x}", f"{found:08x}")
    return body


def read_document(
    text: bytes, type_: type[Document], *, file: str, what: str, version: int, hex_field: str | None = None
) -> Document:
    """Return the document before the CRC line; error messages call it `what`.

    `hex_field` names a field of bytes that is stored as hex digits. Raises DamageError naming `file` if the document is
    not what was written, and ForeignError if it has another version.
    """
    body = without_crc_line(text, file=file)
    try:
        document: dict[str, Any] = json.loads(body)
        found = msgspec.convert(document["version"], type=int)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise DamageError(file, 0, "a JSON object with a version", f"{body[:40]!r}") from error
    if found != version:
        raise ForeignError(f"{file} has {what} version {found}, this program reads version {version}")
    try:
        if hex_field is not None:
            document[hex_field] = bytes.fromhex(document[hex_field])
        return msgspec.convert(document, type=type_)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise DamageError(file, 0, f"the fields of a {what}", str(error)) from error
