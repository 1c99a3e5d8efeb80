"""Commands on muxers and on their attachments."""

from collections.abc import Callable
from typing import Any, final

from ambermq.engine.commands.signed_command import SignedCommand
from ambermq.engine.model.attachment import Argument
from ambermq.engine.model.muxer import MuxerKind, Options
from ambermq.engine.model.state import State

__all__ = ["AttachMember", "DeclareMuxer", "DeleteMuxer", "DetachMember", "UpdateMuxer"]


@final
class DeclareMuxer(SignedCommand):
    """Declare a muxer. The same declaration again changes nothing; with other options it is refused."""

    key: Any
    name: str
    kind: MuxerKind
    options: Options = Options()


@final
class UpdateMuxer(SignedCommand):
    """Change options of a muxer, in the same way as UpdateQueue."""

    key: Any
    name: str
    read: Callable[[State], Any]
    probability: float | None = None
    seed: int | None = None
    kind: MuxerKind | None = None
    """The class of the muxer; another one is refused."""
    separator: str | None = None
    """The separator of the muxer; another one is refused."""


@final
class DeleteMuxer(SignedCommand):
    """Delete a muxer, with its attachments in both directions."""

    key: Any
    name: str
    if_unused: bool = False
    """Refuse it if a producer or a muxer sends to it."""
    if_empty: bool = False
    """Refuse it if it has attachments."""


@final
class AttachMember(SignedCommand):
    """Attach a member to a muxer: a queue, or a muxer as `muxer:NAME`."""

    key: Any
    muxer: str
    member: str
    argument: Argument = None
    argument_name: str = ""
    """The key that gave the argument, one of ARGUMENT_NAMES (attachment_arguments.py); empty: not given."""


@final
class DetachMember(SignedCommand):
    """Remove the attachment of a member to a muxer by this argument."""

    key: Any
    muxer: str
    member: str
    argument: Argument = None
    argument_name: str = ""
    """The key that gave the argument, one of ARGUMENT_NAMES (attachment_arguments.py); empty: not given."""
    attachment: int = 0
    """If not 0, the id of the attachment, instead of member and argument. The member may be gone."""
