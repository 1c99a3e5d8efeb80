"""The directories of the virtual hosts of a data directory: the edits of vhost_manifest.py, applied to the disk.

    reserve   return the name of a new directory to fill           edit of the root manifest
    adopt     name a directory that is complete and durable        edit
    remove    remove the name and delete the directory             edit, deletion, edit
    sweep     delete reserved or dropped directories               deletion, edit

Rule 1. Only the process that holds the lock of the data directory makes changes, one at a time: the broker, or a
command if no broker runs.
Rule 2. A kill at any point leaves a virtual host complete or absent. The next sweep deletes what remains of it.
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
    """Return the root manifest of a data directory, an empty one if it has none. Raises DamageError, ForeignError.

    It needs no lock, because the root manifest is replaced in one step.
    """
    path, below = root_path(directory), vhosts_path(directory)
    if not storage.exists(path):
        count = len(storage.listdir(below)) if storage.exists(below) else 0
        if count:
            raise DamageError(path, 0, f"a root manifest for {count} directories of virtual hosts", "no file")
        return EMPTY_ROOT
    file = storage.open(path)
    try:
        return decode(file.read(file.size(), 0), file=path)
    finally:
        file.close()


class VhostDirectories:
    """The virtual hosts of one data directory, whose lock the caller holds. Every method may raise LogFailed."""

    def __init__(self, storage: Storage, directory: str) -> None:
        """Read the root manifest of `directory`. Raises DamageError, ForeignError."""
        self._storage = storage
        self._directory = directory
        with _translate_os_errors(directory):
            self.root = load_root(storage, directory)

    def names(self) -> list[str]:
        """Return the names of all virtual hosts, the default one first."""
        return [DEFAULT_VHOST, *(vhost.name for vhost in self.root.vhosts)]

    def path_of(self, name: str) -> str | None:
        """Return the log directory of a virtual host, or None if there is none of that name."""
        if name == DEFAULT_VHOST:
            return self._directory
        directory = self.root.directory_of(name)
        return None if directory is None else self.reserved_path(directory)

    def check_log(self, name: str) -> None:
        """Raise DamageError if a virtual host has no log. Only the default one may lack it, before its first start."""
        path = self.path_of(name)
        if name != DEFAULT_VHOST and path is not None and not self._storage.exists(manifest_path(path)):
            expected = f"the manifest of the virtual host {name!r}, which {root_path(self._directory)} names"
            raise DamageError(manifest_path(path), 0, expected, "no file")

    def unknown(self) -> list[str]:
        """Return the directories below `vhosts/` that the root manifest does not list. They are never deleted."""
        below = vhosts_path(self._directory)
        with _translate_os_errors(below):
            found = self._storage.listdir(below) if self._storage.exists(below) else []
        known = {*(vhost.directory for vhost in self.root.vhosts), *self.root.removed}
        return [name for name in found if name not in known]

    def reserve(self, name: str) -> str:
        """Reserve a directory for a virtual host `name` and return its name; the caller makes and fills it.

        Raises LogError if the name is invalid or in use.
        """
        self._check_free(name)
        directory = f"{name}~{secrets.token_hex(4)}"
        self._edit(reserve(self.root, directory))
        return directory

    def reserved_path(self, directory: str) -> str:
        """Return the path of a directory of a virtual host."""
        return f"{vhosts_path(self._directory)}/{directory}"

    def prepared_path(self, name: str, directory: str) -> str:
        """Return the path of a reserved directory to adopt under `name`. Raises LogError if it is not ready."""
        self._check_free(name)
        path = self.reserved_path(directory)
        if directory not in self.root.removed or not self._storage.exists(manifest_path(path)):
            raise LogError(f"{path} was not prepared as a virtual host since the last start of the broker")
        return path

    def adopt(self, name: str, directory: str) -> None:
        """Name a reserved and filled directory. Raises LogError if it is not ready, or the name is in use."""
        self.prepared_path(name, directory)
        self._edit(adopt(self.root, NamedVhost(name, directory)))

    def remove(self, name: str) -> None:
        """Delete a virtual host and its directory. Raises LogError if there is none, or if it is the default one."""
        directory = self.root.directory_of(name)
        if directory is None:
            raise LogError(f"there is no virtual host {name[:80]!r} to delete")
        self._edit(drop(self.root, name))
        self.discard(directory)

    def discard(self, directory: str) -> None:
        """Delete a reserved directory that is not needed any more. An unknown directory is ignored."""
        if directory in self.root.removed:
            self._delete(directory)
            self._edit(forget(self.root, frozenset((directory,))))

    def sweep(self) -> None:
        """Delete all reserved and dropped directories. Called at the start, when none is being filled."""
        removed = frozenset(self.root.removed)
        for directory in removed:
            self._delete(directory)
        if removed:
            self._edit(forget(self.root, removed))

    def _check_free(self, name: str) -> None:
        check_name(name)
        if self.root.directory_of(name) is not None:
            raise LogError(f"there is a virtual host {name!r} already")

    def _delete(self, directory: str) -> None:
        below = vhosts_path(self._directory)
        with _translate_os_errors(f"{below}/{directory}"):
            self._storage.remove_tree(f"{below}/{directory}")
            if self._storage.exists(below):
                self._storage.sync_directory(below)

    def _edit(self, root: VhostManifest) -> None:
        """Replace the root manifest durably. Until this returns a power loss leaves the old one."""
        temporary = f"{self._directory}/{_TEMPORARY_NAME}"
        with _translate_os_errors(root_path(self._directory)):
            if self._storage.exists(temporary):
                self._storage.unlink(temporary)
            file = self._storage.open(temporary, create=True)
            try:
                file.write([encode(root)], 0)
                file.sync()
            finally:
                file.close()
            self._storage.rename(temporary, root_path(self._directory))
            # Readers see the new root from here on. If the sync fails, the caller promises nothing that depends on it.
            self.root = root
            self._storage.sync_directory(self._directory)


@contextmanager
def _translate_os_errors(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise LogFailed(f"{path}: {error}") from error
