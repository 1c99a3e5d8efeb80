"""The digest of a message-id, by which a queue knows it again: 16 bytes of BLAKE2b of its type and value.

    "s" utf-8 | "b" bytes | "u" 16 bytes | "l" 8 bytes, big endian

Rule 1. The string "1" and the ulong 1 are two ids. The encoding of a value does not matter.
Rule 2. Two ids never have one digest, as far as anybody can find such a pair: so no message is lost by a collision.
"""

from hashlib import blake2b
from typing import Final
from uuid import UUID

__all__ = ["DIGEST_BYTES", "NO_DIGEST", "digest_of"]

DIGEST_BYTES: Final = 16
NO_DIGEST: Final = bytes(DIGEST_BYTES)
"""That of a message without an id, which is never a duplicate."""


def digest_of(message_id: object) -> bytes:
    """Return the digest of a message-id; NO_DIGEST of a value that is none."""
    match message_id:
        case str():
            packed = b"s" + message_id.encode(errors="surrogatepass")
        case bytes() | bytearray() | memoryview():
            packed = b"b" + bytes(message_id)
        case UUID():
            packed = b"u" + message_id.bytes
        case int() if 0 <= message_id < 1 << 64:
            packed = b"l" + message_id.to_bytes(8, "big")
        case _:
            return NO_DIGEST
    return blake2b(packed, digest_size=DIGEST_BYTES).digest()
