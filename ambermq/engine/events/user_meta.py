"""The user that caused an event, as JSON in the meta of its record: the field `by`.

Rule: a record names no user if none is known. So its bytes are those of a version that knew no users.
"""

from typing import Any, Final

from msgspec import Struct, json

from ambermq.engine.events.json_meta import encode_json
from ambermq.engine.events.line_template import Choice

__all__ = ["BY", "UserMeta", "by_meta", "read_by"]

BY: Final = Choice("by", ", by user {by!r}")
"""The user, at the end of an event's line."""


class UserMeta(Struct, omit_defaults=True):
    """The keys of the meta of an event that has nothing else there."""

    by: str = ""


_decode: Final = json.Decoder(UserMeta).decode


def by_meta(event: Any) -> bytes:
    """Return the meta of an event that has only the user there; empty without a user."""
    return encode_json(UserMeta(event.by)) if event.by else b""


def read_by(meta: bytes) -> str:
    """Return the user that such a meta names; empty for none."""
    return _decode(meta).by if meta else ""
