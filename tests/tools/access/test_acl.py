"""`ambermq acl` without a broker and beside one; the file of rules on the disk."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from ambermq.tools.broker.child_broker import ChildBroker
from ambermq.tools.broker.users.rule_file import RuleFile
from ambermq.tools.cli import main
from ambermq.tools.terminal.errors import ToolError


def acl(*arguments: str) -> Result:
    """Run a command of `ambermq acl`."""
    return CliRunner().invoke(main, ["acl", *arguments])


def test_rules_without_a_broker(tmp_path: Path) -> None:
    """Also before the first start: the file has mode 0600, and a decision is explained."""
    data = ("--data", str(tmp_path / "data"))
    assert (
        acl("allow", "alice", "receive,send", "orders.#", *data).output == "added: allow alice receive,send orders.#\n"
    )
    assert acl("allow", "alice", "send,receive", "orders.#", *data).output.startswith("exists: ")
    assert acl("deny", "alice", "send", "orders.x", *data).exit_code == 0
    assert acl("grant", "bob", "operator", *data).exit_code == 0
    assert (tmp_path / "data" / "rules").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "data").stat().st_mode & 0o777 == 0o700
    assert acl("test", "alice", "send", "orders.eu", *data).exit_code == 0
    refused = acl("test", "alice", "send", "orders.x", *data)
    assert (refused.exit_code, "rule 2: deny alice send orders.x" in refused.output) == (10, True)
    assert acl("test", "alice", "receive", "amqp://host/queues/orders.x", *data).exit_code == 0
    assert acl("test", "alice", "receive", "#", *data).exit_code == 10
    rows = json.loads(acl("list", "--user", "bob", "--output", "json", *data).output)
    assert [(row["effect"], row["pattern"], row["vhost"]) for row in rows] == [("grant", "operator", "*")]
    assert acl("revoke", "bob", "operator", *data).exit_code == 0
    assert acl("revoke", "bob", "operator", *data).exit_code == 6
    assert acl("remove", "allow", "alice", "send,receive", "orders.#", *data).exit_code == 0
    assert acl("test", "alice", "send", "orders.eu", *data).exit_code == 10


@pytest.mark.parametrize(
    "arguments", [("allow", "a", "fly", "q"), ("allow", "a", "send", "q*"), ("deny", "", "all", "q")]
)
def test_a_bad_rule_is_one_message(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    """Nothing is written."""
    result = acl(*arguments, "--data", str(tmp_path / "data"))
    assert (result.exit_code, result.output.startswith("error: ")) == (1, True)
    assert not (tmp_path / "data" / "rules").exists()


def test_a_damaged_file_never_opens_the_door(tmp_path: Path) -> None:
    """Neither a command nor a start goes on: exit code 2, with the line."""
    directory = str(tmp_path)
    acl("allow", "alice", "send", "q", "--data", directory)
    path = tmp_path / "rules"
    path.write_bytes(path.read_bytes().replace(b"allow", b"allov"))
    for arguments in (["acl", "list"], ["acl", "allow", "bob", "all", "/#"], ["serve", "--port", "0"]):
        result = CliRunner().invoke(main, [*arguments, "--data", directory])
        assert (result.exit_code, "rules, line 2" in result.output) == (2, True), result.output


def test_the_number_of_rules_is_bounded_without_a_broker_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker would refuse the start of a larger file, or take long for each change."""
    monkeypatch.setattr("ambermq.tools.access.backends.RULES_MAX", 1)
    assert acl("allow", "alice", "send", "a", "--data", str(tmp_path)).exit_code == 0
    assert acl("allow", "alice", "send", "a", "--data", str(tmp_path)).exit_code == 0
    done = acl("allow", "alice", "send", "b", "--data", str(tmp_path))
    assert (done.exit_code, "there are 1 rules, which is the most" in done.output) == (1, True)


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    """What a kill has left of a next version does not matter."""
    (tmp_path / "rules.new").write_bytes(b"half")
    found = RuleFile(str(tmp_path))
    assert found.read() == ()
    found.write(())
    assert (found.read(), (tmp_path / "rules.new").exists()) == ((), False)
    (tmp_path / "rules").write_bytes(b"")
    with pytest.raises(ToolError, match="line 1"):
        found.read()


def test_rules_beside_a_broker(tmp_path: Path) -> None:
    """A change applies at once; the last user that may change rules cannot lose that."""
    arguments = ["--user", "root:r", "--user", "alice:a"]
    broker = ChildBroker(tmp_path / "data", arguments=arguments)
    broker.start()
    try:
        root = ("--url", broker.url.replace("amqp://", "amqp://root:r@"))
        alice = ("--url", broker.url.replace("amqp://", "amqp://alice:a@"))
        run = CliRunner()
        assert run.invoke(main, ["send", "q", "hello", *alice]).exit_code == 0
        assert acl("allow", "alice", "send", "q", *root).exit_code == 0
        assert run.invoke(main, ["send", "q", "hello", *alice]).exit_code == 0
        assert run.invoke(main, ["send", "other", "hello", *alice]).exit_code == 10
        assert run.invoke(main, ["receive", "q", "--count", "1", *alice]).exit_code == 10
        assert acl("list", *alice).exit_code == 10
        assert "administrator" in acl("list", "--user", "root", *root).output
        last = acl("allow", "root", "send", "q", *root)
        assert (last.exit_code, "409" in last.output) == (1, True)
        assert acl("test", "alice", "send", "q", *root).exit_code == 0
        assert acl("remove", "allow", "alice", "send", "q", *root).exit_code == 0
        assert acl("remove", "allow", "alice", "send", "q", *root).exit_code == 6
    finally:
        broker.kill()
