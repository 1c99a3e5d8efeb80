r"""The root manifest: the one file that says which virtual hosts there are beside the default one.

    VHOSTS      one JSON object over several lines, then its CRC line (crc_line.py)
    vhosts/     a log directory each, named `<name>~<8 hex digits>`

Rule 1. The directory of the root manifest itself is the log of the virtual host "default", which it never names. Where
there is no root manifest there is no other virtual host.
Rule 2. A directory is never used twice: a name that is made again gets another one. So whatever happens to a virtual
host is one edit, and an edit is a pure function Root -> Root.
Rule 3. A directory that is to be filled stands on the list `removed` until it is whole. What is on that list may be
deleted; what is neither named nor on it is reported, never deleted.
Rule 4. A damaged root manifest is refused: an old truth would silently lose whole virtual hosts.
"""

import re
from dataclasses import dataclass, replace
from typing import Any, Final

from ambermq.log.errors import DamageError, LogError
from ambermq.log.format.checked_document import json_with_crc_line, read_document

__all__ = [
    "DEFAULT_VHOST",
    "EMPTY_ROOT",
    "ROOT_NAME",
    "NamedVhost",
    "VhostManifest",
    "adopt",
    "check_name",
    "decode",
    "drop",
    "encode",
    "forget",
    "reserve",
    "root_path",
    "vhosts_path",
]

VERSION: Final = 1
ROOT_NAME: Final = "VHOSTS"
DEFAULT_VHOST: Final = "default"
_NAME: Final = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}\Z")
_DIRECTORY: Final = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}~[0-9a-f]{8}\Z")


@dataclass(frozen=True, slots=True)
class NamedVhost:
    """A virtual host and where its log lies."""

    name: str
    """As people and peers call it."""
    directory: str
    """Below `vhosts/`."""


@dataclass(frozen=True, slots=True)
class VhostManifest:
    """Which virtual hosts there are, in the order in which they were made."""

    version: int
    """Of this format; a newer one is refused with ForeignError."""
    generation: int
    """Counts the edits."""
    vhosts: tuple[NamedVhost, ...] = ()
    """All but the default one."""
    removed: tuple[str, ...] = ()
    """Directories that are not whole yet, or not needed any more: they may be deleted."""

    def directory_of(self, name: str) -> str | None:
        """Return the directory below `vhosts/` of a virtual host, None where there is none of that name."""
        return next((vhost.directory for vhost in self.vhosts if vhost.name == name), None)


EMPTY_ROOT: Final = VhostManifest(VERSION, generation=0)
"""What is so where no root manifest lies."""


def root_path(directory: str) -> str:
    """Return the path of the root manifest of a data directory."""
    return f"{directory}/{ROOT_NAME}"


def vhosts_path(directory: str) -> str:
    """Return the directory of all virtual hosts but the default one; it is missing where there was never any."""
    return f"{directory}/vhosts"


def check_name(name: str) -> None:
    """Raise LogError where a virtual host cannot have this name."""
    if not _NAME.match(name):
        raise LogError(
            f"{name[:80]!r} cannot be a virtual host's name: 1 to 64 of A-Z a-z 0-9 . _ - are allowed, no dot first"
        )
    if name == DEFAULT_VHOST:
        raise LogError(f"{name!r} is the virtual host that is always there: choose another name")


def encode(root: VhostManifest) -> bytes:
    """Return the bytes of a root manifest: JSON, then the CRC line."""
    return json_with_crc_line(root)


def decode(text: bytes, *, file: str) -> VhostManifest:
    """Return the root manifest in `text`; DamageError naming `file`, or ForeignError for a version we do not know."""
    root = read_document(text, VhostManifest, file=file, what="root manifest", version=VERSION)
    for directory in (*(vhost.directory for vhost in root.vhosts), *root.removed):
        # What is deleted is deleted whole: a name that leads elsewhere must not be followed.
        if not _DIRECTORY.match(directory):
            raise DamageError(file, 0, "directories named <name>~<8 hex digits>", repr(directory[:80]))
    return root


def reserve(root: VhostManifest, directory: str) -> VhostManifest:
    """Let a directory that was never used be filled: until it is adopted it may be deleted."""
    assert directory not in root.removed
    assert all(vhost.directory != directory for vhost in root.vhosts)
    return _next(root, removed=(*root.removed, directory))


def adopt(root: VhostManifest, vhost: NamedVhost) -> VhostManifest:
    """Name a virtual host, whose reserved directory is whole and durable by now."""
    assert vhost.directory in root.removed
    assert root.directory_of(vhost.name) is None
    return _next(
        root,
        vhosts=(*root.vhosts, vhost),
        removed=tuple(one for one in root.removed if one != vhost.directory),
    )


def drop(root: VhostManifest, name: str) -> VhostManifest:
    """Let a virtual host be gone; its directory may be deleted."""
    directory = root.directory_of(name)
    assert directory is not None
    return _next(
        root,
        vhosts=tuple(vhost for vhost in root.vhosts if vhost.name != name),
        removed=(*root.removed, directory),
    )


def forget(root: VhostManifest, directories: frozenset[str]) -> VhostManifest:
    """Take directories that are deleted now off the list `removed`."""
    return _next(root, removed=tuple(one for one in root.removed if one not in directories))


def _next(root: VhostManifest, **changes: Any) -> VhostManifest:
    return replace(root, generation=root.generation + 1, **changes)
