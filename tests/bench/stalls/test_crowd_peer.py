"""The client of the benchmark `stalls`."""

import socket
import threading

import pytest

from bench.stalls.crowd_peer import CrowdPeer


def test_the_end_of_the_broker_ends_a_wait() -> None:
    """A wait fails at once; it used all of a core until its timeout of 300 s."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=_accept_and_close, args=(server,)).start()
        with (
            CrowdPeer(f"amqp://127.0.0.1:{server.getsockname()[1]}", "peer") as peer,
            pytest.raises((ConnectionError, TimeoutError), match=r"closed|reset"),
        ):
            peer.wait(lambda: False, 5.0)


def _accept_and_close(server: socket.socket) -> None:
    server.accept()[0].close()
