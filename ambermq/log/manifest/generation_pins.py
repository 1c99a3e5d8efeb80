r"""Old generations of the manifest that readers have locked. The files that they name must not be deleted.

    MANIFEST.<generation>    a second name of a manifest that was replaced while a reader had it locked

Rule 1. A reader holds a shared lock (flock) on the manifest that it opened, as long as it reads (log_reader.py). The
files that this manifest names stay, even if a later manifest removed them.
Rule 2. `manifest.store` locks the manifest exclusively while it replaces it. If a reader has locked it, `store` first
adds the second name. So a reader is either found here, or it sees that its path names another file and opens that one.
Without readers there are no links, and a commit costs one lock.
Rule 3. A link that can be locked exclusively has no reader any more and is unlinked. Links are found in the directory,
so this works across restarts of the broker too.
"""

import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from ambermq.log.errors import DamageError, ForeignError
from ambermq.log.manifest.manifest import MANIFEST_NAME, Manifest, decode, named_files
from ambermq.log.storage.interface import Storage

__all__ = ["GenerationPins"]

_LINK_NAME: Final = re.compile(rf"{MANIFEST_NAME}\.([0-9]+)\Z")


class GenerationPins:
    """The links to old manifests in one log's directory."""

    __slots__ = ("_directory", "_storage")

    def __init__(self, storage: Storage, directory: str) -> None:
        self._storage = storage
        self._directory = directory

    def generations(self) -> list[int]:
        """Return the generations that have a link, in order. Some may have no reader any more."""
        names = map(_LINK_NAME.match, self._storage.listdir(self._directory))
        return sorted(int(name[1]) for name in names if name)

    def sweep(self) -> frozenset[int]:
        """Unlink the generations without a reader; return the file ids that the other generations name."""
        return frozenset(file_id for manifest in self._sweep_unread() for file_id in named_files(manifest))

    def _sweep_unread(self) -> Iterator[Manifest]:
        """Unlink each generation without a reader; yield the manifests of the others."""
        for generation in self.generations():
            path = f"{self._directory}/{MANIFEST_NAME}.{generation}"
            lock = self._storage.try_lock(path)
            if lock is None:
                # A manifest that cannot be decoded was refused by its reader too, which will close it soon.
                with suppress(DamageError, ForeignError):
                    yield self._read(path)
                continue
            try:
                self._storage.unlink(path)
            finally:
                lock.release()

    def _read(self, path: str) -> Manifest:
        file = self._storage.open(path)
        try:
            return decode(file.read(file.size(), 0), file=path)
        finally:
            file.close()
