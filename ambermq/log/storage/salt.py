"""The salt of a segment: the one random number in its header, which the checksums of its batches begin with."""

import secrets

__all__ = ["draw_salt"]


def draw_salt() -> int:
    """Return a new salt; random, so that bytes of a deleted segment never pass a check in a later one."""
    return secrets.randbits(32)
