"""The two roles of an end of a connection."""

from enum import IntEnum

__all__ = ["ConnectionRole"]


class ConnectionRole(IntEnum):
    """The role of an end: the client sends the first header."""

    SERVER = 0
    CLIENT = 1
