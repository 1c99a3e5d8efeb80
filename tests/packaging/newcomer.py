"""`python -m tests.packaging.newcomer`: the first hour with AmberMQ, from a clean clone to an upgrade in place.

    clone      the committed files of this checkout
    install    the wheel of the clone, into an environment of its own
    serve      TLS and two users; a wrong password and a user without a rule are refused
    messages   by Proton over amqps, with SCRAM if its SASL can do so, else PLAIN
    operate    metrics, a snapshot
    upgrade    the data directory of a release before, opened in place: the messages that its golden file lists

Rule 1. Only the installed command is run, as a user runs it. Proton is the client, from the environment of the tests.
Rule 2. pip fetches the packages. Without a registry the environment borrows those of the tests, and the run says so.
"""

import argparse
import json
import os
import select
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from urllib.request import urlopen

import trustme
from proton import SASL, ConnectionException, Message, SSLDomain
from proton.utils import BlockingConnection, LinkDetached

from tests.golden.data.archive import unpack
from tests.packaging.installation import few_variables
from tests.signposts import ROOT

__all__ = ["main"]

_GOLDEN: Final = ROOT / "tests" / "golden" / "data"
_RELEASE: Final = "0.1.0"
"""The release that is upgraded from."""
_READY_S: Final = 60
_PIP_S: Final = 240
_BUILD: Final = "import sys; from setuptools import build_meta; print(build_meta.build_wheel(sys.argv[1]))"


