"""The sockets of unix listeners, and their names in the file system.

Rule 1. A name has a lock file, PATH.lock. The listener holds its lock, so a name whose lock is free is left over from
        a killed broker, and is removed. A name that is no socket is never removed.
Rule 2. DIR/broker.sock needs no lock file: the lock of the data directory covers it. Only its owner uses it.
Rule 3. A path of more than 107 bytes fits into no address. DIR/broker.sock has an abstract name then: it has no file,
        so the server checks the user id of each peer.
"""

import fcntl
import os
import secrets
import socket
import stat
from contextlib import suppress
from pathlib import Path
from typing import Final, final

from ambermq.protocol.server.listeners.listener import Listener
from ambermq.protocol.server.listeners.listener_address import UNIX_SCHEME, ListenerAddress

__all__ = ["PATH_BYTES_MAX", "UnixName", "bind_owner_socket", "remove_owner_socket", "socket_path"]

PATH_BYTES_MAX: Final = 107
"""The longest path of a unix socket."""
_NAME: Final = "broker.sock"
_OWNER_MODE: Final = 0o600
_PUBLIC_MODE: Final = 0o666
"""Peers of a named socket are known by their user ids; permissions of its directory may keep them out."""


def socket_path(directory: str) -> str:
    """Return the path of the socket in a data directory."""
    return str(Path(directory).absolute() / _NAME)


def bind_owner_socket(directory: str) -> Listener:
    """Return the listener of a data directory whose lock this process holds. Raises OSError."""
    path = socket_path(directory)
    owners = frozenset({0, os.geteuid()})
    if len(os.fsencode(path)) > PATH_BYTES_MAX:
        name = f"ambermq-{secrets.token_hex(16)}"
        bound = _new_socket(f"\0{name}")
        return Listener(ListenerAddress(UNIX_SCHEME, path=f"@{name}"), [bound], owners)
    _remove_socket(path)
    bound = _new_socket(path)
    Path(path).chmod(_OWNER_MODE)
    return Listener(ListenerAddress(UNIX_SCHEME, path=path), [bound], owners)


def remove_owner_socket(listener: Listener) -> None:
    """Remove the name of the socket of a data directory whose lock this process still holds."""
    if not listener.address.path.startswith("@"):
        with suppress(OSError):
            _remove_socket(listener.address.path)


@final
class UnixName:
    """The name of a unix listener, held by a lock until `release`."""

    __slots__ = ("_lock_fd", "listener")

    def __init__(self, address: ListenerAddress) -> None:
        """Bind a socket to a path. Raises OSError; BlockingIOError if another broker has the name."""
        path = address.path
        if len(os.fsencode(path)) > PATH_BYTES_MAX:
            raise OSError(f"a path of {len(os.fsencode(path))} bytes, at most {PATH_BYTES_MAX}")
        self._lock_fd = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(self._lock_fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _remove_socket(path)
            bound = _new_socket(path)
            Path(path).chmod(_PUBLIC_MODE)
        except BaseException:
            os.close(self._lock_fd)
            raise
        self.listener = Listener(address, [bound])
        """The listener with the bound socket."""

    def release(self) -> None:
        """Close the socket and remove its name."""
        for bound in self.listener.sockets:
            bound.close()
        with suppress(OSError):
            _remove_socket(self.listener.address.path)
        os.close(self._lock_fd)


def _new_socket(name: str) -> socket.socket:
    bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        bound.setblocking(False)
        bound.bind(name)
    except BaseException:
        bound.close()
        raise
    return bound


def _remove_socket(path: str) -> None:
    """Remove a socket that is left over; raise FileExistsError for any other file."""
    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise FileExistsError(f"{path} exists and is no socket")
    Path(path).unlink(missing_ok=True)
