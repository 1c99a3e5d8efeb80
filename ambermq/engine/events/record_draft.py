"""The two methods of a tick's draft that the codecs of events need: each adds records and returns an offset.

The log owns the draft (log/write/draft.py). The codecs know only this protocol of it, so the events stay pure.
"""

from collections.abc import Sequence
from typing import Protocol

from ambermq.log.buffer import Buffer

__all__ = ["RecordDraft"]


class RecordDraft(Protocol):
    """The records of the running tick."""

    def add(
        self,
        record_type: int,
        /,
        *,
        timestamp_us: int,
        flags: int = 0,
        queue: int = 0,
        ref: int = 0,
        count: int = 0,
        aux: int = 0,
        id_hash: int = 0,
        meta: bytes = b"",
        body: Buffer = b"",
    ) -> int:
        """Add one record and return its offset."""

    def add_bodies(
        self,
        record_type: int,
        /,
        *,
        timestamp_us: int,
        queue: int,
        bodies: Sequence[Buffer],
        id_hashes: Sequence[int],
        flags: int = 0,
        ref: int = 0,
        aux: int = 0,
        meta: bytes = b"",
    ) -> int:
        """Add one record for each body and return the first one's offset."""
