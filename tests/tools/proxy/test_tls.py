"""The proxy between two TLS connections, the replay of a login that cannot be repeated, and a script over TLS."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme

from ambermq.tools.broker.child_broker import ChildBroker
from ambermq.tools.proxy.recording_file import open_recording
from tests.tools.conftest import Run
from tests.tools.proxy.conftest import ChildProxy

_CONFIG = '[users]\nalice = "wonder"\nbob = "builder"\n'


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A certificate for 127.0.0.1, its key, and its authority, which clients trust."""
    authority = trustme.CA()
    leaf = authority.issue_cert("127.0.0.1")
    (tmp_path / "cert.pem").write_bytes(b"".join(blob.bytes() for blob in leaf.cert_chain_pems))
    (tmp_path / "key.pem").write_bytes(leaf.private_key_pem.bytes())
    (tmp_path / "key.pem").chmod(0o600)
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    (tmp_path / "broker.toml").write_text(_CONFIG)
    (tmp_path / "alice").write_text("wonder\n")
    (tmp_path / "bob").write_text("builder\n")
    monkeypatch.setenv("AMBERMQ_TLS_CA", str(tmp_path / "ca.pem"))
    return tmp_path


@pytest.fixture
def secure(files: Path) -> Iterator[ChildBroker]:
    """A broker with users behind TLS alone."""
    broker = secure_broker(files, "first")
    yield broker
    broker.stop()


def secure_broker(files: Path, name: str) -> ChildBroker:
    """Start a broker with users behind TLS."""
    pair = ("--tls-cert", str(files / "cert.pem"), "--tls-key", str(files / "key.pem"))
    arguments = ("--listen", "amqps://127.0.0.1:0", *pair, "--config", str(files / "broker.toml"))
    broker = ChildBroker(files / name, arguments=arguments)
    broker.start()
    return broker


def with_user(url: str, user: str) -> str:
    """Return a URL with a user."""
    return url.replace("://", f"://{user}@")


def recorded(files: Path, target: str, run: Run, *options: str) -> Path:
    """Record a login by SCRAM and a message over TLS at both ends."""
    path = files / "session.rec"
    pair = ("--tls-cert", str(files / "cert.pem"), "--tls-key", str(files / "key.pem"))
    proxy = ChildProxy(path, target, "--listen", "amqps://127.0.0.1:0", *pair, *options)
    assert proxy.url.startswith("amqps://")
    url, password = with_user(proxy.url, "alice"), ("--password-file", files / "alice")
    assert run("send", "orders", "x" * 200_000, "--url", url, *password).exit_code == 0
    assert run("receive", "orders", "--count", "1", "--url", url, *password).exit_code == 0
    code, _, errors = proxy.end()
    assert code == 0, errors
    return path


def test_a_recording_over_tls_has_the_bytes_of_amqp(secure: ChildBroker, files: Path, run: Run) -> None:
    """As without TLS: its frames are printed, and no password is in it."""
    path = recorded(files, secure.url, run, "--to-ca", str(files / "ca.pem"))
    printed = run("proxy", "print", path).stdout
    assert "SCRAM-SHA-512" in printed
    assert "attach(name:" in printed
    with open_recording(path) as reader:
        content = b"".join(record.content for record in reader)
    assert b"AMQP\x00\x01\x00\x00" in content
    assert b"wonder" not in content


def test_a_login_by_scram_is_made_anew(secure: ChildBroker, files: Path, run: Run) -> None:
    """With the user of the URL: its random texts differ, and the rest is compared."""
    path = recorded(files, secure.url, run)
    other = secure_broker(files, "second")
    try:
        refused = run("proxy", "replay", path, "--to", other.url)
        assert refused.exit_code == 1
        assert "a user in the URL of --to" in refused.stderr
        for user in ("alice", "bob"):
            done = run("proxy", "replay", path, "--to", with_user(other.url, user), "--password-file", files / user)
            assert done.exit_code == 0, done.stderr
            assert done.stdout.startswith("no difference: 2 connections, ")
        wrong = run("proxy", "replay", path, "--to", with_user(other.url, "alice"), "--password-file", files / "bob")
        assert wrong.exit_code == 1
        assert "sasl-outcome with code 1" in wrong.stderr
    finally:
        other.stop()


def test_a_certificate_that_is_not_trusted(secure: ChildBroker, files: Path, run: Run) -> None:
    """By the proxy: its client is dropped, and the reason is told. By a client of the proxy: it does not connect."""
    stranger = files / "stranger.pem"
    trustme.CA().cert_pem.write_to_path(stranger)
    path, pair = files / "none.rec", ("--tls-cert", str(files / "cert.pem"), "--tls-key", str(files / "key.pem"))
    proxy = ChildProxy(path, secure.url, "--listen", "amqps://127.0.0.1:0", *pair, "--to-ca", str(stranger))
    assert run("send", "orders", "x", "--url", proxy.url).exit_code == 4
    _, _, errors = proxy.end()
    assert "cannot connect to amqps://" in errors
    assert "certificate" in errors.lower()


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("--listen", "amqps://127.0.0.1:0", "--to", "amqp://127.0.0.1:1"), "needs a certificate"),
        (("--listen", "amqps://127.0.0.1:0", "--to", "amqp://127.0.0.1:1", "--tls-cert", "/none"), "No such file"),
        (("--listen", "http://127.0.0.1:0", "--to", "amqp://127.0.0.1:1"), "not an address"),
        (("--listen", "127.0.0.1:0", "--to", "unix:/a"), "needs a broker behind TCP"),
    ],
)
def test_a_wrong_command_line_is_told(run: Run, tmp_path: Path, arguments: tuple[str, ...], text: str) -> None:
    """Exit 2, and no file is left."""
    done = run("proxy", "record", *arguments, tmp_path / "x.rec")
    assert done.exit_code == 2
    assert text in done.stderr
    assert not (tmp_path / "x.rec").exists()


def test_a_script_connects_over_tls_as_a_user(secure: ChildBroker, files: Path, run: Run) -> None:
    """With a password in a file; a wrong one is refused."""
    script = files / "login.ambermq"
    script.write_text(
        f'alice connect url={secure.url} user=alice password_file="{files}/alice"\n'
        "alice attach sender out to orders\n"
        'alice send out "{n}" size=100000 count=3\n'
        "alice expect outcome out accepted count=3\n"
        "alice attach receiver in from orders credit=3\n"
        "alice expect messages in count=3\n"
        f'bob connect url={secure.url} user=bob password_file="{files}/alice" refused=*\n'
        "alice drop\n"
    )
    done = run("script", "run", script)
    assert done.exit_code == 0, done.stderr
