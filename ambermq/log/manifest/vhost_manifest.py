r"""The root manifest: the file that names every virtual host except the default one.

    VHOSTS      one JSON object over several lines, then its CRC line (crc_document.py)
    vhosts/     one log directory for each, named `<name>~<8 hex digits>`

Rule 1. The directory of the root manifest is the log of the virtual host "default", which the root manifest never
names. Without a root manifest there is no other virtual host.
Rule 2. A directory is never used twice: a name that is created again gets another directory. So every change of a
virtual host is one edit, a pure function VhostManifest -> VhostManifest.
Rule 3. A directory is on the list `removed` until it is complete. Directories on that list may be deleted. A directory
that is neither named nor on the list is reported and never deleted.
Rule 4. A damaged root manifest is refused: an older one would silently lose whole virtual hosts.
"""

import re
from dataclasses import dataclass, replace
from typing import Any, Final

from ambermq.log.errors import DamageError, LogError
from ambermq.log.format.crc_document import json_with_crc_line, read_document

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
    """A virtual host and the directory of its log."""

    name: str
    """The name that people and peers use."""
    directory: str
    """The name of its directory below `vhosts/`."""


@dataclass(frozen=True, slots=True)
class VhostManifest:
    """The virtual hosts of a data directory, in the order in which they were created."""

    version: int
    """The version of the format. A newer one is refused with ForeignError."""
    generation: int
    """The number of edits."""
    vhosts: tuple[NamedVhost, ...] = ()
    """All virtual hosts except the default one."""
    removed: tuple[str, ...] = ()
    """Directories that may be deleted: not complete yet, or not needed any more."""

    def directory_of(self, name: str) -> str | None:
        """Return the directory below `vhosts/` of a virtual host, or None if there is none of that name."""
        return next((vhost.directory for vhost in self.vhosts if vhost.name == name), None)


EMPTY_ROOT: Final = VhostManifest(VERSION, generation=0)
"""The root manifest of a data directory that has no file of it."""


def root_path(directory: str) -> str:
    """Return the path of the root manifest of a data directory."""
    return f"{directory}/{ROOT_NAME}"


def vhosts_path(directory: str) -> str:
    """Return the directory of all virtual hosts except the default one. It is missing if there was never one."""
    return f"{directory}/vhosts"


def check_name(name: str) -> None:
    """Raise LogError if a virtual host cannot have this name."""
    if not _NAME.match(name):
        raise LogError(
            f"{name[:80]!r} cannot be a virtual host's name: use 1 to 64 of A-Z a-z 0-9 . _ - and no dot at the start"
        )
    if name == DEFAULT_VHOST:
        raise LogError(f"{name!r} is the virtual host that always exists: choose another name")


def encode(root: VhostManifest) -> bytes:
    """Return the bytes of a root manifest: JSON, then the CRC line."""
    return json_with_crc_line(root)


def decode(text: bytes, *, file: str) -> VhostManifest:
    """Return the root manifest in `text`. Raises DamageError naming `file`, or ForeignError for an unknown version."""
    root = read_document(text, VhostManifest, file=file, what="root manifest", version=VERSION)
    for directory in (*(vhost.directory for vhost in root.vhosts), *root.removed):
        # A deletion removes a whole tree, so a name must not lead out of `vhosts/`.
        if not _DIRECTORY.match(directory):
            raise DamageError(file, 0, "directories named <name>~<8 hex digits>", repr(directory[:80]))
    return root


def reserve(root: VhostManifest, directory: str) -> VhostManifest:
    """Return the root manifest with an unused directory on the list `removed`; it may be deleted until adopted."""
    assert directory not in root.removed
    assert all(vhost.directory != directory for vhost in root.vhosts)
    return _next(root, removed=(*root.removed, directory))


def adopt(root: VhostManifest, vhost: NamedVhost) -> VhostManifest:
    """Return the root manifest with a new virtual host, whose reserved directory is complete and durable."""
    assert vhost.directory in root.removed
    assert root.directory_of(vhost.name) is None
    return _next(
        root,
        vhosts=(*root.vhosts, vhost),
        removed=tuple(one for one in root.removed if one != vhost.directory),
    )


def drop(root: VhostManifest, name: str) -> VhostManifest:
    """Return the root manifest without a virtual host; its directory may be deleted."""
    directory = root.directory_of(name)
    assert directory is not None
    return _next(
        root,
        vhosts=tuple(vhost for vhost in root.vhosts if vhost.name != name),
        removed=(*root.removed, directory),
    )


def forget(root: VhostManifest, directories: frozenset[str]) -> VhostManifest:
    """Return the root manifest without `directories`, which are deleted, on the list `removed`."""
    return _next(root, removed=tuple(one for one in root.removed if one not in directories))


def _next(root: VhostManifest, **changes: Any) -> VhostManifest:
    return replace(root, generation=root.generation + 1, **changes)
