"""The user of a command."""

from msgspec import Struct

__all__ = ["SignedCommand"]


class SignedCommand(Struct, kw_only=True):
    """A command whose events name the user that asked for it."""

    by: str = ""
    """The user; empty if none is known."""
