"""The virtual hosts of a data directory, on the disk: what root.py says, done.

    reserve   a new directory that may be filled           edit of the root manifest
    adopt     it is whole and durable: it has a name now   edit
    remove    it has none any more                         edit, deletion, edit
    sweep     what was reserved or dropped and left over   deletion, edit

Rule 1. Only who holds the lock of the data directory changes anything, one thing at a time: the broker, or a command
where none runs.
Rule 2. A kill at any point leaves a virtual host whole or not at all; what is left over is deleted by the next sweep.
"""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from ambermq.log.errors import DamageError, LogError, LogFailed
from ambermq.log.manifest.manifest import manifest_path
from ambermq.log.manifest.vhost_manifest import (
    DEFAULT_VHOST,
    EMPTY_ROOT,
    ROOT_NAME,
    NamedVhost,
    VhostManifest,
    adopt,
    check_name,
    decode,
    drop,
    encode,
    forget,
    reserve,
    root_path,
    vhosts_path,
)
from ambermq.log.storage.interface import Storage

__all__ = ["VhostDirectories", "load_root"]

_TEMPORARY_NAME: Final = f"{ROOT_NAME}.new"


def load_root(storage: Storage, directory: str) -> VhostManifest:
    """Return the root manifest of a data directory, an empty one where there is none; DamageError, ForeignError.

    Needs no lock: it is replaced in one step.
    """
    path, below = root_path(directory), vhosts_path(directory)
    if not storage.exists(path):
        count = len(storage.listdir(below)) if storage.exists(below) else 0
        if count:
            raise DamageError(path, 0, f"a root manifest beside {count} directories of virtual hosts", "no file")
        return EMPTY_ROOT
    file = storage.open(path)
    try:
        return decode(file.read(file.size(), 0), file=path)
    finally:
        file.close()


class VhostDirectories:
    """The virtual hosts below one data directory, for who holds its lock. All may raise LogFailed."""

    def __init__(self, storage: Storage, directory: str) -> None:
        """Read the root manifest of `directory`; DamageError, ForeignError."""
        self._storage = storage
        self._directory = directory
        with _translated(directory):
            self.root = load_root(storage, directory)

    def names(self) -> list[str]:
        """Return the names of all virtual hosts, the default one first."""
        return [DEFAULT_VHOST, *(vhost.name for vhost in self.root.vhosts)]

    def path_of(self, name: str) -> str | None:
        """Return the log directory of a virtual host, None where there is none of that name."""
        if name == DEFAULT_VHOST:
            return self._directory
        directory = self.root.directory_of(name)
        return None if directory is None else self.reserved_path(directory)

    def check_log(self, name: str) -> None:
        """Raise DamageError where a virtual host but the default one has no log: one that is named was whole once."""
        path = self.path_of(name)
        if name != DEFAULT_VHOST and path is not None and not self._storage.exists(manifest_path(path)):
            expected = f"the manifest of the virtual host {name!r}, which {root_path(self._directory)} names"
            raise DamageError(manifest_path(path), 0, expected, "no file")

    def unknown(self) -> list[str]:
        """Return the directories among those of virtual hosts that nobody knows, which stay."""
        below = vhosts_path(self._directory)
        with _translated(below):
            found = self._storage.listdir(below) if self._storage.exists(below) else []
        known = {*(vhost.directory for vhost in self.root.vhosts), *self.root.removed}
        return [name for name in found if name not in known]

    def reserve(self, name: str) -> str:
        """Return the name of a directory that may be filled for a virtual host `name`; it does not exist yet.

        LogError where the name cannot be had.
        """
        self._check_free(name)
        directory = f"{name}~{secrets.token_hex(4)}"
        self._edit(reserve(self.root, directory))
        return directory

    def reserved_path(self, directory: str) -> str:
        """Return the path of a directory of a virtual host."""
        return f"{vhosts_path(self._directory)}/{directory}"

    def prepared_path(self, name: str, directory: str) -> str:
        """Return the path of what may be adopted by this name; LogError where nothing may."""
        self._check_free(name)
        path = self.reserved_path(directory)
        if directory not in self.root.removed or not self._storage.exists(manifest_path(path)):
            raise LogError(f"{path} was not prepared as a virtual host, or not since the broker was started last")
        return path

    def adopt(self, name: str, directory: str) -> None:
        """Name what was reserved and filled; LogError where it is not, or the name cannot be had."""
        self.prepared_path(name, directory)
        self._edit(adopt(self.root, NamedVhost(name, directory)))

    def remove(self, name: str) -> None:
        """Let a virtual host be gone with all that is in it; LogError where there is none, or it is the default one."""
        directory = self.root.directory_of(name)
        if directory is None:
            raise LogError(f"there is no virtual host {name[:80]!r} that could be deleted")
        self._edit(drop(self.root, name))
        self.discard(directory)

    def discard(self, directory: str) -> None:
        """Delete what was reserved and is not wanted any more; nothing where it is not known."""
        if directory in self.root.removed:
            self._delete(directory)
            self._edit(forget(self.root, frozenset((directory,))))

    def sweep(self) -> None:
        """Delete all that was reserved or dropped and is left over; for a start, when nothing is being filled."""
        gone = frozenset(self.root.removed)
        for directory in gone:
            self._delete(directory)
        if gone:
            self._edit(forget(self.root, gone))

    def _check_free(self, name: str) -> None:
        check_name(name)
        if self.root.directory_of(name) is not None:
            raise LogError(f"there is a virtual host {name!r} already")

    def _delete(self, directory: str) -> None:
        below = vhosts_path(self._directory)
        with _translated(f"{below}/{directory}"):
            self._storage.remove_tree(f"{below}/{directory}")
            if self._storage.exists(below):
                self._storage.sync_directory(below)

    def _edit(self, root: VhostManifest) -> None:
        """Make `root` the truth; when this returns it survives a loss of power, and before that the old one does."""
        temporary = f"{self._directory}/{_TEMPORARY_NAME}"
        with _translated(root_path(self._directory)):
            if self._storage.exists(temporary):
                self._storage.unlink(temporary)
            file = self._storage.open(temporary, create=True)
            try:
                file.write([encode(root)], 0)
                file.sync()
            finally:
                file.close()
            self._storage.rename(temporary, root_path(self._directory))
            # What others see by now, whether or not the sync goes well: where it does not, nothing is promised on it.
            self.root = root
            self._storage.sync_directory(self._directory)


@contextmanager
def _translated(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise LogFailed(f"{path}: {error}") from error
