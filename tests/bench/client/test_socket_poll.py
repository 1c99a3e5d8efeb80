"""Which peers a poll of many sockets reports."""

import socket

from bench.client.socket_poll import SocketPoll


class _Peer:
    def __init__(self) -> None:
        self.socket, self.other = socket.socketpair()
        self.is_writing = False

    def close(self) -> None:
        self.socket.close()
        self.other.close()


def test_a_peer_with_input_is_readable_and_one_with_output_is_writable() -> None:
    quiet, reader, writer = peers = [_Peer(), _Peer(), _Peer()]
    poll: SocketPoll[_Peer] = SocketPoll()
    poll.add(peers)
    assert poll.wait(0) == ([], [])
    reader.other.send(b"x")
    writer.is_writing = True
    assert poll.wait(1) == ([reader], [writer])
    reader.socket.recv(1)
    writer.is_writing = False
    assert poll.wait(0) == ([], [])
    for peer in (quiet, reader, writer):
        peer.close()


def test_a_wait_without_input_ends_in_time() -> None:
    peer = _Peer()
    poll: SocketPoll[_Peer] = SocketPoll()
    poll.add([peer])
    assert poll.wait(0.0005) == ([], [])
    peer.close()


def test_a_closed_peer_is_readable() -> None:
    peer = _Peer()
    poll: SocketPoll[_Peer] = SocketPoll()
    poll.add([peer])
    peer.other.close()
    assert poll.wait(1) == ([peer], [])
    peer.close()
