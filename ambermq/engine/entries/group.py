"""The group of a message: a number that stands for its group-id.

    code    a hash of the group-id, twice | 1 if the message ends the binding of its group; 0 for no group

A code is below 2**49, so JSON and the log hold it as a number.
"""

__all__ = ["ends_binding", "group_of"]


def group_of(code: int) -> int:
    """Return the group of a code; 0 for none."""
    return code >> 1


def ends_binding(code: int) -> bool:
    """Return whether a message ends the binding of its group: its group-sequence is 4294967295."""
    return bool(code & 1)
