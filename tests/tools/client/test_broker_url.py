"""URLs of brokers."""

from contextlib import suppress

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ambermq.tools.client.broker_url import BrokerUrl


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("amqp://localhost", BrokerUrl("localhost", 5672)),
        ("amqp://127.0.0.1:1/", BrokerUrl("127.0.0.1", 1)),
        ("amqp://127.0.0.1:1/vhost:orders", BrokerUrl("127.0.0.1", 1, vhost="orders")),
        ("amqp://[::1]:7", BrokerUrl("::1", 7)),
        ("amqp://alice@h", BrokerUrl("h", 5672, "alice")),
        ("amqp://al%40ice:s%3Acret@h:9", BrokerUrl("h", 9, "al@ice", "s:cret")),
    ],
)
def test_a_url_names_host_port_and_user(text: str, expected: BrokerUrl) -> None:
    """Percent-encoding is undone; the port is 5672 unless named; a path names a virtual host."""
    assert BrokerUrl.parse(text) == expected


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("localhost:5672", "no amqp:// at the start"),
        ("http://h", "no amqp:// at the start"),
        ("amqp://", "no host after amqp://"),
        ("amqps://", "no host after amqps://"),
        ("unix:", "no path after unix:"),
        ("unix:///run/socket", "no path after unix:"),
        ("unix:/run/socket/vhost:", "no name after /vhost:"),
        ("amqp://h:x", "no valid host and port"),
        ("amqp://h:99999", "no valid host and port"),
        ("amqp://h/orders", "another path"),
        ("amqp://h/vhost", "another path"),
        ("amqp://h/%2F", "another path"),
        ("amqp://h//vhost:orders", "another path"),
        ("amqp://h/vhost:", "no name after /vhost:"),
        ("amqp://h?vhost=orders", "a query or a fragment"),
        ("amqp://h/vhost:orders#x", "a query or a fragment"),
    ],
)
def test_what_is_no_url_is_a_wrong_command_line(text: str, found: str) -> None:
    """The message says what a URL looks like."""
    with pytest.raises(click.UsageError, match=rf"HOST:PORT\[/vhost:NAME\], found .*{found}"):
        BrokerUrl.parse(text)


def test_a_password_is_never_shown() -> None:
    """Neither in the URL's text nor in a message about it."""
    assert str(BrokerUrl.parse("amqp://alice:secret@h:1")) == "amqp://h:1"
    for text in ("http://alice:secret@h", "amqp://alice:secret@h/orders", "amqp://alice:#secret@h"):
        with pytest.raises(click.UsageError) as caught:
            BrokerUrl.parse(text)
        assert "secret" not in str(caught.value)


@given(
    st.text("ABC/:?#[]%2F &=", min_size=1, max_size=4),
    st.sampled_from(("amqp://u:{}@host", "amqps://u:{}@host:1/x", "amqp://u:{}", "amqp://u:{}@", "amqp://{}@host:x")),
)
def test_no_part_of_a_password_is_in_any_message(odd: str, form: str) -> None:
    """Whatever characters stand in it: a slash makes the first half look like a port."""
    with suppress(click.UsageError):
        BrokerUrl.parse(form.format(f"hunter{odd}secret"))
        return
    with pytest.raises(click.UsageError) as caught:
        BrokerUrl.parse(form.format(f"hunter{odd}secret"))
    assert "hunter" not in str(caught.value)
    assert "secret" not in str(caught.value)


def test_an_address_of_six_keeps_its_brackets() -> None:
    """What is printed can be parsed again."""
    assert str(BrokerUrl("::1", 7)) == "amqp://[::1]:7"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("amqps://h", BrokerUrl("h", 5671, scheme="amqps")),
        ("amqps://alice:x@h:1/vhost:v", BrokerUrl("h", 1, "alice", "x", "v", "amqps")),
        ("unix:/run/broker.sock", BrokerUrl.of_socket("/run/broker.sock")),
        ("unix:/run/a%20b/vhost:v%2F", BrokerUrl.of_socket("/run/a b", "v/")),
        ("unix:@ambermq-1", BrokerUrl.of_socket("@ambermq-1")),
    ],
)
def test_tls_and_unix_sockets_have_urls(text: str, expected: BrokerUrl) -> None:
    """What is printed, with the user, is parsed to the same URL."""
    assert BrokerUrl.parse(text) == expected
    assert BrokerUrl.parse(expected.with_user(expected.username, expected.password)) == expected
