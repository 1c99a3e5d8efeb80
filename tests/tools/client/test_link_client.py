"""The blocking client against peers that behave badly."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ambermq.protocol.auth.sasl.client_credentials import ClientCredentials
from ambermq.tools.broker.child_broker import ChildBroker
from ambermq.tools.client import link_client
from ambermq.tools.client.broker_url import BrokerUrl
from ambermq.tools.client.link_client import LinkClient
from ambermq.tools.messages.subscriber import Subscriber
from ambermq.tools.terminal.errors import ConnectionBroke, ToolError
from ambermq.tools.terminal.exit_codes import ExitCode


@contextmanager
def peer(serve: Callable[[socket.socket], object]) -> Iterator[BrokerUrl]:
    """A listener whose first connection is served by a function, in a thread."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def accept() -> None:
            connection, _ = listener.accept()
            with connection:
                serve(connection)

        thread = threading.Thread(target=accept)
        thread.start()
        yield BrokerUrl("127.0.0.1", listener.getsockname()[1])
        thread.join(10)


def test_a_connection_to_a_closed_port_fails() -> None:
    """Exit code 4, where, and what to do."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    message = f"amqp://127.0.0.1:{port}: cannot connect: found .*; start a broker"
    with pytest.raises(ConnectionBroke, match=message) as caught:
        LinkClient.connect(BrokerUrl("127.0.0.1", port))
    assert caught.value.exit_code == ExitCode.CANNOT_CONNECT


def test_a_host_that_has_no_address_cannot_be_connected_to() -> None:
    """The resolver's word is told."""
    with pytest.raises(ConnectionBroke, match=r"host\.invalid:5672: cannot connect"):
        LinkClient.connect(BrokerUrl("host.invalid"))


def test_a_silent_peer_cannot_be_connected_to(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was awaited is named; exit code 4, as for a peer that is not there."""
    monkeypatch.setattr(link_client, "TIMEOUT_SECONDS", 0.2)
    heard = threading.Event()
    with peer(lambda _: heard.wait(10)) as url:
        with pytest.raises(ToolError, match="the broker has sent nothing") as caught:
            LinkClient.connect(url)
        heard.set()
    assert caught.value.exit_code == ExitCode.CANNOT_CONNECT


def test_a_peer_that_hangs_up_has_broken_the_connection() -> None:
    """Exit code 4."""
    with peer(lambda connection: connection.recv(8)) as url, pytest.raises(ConnectionBroke, match="broke"):
        LinkClient.connect(url)


def test_a_peer_that_speaks_something_else_is_told() -> None:
    """One message about what came, no traceback."""
    request = b"HTTP/1.1 400 Bad Request\r\n\r\n"
    with peer(lambda connection: connection.sendall(request)) as url, pytest.raises(ToolError) as caught:
        LinkClient.connect(url)
    assert str(url) in caught.value.message


@pytest.mark.parametrize("end", [ChildBroker.kill, ChildBroker.stop], ids=["killed", "stopped"])
def test_a_broker_that_ends_breaks_what_waits_for_it(tmp_path: Path, end: Callable[[ChildBroker], int]) -> None:
    """A client that waits for a message gets an error with exit code 4."""
    broker = ChildBroker(tmp_path / "data")
    broker.start()
    with LinkClient.connect(BrokerUrl.parse(broker.url)) as client:
        subscriber = Subscriber(client, client.attach_receiver("q"))
        stopper = threading.Thread(target=end, args=(broker,))
        stopper.start()
        with pytest.raises(ConnectionBroke) as caught:
            next(subscriber.payloads())
        stopper.join()
    assert caught.value.exit_code == ExitCode.CANNOT_CONNECT


@pytest.mark.parametrize(("url", "count"), [("amqps://far:1", 2), ("amqp://far:1", 1), ("amqp://127.0.0.1:1", 2)])
def test_a_password_is_sent_as_it_is_only_where_no_other_machine_reads_it(
    monkeypatch: pytest.MonkeyPatch, url: str, count: int
) -> None:
    """A refused login is tried again with PLAIN over TLS and on this machine."""
    asked: list[bool] = []

    def connect(_url: BrokerUrl, _limits: object, credentials: ClientCredentials) -> LinkClient:
        asked.append(credentials.is_plain)
        raise link_client._NotAuthenticatedError("refused")

    monkeypatch.setattr(LinkClient, "_connect", connect)
    with pytest.raises(ToolError, match="refused"):
        LinkClient.connect(BrokerUrl.parse(url.replace("://", "://alice:secret@")))
    assert asked == [False, True][:count]
