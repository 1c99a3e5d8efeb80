"""The JSON in the meta of a record. Each event defines its keys as a `Struct` with `omit_defaults`.

Rule: a key that has its default is not written, so a later key leaves old records as they are.
"""

from typing import Final

from msgspec import json

__all__ = ["JSON_FACTOR", "encode_json"]

JSON_FACTOR: Final = 6
"""Bytes of JSON that one byte of text becomes at most: a control character is written as \\u001f."""

encode_json: Final = json.Encoder().encode