class Newcomer:
    """One walk of the path; each step raises if it goes wrong."""

    def __init__(self, place: Path, *, is_offline: bool) -> None:
        self.place = place
        self.is_offline = is_offline
        self.data = place / "data"
        self.command = place / "venv" / "bin" / "ambermq"

    def clone(self) -> str:
        """Clone the commit that is checked out."""
        _run("git", "clone", "--quiet", "--no-hardlinks", str(ROOT), str(self.place / "clone"))
        found = _run("git", "-C", str(self.place / "clone"), "log", "-1", "--format=%h %s")
        return found.strip()

    def install(self) -> str:
        """Build the wheel, and install it with what it needs."""
        wheels = self.place / "wheels"
        wheels.mkdir()
        name = _run(sys.executable, "-c", _BUILD, str(wheels), cwd=self.place / "clone").splitlines()[-1]
        venv.create(self.place / "venv", symlinks=True, with_pip=False)
        how = self._fetch(wheels / name) if not self.is_offline else "without a registry, as asked"
        if how:
            self._borrow(wheels / name)
            how = f"{how}: packages borrowed from the environment of the tests"
        return f"{_run(str(self.command), '--version').strip()}{'; ' if how else ''}{how}"

    def _pip(self, *arguments: str) -> list[str]:
        python = str(self.place / "venv" / "bin" / "python")
        return [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", python, "install", *arguments]

    def _fetch(self, wheel: Path) -> str:
        """Install the wheel by pip; return why that failed, else an empty text."""
        quiet = ("--quiet", "--retries", "1", "--timeout", "10")
        try:
            done = subprocess.run(
                self._pip(*quiet, str(wheel)), capture_output=True, text=True, timeout=_PIP_S, check=False
            )
        except subprocess.TimeoutExpired:
            return f"pip did not end within {_PIP_S} s"
        return f"pip failed ({done.stderr.strip().splitlines()[-1][:120]})" if done.returncode else ""

    def _borrow(self, wheel: Path) -> None:
        borrowed = [path for path in sys.path if Path(path).name in {"site-packages", "dist-packages"}]
        (packages,) = (self.place / "venv" / "lib").glob("python*/site-packages")
        (packages / "borrowed.pth").write_text("\n".join(borrowed))
        _run(*self._pip("--quiet", "--no-deps", "--no-index", "--ignore-installed", "--no-compile", str(wheel)))

    def ambermq(self, *arguments: str | Path, password: str = "", exit_code: int = 0) -> str:
        """Run the installed command; `password` is its standard input."""
        return _run(str(self.command), *map(str, arguments), cwd=self.place, text=password, exit_code=exit_code)

    def secure(self) -> str:
        """Make certificates, and add an administrator and a user with a rule."""
        authority = trustme.CA()
        leaf = authority.issue_cert("localhost", "127.0.0.1")
        authority.cert_pem.write_to_path(self.place / "ca.pem")
        leaf.private_key_pem.write_to_path(self.place / "key.pem")
        (self.place / "key.pem").chmod(0o600)
        (self.place / "cert.pem").write_bytes(b"".join(one.bytes() for one in leaf.cert_chain_pems))
        for name, role in (("alice", ("--role", "administrator")), ("bob", ())):
            add = ("user", "add", name, *role, "--password-file", "-", "--data", self.data)
            self.ambermq(*add, password=f"{name}-secret\n")
        self.ambermq("acl", "allow", "bob", "create,send,receive", "orders.#", "--data", self.data)
        return "alice is an administrator, bob may use orders.#"

    @contextmanager
    def serving(self, data: Path, *options: str) -> Iterator[dict[str, str]]:
        """Serve a data directory; yield the words of the ready line, `url` first."""
        errors = (self.place / "broker.stderr").open("ab")
        command = [str(self.command), "serve", "--data", str(data), *options]
        broker = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=errors, text=True, env=few_variables(), cwd=self.place
        )
        try:
            assert broker.stdout is not None
            line = broker.stdout.readline() if select.select([broker.stdout], [], [], _READY_S)[0] else ""
            assert line.startswith("ready "), (self.place / "broker.stderr").read_text()[-2000:]
            _, url, *words = line.split()
            yield {"url": url, **dict(word.split("=", 1) for word in words)}
            broker.terminate()
            assert broker.wait(_READY_S) == 0
        finally:
            broker.kill()
            broker.wait()
            errors.close()

    def work(self) -> Iterator[tuple[str, Callable[[], str]]]:
        """Yield the steps on a broker with TLS, which runs while they do."""
        tls = ("--tls-cert", str(self.place / "cert.pem"), "--tls-key", str(self.place / "key.pem"))
        with self.serving(self.data, "--listen", "amqps://127.0.0.1:0", *tls, "--http", "127.0.0.1:0") as words:
            url = words["url"].replace("127.0.0.1", "localhost")
            yield "refuse", lambda: self._refuse(url)
            yield "messages", lambda: self._exchange(url)
            yield "metrics", lambda: self._metrics(words["http"])
            yield "snapshot", self._snapshot

    def _connect(self, url: str, user: str, password: str, mechanism: str) -> BlockingConnection:
        domain = SSLDomain(SSLDomain.MODE_CLIENT)
        domain.set_trusted_ca_db(str(self.place / "ca.pem"))
        domain.set_peer_authentication(SSLDomain.VERIFY_PEER_NAME)
        options = {"user": user, "password": password, "allowed_mechs": mechanism, "reconnect": False}
        return BlockingConnection(url, timeout=20, ssl_domain=domain, **options)

    def _refuse(self, url: str) -> str:
        for user, password in (("alice", "wrong"), ("mallory", "alice-secret")):
            try:
                self._connect(url, user, password, "PLAIN").close()
            except ConnectionException:
                continue
            raise AssertionError(f"{user} got in")
        connection = self._connect(url, "bob", "bob-secret", "PLAIN")
        reason = ""
        try:
            connection.create_sender("payroll")
        except LinkDetached as error:
            reason = str(error)
        assert "unauthorized-access" in reason, f"bob at payroll: {reason or 'attached'}"
        connection.close()
        return "a wrong password, an unknown user, and an address that no rule allows"

    def _exchange(self, url: str) -> str:
        mechanism = "SCRAM-SHA-256" if SASL.extended() else "PLAIN"
        connection = self._connect(url, "bob", "bob-secret", mechanism)
        sender = connection.create_sender("orders.new")
        for number in range(10):
            sender.send(Message(f"order {number}", durable=True))
        receiver = connection.create_receiver("orders.new", credit=5)
        found = [receiver.receive(timeout=20).body for _ in range(5)]
        for _ in found:
            receiver.accept()
        connection.close()
        assert found == [f"order {number}" for number in range(5)]
        why = "" if SASL.extended() else ": this build of Proton has no SCRAM"
        return f"10 sent, 5 received over amqps by {mechanism}{why}"

    def _metrics(self, http: str) -> str:
        deadline = time.monotonic() + 20
        wanted = 'queue="orders.new"'
        while wanted not in (text := urlopen(f"{http}/metrics", timeout=20).read().decode()):
            assert time.monotonic() < deadline, text[:1000]
            time.sleep(0.2)
        assert urlopen(f"{http}/readyz", timeout=20).status == 200
        return f"{sum(line.startswith('ambermq_') for line in text.splitlines())} values"

    def _snapshot(self) -> str:
        self.ambermq("snapshot", "create", "--name", "first", "--data", self.data)
        self.ambermq("snapshot", "export", "first", self.place / "first.backup", "--data", self.data)
        self.ambermq("snapshot", "verify", self.place / "first.backup")
        return "taken, exported and verified"

    def upgrade(self) -> str:
        """Open the directory of the release before, and receive the messages that are known to wait in it."""
        old = self.place / "old"
        unpack(_GOLDEN / _RELEASE / "data.tar.zst", old)
        expected = json.loads((_GOLDEN / _RELEASE / "expected.json").read_text())
        count = 0
        with self.serving(old, "--port", "0") as words:
            for vhost, queues in expected["delivered"].items():
                for queue, messages in queues.items():
                    where = ("--url", words["url"], "--vhost", vhost)
                    lines = self.ambermq(
                        "receive", f"/queues/{queue}", "--count", str(len(messages)), "--ndjson", *where
                    ).splitlines()
                    assert len(lines) == len(messages), (vhost, queue)
                    count += len(lines)
        told = json.loads(self.ambermq("log", "verify", "--data", old, "--output", "json"))
        return f"{count} messages of {_RELEASE} were there; least_release {told['least_release']}"


def _run(*command: str, cwd: Path | None = None, text: str = "", exit_code: int = 0) -> str:
    """Run a program to its end, and return its output."""
    done = subprocess.run(
        command, cwd=cwd, input=text, capture_output=True, text=True, check=False, timeout=300, env=few_variables()
    )
    assert done.returncode == exit_code, f"{' '.join(command)}: exit code {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


def main() -> int:
    """Walk the path, and print a line for each step; return 1 at the first that goes wrong."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.packaging.newcomer",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--offline", action="store_true", help="do not ask a registry: borrow the packages of the tests"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ambermq-newcomer-") as place:
        newcomer = Newcomer(Path(place), is_offline=options.offline)
        try:
            for name, step in _steps(newcomer):
                began = time.monotonic()
                print(f"{name:10} {step()} ({time.monotonic() - began:.0f} s)", flush=True)
        except AssertionError as error:
            print(f"FAILED     {error}")
            return 1
    print("the path is open")
    return 0


def _steps(newcomer: Newcomer) -> Iterator[tuple[str, Callable[[], str]]]:
    yield "clone", newcomer.clone
    yield "install", newcomer.install
    yield "secure", newcomer.secure
    yield from newcomer.work()
    yield "upgrade", newcomer.upgrade


if __name__ == "__main__":
    os.environ.pop("PYTHONPATH", None)
    sys.exit(main())
