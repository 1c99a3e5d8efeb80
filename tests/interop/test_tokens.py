"""Tokens of the kind that Azure clients put, by Proton at a real broker with users.

Proton knows no MSSBCBS, so the broker has cbs_anonymous = true, as for the Python SDKs.
"""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from proton import Message
from proton.utils import BlockingConnection, LinkDetached

from ambermq.protocol.auth.sas_token import SAS_TOKEN_TYPE
from ambermq.tools.broker.child_broker import ChildBroker
from ambermq.tools.cli import main
from ambermq.tools.terminal.exit_codes import ExitCode
from tests.protocol.auth.test_sas_token import python_token


def run(*arguments: object, password: str = "") -> Result:
    """Run a command; `password` is its standard input."""
    return CliRunner().invoke(main, [*map(str, arguments)], input=password)


def until_refused(sender: Any) -> None:
    """Send until the link ends; six seconds are enough."""
    for _ in range(30):
        time.sleep(0.2)
        sender.send(Message(body="late"))


class Tokens:
    """A connection that puts tokens."""

    def __init__(self, broker: ChildBroker, key: str) -> None:
        self.key = key
        self.connection = BlockingConnection(broker.url, timeout=20, allowed_mechs="ANONYMOUS")
        self._requests = self.connection.create_sender("$cbs")
        self._answers = self.connection.create_receiver("$cbs", credit=10)

    def put(self, audience: str, seconds: float = 60, name: str = "alice") -> int:
        """Put a token; return the status of the answer."""
        token = python_token(self.key, audience, int(time.time() + seconds), name)
        properties: dict[str, Any] = {"operation": "put-token", "type": SAS_TOKEN_TYPE, "name": audience}
        self._requests.send(Message(body=token, properties=properties, reply_to="$cbs"))
        answer = self._answers.receive(10)
        return int(answer.properties["status-code"])


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tokens")


@pytest.fixture(scope="module")
def broker(place: Path) -> Iterator[ChildBroker]:
    """A broker whose user alice has a key, and may use orders alone."""
    data = ("--data", place / "data")
    assert (
        run("user", "add", "root", "--role", "administrator", "--password-file", "-", *data, password="w").exit_code
        == 0
    )
    assert run("user", "add", "alice", "--password-file", "-", *data, password="w").exit_code == 0
    assert run("acl", "allow", "alice", "create,send,receive", "orders", *data).exit_code == 0
    assert run("user", "key", "add", "alice", "--file", place / "key", *data).exit_code == 0
    child = ChildBroker(place / "data", arguments=["--set", "server.cbs_anonymous=true"])
    child.start()
    yield child
    child.kill()


@pytest.fixture
def tokens(broker: ChildBroker, place: Path) -> Iterator[Tokens]:
    found = Tokens(broker, (place / "key").read_text().strip())
    yield found
    found.connection.close()


def test_a_link_waits_for_its_token(tokens: Tokens) -> None:
    """Before it no link but those of $cbs; after it those of the audience, as far as the rules allow them."""
    with pytest.raises(LinkDetached, match="unauthorized-access"):
        tokens.connection.create_sender("orders")
    assert tokens.put("sb://localhost/orders") == 202
    tokens.connection.create_sender("orders").send(Message(body="one"))
    receiver = tokens.connection.create_receiver("orders", credit=1)
    assert receiver.receive(10).body == "one"
    receiver.accept()
    for address in ("other", "$management"):
        with pytest.raises(LinkDetached, match="unauthorized-access"):
            tokens.connection.create_sender(address)


def test_wrong_tokens_are_refused(tokens: Tokens) -> None:
    """401 for each kind, and the connection stays a stranger."""
    assert tokens.put("sb://localhost/orders", name="root") == 401
    assert tokens.put("sb://localhost/orders", name="stranger") == 401
    assert tokens.put("sb://localhost/orders", -1) == 401
    assert tokens.put("sb://localhost/secrets") == 401
    tokens.key = "wrong"
    assert tokens.put("sb://localhost/orders") == 401
    with pytest.raises(LinkDetached, match="unauthorized-access"):
        tokens.connection.create_receiver("orders")


def test_a_link_ends_with_its_token_and_a_renewal_extends(broker: ChildBroker, tokens: Tokens) -> None:
    """amqp:unauthorized-access within two seconds of the expiry; what it held is there, not counted as failed."""
    assert tokens.put("sb://localhost/orders", 2) == 202
    sender, receiver = tokens.connection.create_sender("orders"), tokens.connection.create_receiver("orders", credit=1)
    sender.send(Message(body="held"))
    assert receiver.receive(10).body == "held"
    assert tokens.put("sb://localhost/orders", 4) == 202
    time.sleep(2.2)
    sender.send(Message(body="next"))
    with pytest.raises(LinkDetached, match="unauthorized-access"):
        until_refused(sender)
    again = Tokens(broker, tokens.key)
    assert again.put("sb://localhost/orders") == 202
    message = again.connection.create_receiver("orders", credit=1).receive(10)
    assert (message.body, message.delivery_count) == ("held", 0)
    again.connection.close()


def test_a_deleted_key_ends_its_links(broker: ChildBroker, place: Path) -> None:
    """Within a second or two, and no token of the key is accepted any more."""
    data = ("--data", place / "data")
    assert run("user", "add", "carol", "--password-file", "-", *data, password="w").exit_code == 0
    assert run("acl", "allow", "carol", "create,send,receive", "carol", *data).exit_code == 0
    made = run("user", "key", "add", "carol", *data)
    assert made.exit_code == 0
    tokens = Tokens(broker, made.output.strip())
    assert tokens.put("sb://localhost/", name="carol") == 202
    sender = tokens.connection.create_sender("carol")
    sender.send(Message(body="one"))
    shown = run("user", "key", "list", "carol", *data).output
    key_id = shown.split()[-1]
    assert tokens.key not in shown
    assert run("user", "key", "delete", "carol", "no", *data).exit_code != 0
    assert run("user", "key", "delete", "carol", key_id, *data).exit_code == 0
    with pytest.raises(LinkDetached, match="unauthorized-access"):
        until_refused(sender)
    assert tokens.put("sb://localhost/", name="carol") == 401


def test_no_secret_goes_to_another_machine_in_clear_text() -> None:
    """Before a connection is made: the address is of a network for documentation."""
    url = ("--url", "amqp://root:w@203.0.113.1")
    for words in (("user", "add", "x", "--password-file", "-"), ("user", "key", "add", "x")):
        result = run(*words, *url, password="w")
        assert result.exit_code == ExitCode.USAGE
        assert "plain TCP" in result.output
