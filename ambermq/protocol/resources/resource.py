"""The resources that may run low."""

from collections.abc import Iterable
from enum import StrEnum

__all__ = ["Resource", "names_of"]


class Resource(StrEnum):
    """A resource, in the order of importance: the first one that is low is told to producers."""

    DISK = "disk"
    """The free space of the file system of a log."""
    MEMORY = "memory"
    """The budget for what peers make the broker hold."""
    PROCESS_MEMORY = "process-memory"
    """The memory of the process."""
    DESCRIPTORS = "descriptors"
    """The file descriptors of the process."""

    @property
    def reason(self) -> str:
        """The reason as peers read it in `ambermq:blocked`: they know one memory of the broker."""
        return "memory" if self is Resource.PROCESS_MEMORY else self.value


def names_of(resources: Iterable[Resource]) -> list[str]:
    """Return the names of resources, in the order of importance."""
    found = set(resources)
    return [one.value for one in Resource if one in found]
