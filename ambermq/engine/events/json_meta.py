"""The JSON in the meta of a record. Each event defines its keys as a `Struct` with `omit_defaults`.

Rule: a key with its default value is not written. So a new key does not change old records.
"""

from typing import Final

from msgspec import json

__all__ = ["JSON_FACTOR", "encode_json"]

JSON_FACTOR: Final = 6
"""The maximum number of JSON bytes for one byte of text: a control character becomes \\u001f."""

encode_json: Final = json.Encoder().encode
