"""Logins of real clients at a real broker: Qpid Proton and rhea, by PLAIN, and our own, by SCRAM.

The wheel of Proton has no Cyrus SASL, and so no SCRAM; scramp, another implementation, checks ours in
tests/protocol/auth.
"""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from click.testing import CliRunner, Result
from proton import ConnectionException
from proton.utils import BlockingConnection

from ambermq.tools.broker.child_broker import ChildBroker
from ambermq.tools.cli import main
from ambermq.tools.terminal.exit_codes import ExitCode

_RHEA = Path(__file__).parent / "rhea"
_SCRIPT = """
const client = require('rhea');
client.on('connection_open', c => { console.log('open'); c.connection.close(); });
client.on('connection_error', c => { console.log('refused'); });
client.on('disconnected', () => { process.exit(0); });
client.connect({ port: %d, username: %r, password: %r, reconnect: false });
"""


def run(*arguments: object, password: str = "", login: str = "") -> Result:
    """Run a command; `password` is its standard input."""
    environment = {"AMBERMQ_PASSWORD_FILE": login or None}
    return CliRunner().invoke(main, [*map(str, arguments)], input=password, env=environment)


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChildBroker]:
    """A broker with the users alice, an administrator, and bob, for PLAIN alone."""
    directory = tmp_path_factory.mktemp("logins")
    child = ChildBroker(directory / "data")
    alice = ("user", "add", "alice", "--role", "administrator", "--password-file", "-", "--data", directory / "data")
    assert run(*alice, password="w0rd\n").exit_code == ExitCode.OK
    bob = ("user", "add", "bob", "--plain-only", "--password-file", "-", "--data", directory / "data")
    assert run(*bob, password="b0b\n").exit_code == ExitCode.OK
    for name in ("bob", "carol"):
        # A user without a role does what a rule allows.
        rule = ("acl", "allow", name, "all", "#", "--data", directory / "data")
        assert run(*rule).exit_code == ExitCode.OK
    (directory / "alice").write_text("w0rd")
    (directory / "bob").write_text("b0b")
    (directory / "wrong").write_text("wrong")
    child.start()
    yield child
    child.kill()


def at(broker: ChildBroker, user: str) -> str:
    return broker.url.replace("amqp://", f"amqp://{user}@")


def secret(broker: ChildBroker, name: str) -> str:
    return str(Path(broker.stderr_path).parent / name)


@pytest.mark.parametrize(
    ("user", "password", "is_in"), [("alice", "w0rd", True), ("bob", "b0b", True), ("bob", "x", False)]
)
def test_proton_logs_in_by_plain(broker: ChildBroker, user: str, password: str, is_in: bool) -> None:
    """Against SCRAM keys, and against an argon2id hash."""
    options = {"user": user, "password": password, "allowed_mechs": "PLAIN", "allow_insecure_mechs": True}
    if is_in:
        BlockingConnection(broker.url, timeout=20, **options).close()
        return
    with pytest.raises(ConnectionException):
        BlockingConnection(broker.url, timeout=20, **options)


@pytest.mark.skipif(shutil.which("node") is None, reason="Node.js is not installed: no node on the PATH")
@pytest.mark.skipif(not (_RHEA / "node_modules" / "rhea").is_dir(), reason="rhea is not installed: run `make rhea`")
@pytest.mark.parametrize(("password", "said"), [("w0rd", "open"), ("wrong", "refused")])
def test_rhea_logs_in_by_plain(broker: ChildBroker, password: str, said: str) -> None:
    """It chooses PLAIN by itself."""
    script = _SCRIPT % (urlsplit(broker.url).port, "alice", password)
    done = subprocess.run(["node", "-e", script], cwd=_RHEA, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.split() == [said], done.stderr


@pytest.mark.parametrize("user", ["alice", "bob"])
def test_our_commands_log_in(broker: ChildBroker, user: str) -> None:
    """By SCRAM; a user of PLAIN alone by PLAIN, on the loopback interface."""
    url = at(broker, user)
    result = run("send", user, "x", "--url", url, "--password-file", secret(broker, user))
    assert result.exit_code == ExitCode.OK, result.output
    mechanism = "SCRAM-SHA-512" if user == "alice" else "PLAIN"
    lines = Path(broker.stderr_path).read_text().splitlines()
    assert any("connection opened" in line and f"user={user}" in line and mechanism in line for line in lines)


def test_a_wrong_password_has_an_exit_code_of_its_own(broker: ChildBroker) -> None:
    """The same message for an unknown user; the log names both, and no password."""
    found = [
        run("send", "q", "x", "--url", at(broker, user), login=secret(broker, "wrong")) for user in ("alice", "eve")
    ]
    assert [result.exit_code for result in found] == [ExitCode.NOT_AUTHENTICATED] * 2
    assert found[0].stderr.replace("alice", "eve") == found[1].stderr
    log = Path(broker.stderr_path).read_text()
    assert "login refused" in log
    assert "user=eve" in log
    assert "Traceback" not in log


def test_users_are_managed_beside_the_broker(broker: ChildBroker) -> None:
    """A deleted user loses its connection, a new password leaves it; the last administrator stays."""
    admin, login = at(broker, "alice"), secret(broker, "alice")

    def user(*arguments: str, password: str = "") -> Result:
        return run("user", *arguments, "--url", admin, password=password, login=login)

    assert user("add", "carol", "--password-file", "-", password="c1\n").exit_code == ExitCode.OK
    assert user("add", "carol", "--password-file", "-", password="c1\n").exit_code == ExitCode.FAILED
    options = {"user": "carol", "allowed_mechs": "PLAIN", "allow_insecure_mechs": True}
    connection = BlockingConnection(broker.url, timeout=20, password="c1", **options)
    assert user("passwd", "carol", "--password-file", "-", password="c2\n").exit_code == ExitCode.OK
    connection.create_sender("q").close()
    listed = user("list", "--output", "json").stdout
    assert '"connections": 1' in listed
    assert "stored_key" not in listed
    assert user("delete", "carol").exit_code == ExitCode.OK
    with pytest.raises(ConnectionException):
        connection.create_sender("q")
    with suppress(ConnectionException):
        connection.close()
    with pytest.raises(ConnectionException):
        BlockingConnection(broker.url, timeout=20, password="c2", **options)
    assert user("delete", "alice").exit_code == ExitCode.FAILED
    assert user("disable", "alice").exit_code == ExitCode.FAILED
    assert user("delete", "eve").exit_code == ExitCode.NOT_FOUND
    refused = run("user", "list", "--url", at(broker, "bob"), login=secret(broker, "bob"))
    assert refused.exit_code == ExitCode.NOT_ALLOWED


def test_a_damaged_file_refuses_the_start(tmp_path: Path) -> None:
    """Exit code 2 and the number of the line; the commands say the same, and no log is begun."""
    add = ("user", "add", "alice", "--password-file", "-", "--data", tmp_path)
    assert run(*add, password="w\n").exit_code == ExitCode.OK
    path = tmp_path / "users"
    assert path.stat().st_mode & 0o777 == 0o600
    path.write_bytes(path.read_bytes().replace(b'"alice"', b'"alicf"'))
    for command in (("serve", "--data", tmp_path, "--port", "0"), ("user", "list", "--data", tmp_path)):
        result = run(*command)
        assert result.exit_code == ExitCode.USAGE
        assert "line 3: " in result.stderr
    assert not (tmp_path / "MANIFEST").exists()
