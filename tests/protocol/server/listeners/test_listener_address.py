"""The addresses of listeners."""

import pytest

from ambermq.protocol.server.listeners.listener_address import ListenerAddress


@pytest.mark.parametrize(
    ("text", "shown", "is_local"),
    [
        ("amqp://127.0.0.1:1", "amqp://127.0.0.1:1", True),
        ("amqp://localhost", "amqp://localhost:5672", True),
        ("amqps://0.0.0.0", "amqps://0.0.0.0:5671", False),
        ("ws://[::1]:8080", "ws://[::1]:8080", True),
        ("wss://broker.example.org:443/", "wss://broker.example.org:443", False),
        ("amqp://127.0.0.1:0", "amqp://127.0.0.1:0", True),
        ("unix:/run/ambermq.sock", "unix:/run/ambermq.sock", True),
    ],
)
def test_an_address_is_read_and_shown(text: str, shown: str, *, is_local: bool) -> None:
    """With its default port."""
    address = ListenerAddress.parse(text)
    assert (str(address), address.is_local) == (shown, is_local)
    assert ListenerAddress.parse(shown) == address


@pytest.mark.parametrize(
    "text",
    ["", "127.0.0.1:5672", "http://h:1", "amqp://", "amqp://h:x", "amqp://h:70000", "amqp://u@h", "amqp://h/path",
     "amqp://h?x", "unix:", "unix:///run/x", "unix:a\0b"],
)  # fmt: skip
def test_what_is_no_address_is_an_error(text: str) -> None:
    """It says what was expected and found."""
    with pytest.raises(ValueError, match=r"expected .*, found"):
        ListenerAddress.parse(text)
