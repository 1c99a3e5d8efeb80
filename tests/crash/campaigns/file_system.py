"""A file system of its own in a file, on a loop device, that can lose its power.

    ext4    without auto_da_alloc: without this option a rename flushes the file, which would hide a missing sync
    xfs     as mkfs makes it

Rule 1. `cut` is the ioctl that shuts a mounted file system down without flushing its journal. What no sync has made
durable is gone after the next mount, as after a loss of power. Every later write fails with EIO.
Rule 2. A loop device, a mount and the ioctl need root, and mkfs must be installed: `why_not` says what is missing.
"""

import fcntl
import os
import shutil
import struct
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, Self

__all__ = ["KINDS", "PoweredFileSystem", "why_not"]

_MIB: Final = 1 << 20
_IMAGE_BYTES: Final = 2048 * _MIB
"""Sparse: only what is written takes room. Smaller ones have no room for the history of a long campaign."""
_MAKE: Final[Mapping[str, tuple[str, ...]]] = {
    "ext4": ("mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0"),
    "xfs": ("mkfs.xfs", "-q", "-f"),
}
_OPTIONS: Final = {"ext4": "loop,noauto_da_alloc", "xfs": "loop"}
KINDS: Final = tuple(_MAKE)
"""The file systems."""

_SHUTDOWN: Final = 0x8004587D
"""EXT4_IOC_SHUTDOWN and XFS_IOC_GOINGDOWN: _IOR('X', 125, u32)."""
_WITHOUT_LOG_FLUSH: Final = 2
_UNMOUNT_SECONDS: Final = 30.0


class PoweredFileSystem:
    """A mounted file system; `with` unmounts it and removes the image."""

    def __init__(self, kind: str, directory: Path) -> None:
        """Create the image and mount it below `directory`. Raises CalledProcessError."""
        self.mount_point = directory / "mounted"
        """Where it is mounted."""
        self._image = directory / f"{kind}.image"
        self._options = _OPTIONS[kind]
        with self._image.open("xb") as image:
            image.truncate(_IMAGE_BYTES)
        _run(*_MAKE[kind], str(self._image))
        self.mount_point.mkdir()
        self._mount()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._unmount()
        self._image.unlink()

    def cut(self) -> None:
        """Cut the power: from now on every write fails, and what is not durable is lost."""
        fd = os.open(self.mount_point, os.O_RDONLY)
        try:
            fcntl.ioctl(fd, _SHUTDOWN, struct.pack("I", _WITHOUT_LOG_FLUSH))
        finally:
            os.close(fd)

    def restore(self) -> None:
        """Restore the power: unmount, and mount what the device holds. No process may use the file system."""
        self._unmount()
        self._mount()

    def _mount(self) -> None:
        _run("mount", "-o", self._options, str(self._image), str(self.mount_point))

    def _unmount(self) -> None:
        """Unmount; for a moment after the end of a process the kernel may still use its files."""
        deadline = time.monotonic() + _UNMOUNT_SECONDS
        while True:
            try:
                _run("umount", str(self.mount_point))
            except subprocess.CalledProcessError:
                if time.monotonic() >= deadline:
                    raise
                time.sleep(0.05)
            else:
                return


def why_not(kind: str) -> str:
    """Return why a file system cannot lose its power here; empty if it can. It tries it once."""
    if os.geteuid():
        return "a loop device needs root"
    if shutil.which(_MAKE[kind][0]) is None:
        return f"{_MAKE[kind][0]} is not installed"
    try:
        with TemporaryDirectory(prefix="ambermq-power-") as scratch, PoweredFileSystem(kind, Path(scratch)) as powered:
            powered.cut()
    except subprocess.CalledProcessError as error:
        return f"{error.cmd[0]} failed: {error.stderr.strip()}"
    except OSError as error:
        return f"the shutdown ioctl failed: {error}"
    return ""


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=120)
