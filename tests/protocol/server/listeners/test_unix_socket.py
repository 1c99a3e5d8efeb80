"""Unix sockets: left-over names are removed, names in use and other files are not."""

import os
import socket
import stat
from pathlib import Path

import pytest

from ambermq.protocol.server.listeners.listener_address import ListenerAddress
from ambermq.protocol.server.listeners.unix_socket import UnixName, bind_owner_socket, remove_owner_socket


def named(path: Path) -> ListenerAddress:
    """Return the address of a path."""
    return ListenerAddress("unix", path=str(path))


def test_the_socket_of_a_directory_is_for_its_owner(tmp_path: Path) -> None:
    """Mode 0600; a socket of a killed broker is replaced, and a stop removes it."""
    for _ in range(2):
        listener = bind_owner_socket(str(tmp_path))
        assert stat.S_IMODE((tmp_path / "broker.sock").stat().st_mode) == 0o600
        assert listener.owners_only == {0, os.geteuid()}
        listener.sockets[0].close()
    remove_owner_socket(listener)
    assert not (tmp_path / "broker.sock").exists()


def test_a_file_in_its_place_is_kept(tmp_path: Path) -> None:
    """It may be a file of the user."""
    (tmp_path / "broker.sock").write_text("mine")
    with pytest.raises(FileExistsError):
        bind_owner_socket(str(tmp_path))
    assert (tmp_path / "broker.sock").read_text() == "mine"


def test_a_long_path_gets_an_abstract_name(tmp_path: Path) -> None:
    """Which has no file, and is not guessed."""
    directory = tmp_path / ("d" * 100)
    directory.mkdir()
    listener = bind_owner_socket(str(directory))
    assert listener.address.path.startswith("@ambermq-")
    assert list(directory.iterdir()) == []
    listener.sockets[0].listen(1)
    with socket.socket(socket.AF_UNIX) as client:
        client.connect("\0" + listener.address.path[1:])
        stream, name = listener.sockets[0].accept()
    peer = listener.peer_of(stream, name)
    assert peer is not None
    assert (peer.uid, peer.is_local, peer.is_encrypted, peer.address) == (os.geteuid(), True, True, "")
    listener.owners_only = frozenset({os.geteuid() + 1})
    assert listener.peer_of(stream, name) is None
    stream.close()
    listener.sockets[0].close()


def test_a_name_in_use_is_refused_and_a_left_over_one_replaced(tmp_path: Path) -> None:
    """The lock file says which, also before the first broker listens."""
    path = tmp_path / "socket"
    first = UnixName(named(path))
    with pytest.raises(BlockingIOError):
        UnixName(named(path))
    assert path.exists()
    os.close(first._lock_fd)  # As the kernel does for a killed process.
    second = UnixName(named(path))
    second.release()
    assert not path.exists()
    first.listener.sockets[0].close()


def test_a_file_is_never_removed_for_a_listener(tmp_path: Path) -> None:
    """Nor is a path over 107 bytes cut."""
    (tmp_path / "file").write_text("mine")
    with pytest.raises(FileExistsError):
        UnixName(named(tmp_path / "file"))
    assert (tmp_path / "file").read_text() == "mine"
    with pytest.raises(OSError, match="at most 107"):
        UnixName(named(tmp_path / ("x" * 108)))
