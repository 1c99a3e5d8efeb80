"""What stands behind the columns of a record: the JSON of wiring events and of outcomes, as types.

Rule 1. A field that has its default is not written, so a later field leaves old records as they are.
"""

from typing import Final

import msgspec

from ambermq.engine.model.attachment import Condition
from ambermq.engine.model.muxer import Options
from ambermq.engine.model.publish_options import PublishOptions
from ambermq.engine.model.queue import Settings
from ambermq.engine.model.subscription import Subscription

__all__ = ["JSON_FACTOR", "Names", "OutcomeRest", "decode_names", "decode_rest", "encode_meta"]

JSON_FACTOR: Final = 6
"""Bytes of JSON that one byte of text becomes at most: a control character is written as \\u001f."""


class Names(msgspec.Struct, omit_defaults=True):
    """The JSON in the meta of wiring events; each type uses the fields that it has."""

    name: str = ""
    settings: Settings | None = None
    options: Options | None = None
    argument: str | None = None
    conditions: tuple[Condition, ...] | None = None
    attachment: int = 0
    sending: PublishOptions | None = None
    destination: str = ""
    """Of a producer; in version 0.1 that of an attachment too."""
    container: str = ""
    link: str = ""
    selector: str = ""
    node: int = 0
    owns: int = 0
    subscription: Subscription | None = None


class OutcomeRest(msgspec.Struct, omit_defaults=True):
    """The JSON behind the words of a Settled record; nothing is written for a plain outcome."""

    delivery_failed: bool = False
    undeliverable_here: bool = False
    annotations: tuple[tuple[bytes, bytes], ...] = ()
    condition: str = ""
    description: str = ""


encode_meta: Final = msgspec.json.Encoder().encode
decode_names: Final = msgspec.json.Decoder(Names).decode
decode_rest: Final = msgspec.json.Decoder(OutcomeRest).decode
