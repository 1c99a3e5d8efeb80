r"""Old generations of the manifest that readers still hold, and what may not be deleted for their sake.

    MANIFEST.<generation>    a second name of a manifest that was replaced while somebody had it locked

Rule 1. A reader holds a shared lock (flock) on the manifest that it opened, for as long as it reads (inspect.py). Files
that this manifest names stay, whatever became of them since.
Rule 2. `manifest.store` holds the manifest alone while it replaces it, or gives it this second name first: so a reader
either is found here, or finds that its path names another file by now and looks again. Where nobody reads, there are no
links, and a commit pays for one lock.
Rule 3. Whoever can hold a link alone unlinks it: its readers are gone, however they ended. Links are found by listing,
so this works over restarts of the broker too.
"""

import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from ambermq.log.errors import DamageError, ForeignError
from ambermq.log.manifest.manifest import MANIFEST_NAME, Manifest, decode, named_files
from ambermq.log.storage.interface import Storage

__all__ = ["PinnedGenerations"]

_LINK_NAME: Final = re.compile(rf"{MANIFEST_NAME}\.([0-9]+)\Z")


class PinnedGenerations:
    """The links of one log's directory."""

    __slots__ = ("_directory", "_storage")

    def __init__(self, storage: Storage, directory: str) -> None:
        self._storage = storage
        self._directory = directory

    def generations(self) -> list[int]:
        """Return the generations that have a link, in order; readers may have left some of them."""
        names = map(_LINK_NAME.match, self._storage.listdir(self._directory))
        return sorted(int(name[1]) for name in names if name)

    def sweep(self) -> frozenset[int]:
        """Unlink the generations that nobody reads any more; return the file ids that the others name."""
        return frozenset(file_id for manifest in self._held() for file_id in named_files(manifest))

    def _held(self) -> Iterator[Manifest]:
        for generation in self.generations():
            path = f"{self._directory}/{MANIFEST_NAME}.{generation}"
            hold = self._storage.try_lock(path)
            if hold is None:
                # What cannot be decoded was refused by its reader too, who is about to let go of it.
                with suppress(DamageError, ForeignError):
                    yield self._read(path)
                continue
            try:
                self._storage.unlink(path)
            finally:
                hold.release()

    def _read(self, path: str) -> Manifest:
        file = self._storage.open(path)
        try:
            return decode(file.read(file.size(), 0), file=path)
        finally:
            file.close()
