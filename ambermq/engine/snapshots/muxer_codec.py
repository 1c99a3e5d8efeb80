"""The rows of muxers and their attachments in a snapshot, and the muxers again.

MUXERS      [{id, name, kind, named, options, draws}]
ATTACHMENTS [[muxer, id, member, argument, conditions]]
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from ambermq.engine.model.attachment import Attachment, Condition
from ambermq.engine.model.muxer import Muxer, MuxerKind, Options
from ambermq.engine.model.state import State
from ambermq.engine.snapshots.image_blocks import in_order, map_of
from ambermq.snapshot.persistent_map import PersistentMap

__all__ = ["AttachmentRow", "MuxerParts", "MuxerRow", "attachment_rows", "muxer_rows"]


class MuxerRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A muxer without its attachments."""

    id: int
    name: str
    kind: MuxerKind
    named: bool
    """Whether the name still belongs to this muxer."""
    options: Options
    draws: int


AttachmentRow = tuple[int, int, int, str | None, tuple[Condition, ...] | None]
"""Muxer, id, member, and the argument as a text or as conditions."""


def muxer_rows(state: State) -> Iterator[MuxerRow]:
    """Yield a row for each muxer."""
    for muxer in in_order(state.muxers):
        is_named = state.muxer_names.get(muxer.name) == muxer.id
        draws = state.draws.get(muxer.id, 0)
        yield MuxerRow(muxer.id, muxer.name, muxer.kind, is_named, muxer.options, draws)


def attachment_rows(state: State) -> Iterator[AttachmentRow]:
    """Yield a row for each attachment."""
    for muxer in in_order(state.muxers):
        for one in in_order(muxer.attachments):
            text, conditions = (None, one.argument) if isinstance(one.argument, tuple) else (one.argument, None)
            yield muxer.id, one.id, one.member, text, conditions


class MuxerParts:
    """The muxers and attachments that have been read so far."""

    def __init__(self) -> None:
        self.rows: list[MuxerRow] = []
        self.attachments: dict[int, dict[int, Attachment]] = {}

    def take_muxers(self, payload: bytes) -> None:
        """Add the muxers of a block."""
        self.rows += msgspec.json.decode(payload, type=list[MuxerRow])

    def take_attachments(self, payload: bytes) -> None:
        """Add the attachments of a block."""
        for muxer, one, member, text, conditions in msgspec.json.decode(payload, type=list[AttachmentRow]):
            argument = text if conditions is None else conditions
            self.attachments.setdefault(muxer, {})[one] = Attachment(one, member, argument)

    def fields(self) -> dict[str, Any]:
        """Return the parts of a state that are about muxers."""
        muxers = [
            Muxer(one.id, one.name, one.kind, one.options, map_of(self.attachments.get(one.id, {})))
            for one in self.rows
        ]
        return {
            "muxers": PersistentMap({muxer.id: muxer for muxer in muxers}),
            "muxer_names": PersistentMap({row.name: row.id for row in self.rows if row.named}),
            "draws": PersistentMap({row.id: row.draws for row in self.rows if row.draws}),
        }
