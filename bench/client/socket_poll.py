"""Which sockets of many are readable or writable: epoll, with interest in writing only while bytes are pending.

epoll counts milliseconds; select on its descriptor waits in microseconds, which the sender of a fixed rate needs.
"""

import select
import socket
from collections.abc import Sequence
from typing import Generic, Protocol, TypeVar

__all__ = ["SocketPoll"]


class _Peer(Protocol):
    socket: socket.socket

    @property
    def is_writing(self) -> bool: ...


_P = TypeVar("_P", bound=_Peer)


class SocketPoll(Generic[_P]):
    """The senders or receivers of a process."""

    def __init__(self) -> None:
        """Create it without peers, before their sockets: select allows only low descriptors."""
        self._poll = select.epoll()
        self._peers: dict[int, _P] = {}
        self._writing: set[int] = set()

    def add(self, peers: Sequence[_P]) -> None:
        """Register the sockets of peers."""
        for peer in peers:
            self._peers[peer.socket.fileno()] = peer
            self._poll.register(peer.socket, select.EPOLLIN)

    def wait(self, timeout: float) -> tuple[list[_P], list[_P]]:
        """Return the peers whose socket can be read, and those with pending bytes whose socket can be written."""
        writing = {number for number, peer in self._peers.items() if peer.is_writing}
        for number in writing ^ self._writing:
            self._poll.modify(number, select.EPOLLIN | (select.EPOLLOUT if number in writing else 0))
        self._writing = writing
        readable, writable = [], []
        if timeout:
            select.select([self._poll], [], [], timeout)
        for number, events in self._poll.poll(0):
            if events & select.EPOLLOUT:
                writable.append(self._peers[number])
            if events & ~select.EPOLLOUT:
                readable.append(self._peers[number])
        return readable, writable
