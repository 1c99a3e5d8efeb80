"""The example in the help of each command runs, in a fresh directory with a broker that has what the example names."""

import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ambermq.tools.broker.child_broker import ChildBroker
from ambermq.tools.client.broker_option import running_broker
from ambermq.tools.client.broker_url import BrokerUrl
from ambermq.tools.client.link_client import LinkClient
from ambermq.tools.client.management_client import Management
from ambermq.tools.terminal.exit_codes import ExitCode
from tests.tools.conftest import Run, write_all
from tests.tools.test_cli import LEAVES

NOT_RUN = {
    ("top",): "needs a terminal",
    ("log", "query"): "starts Spark; tests/tools/spark runs queries",
    ("log", "repair"): "needs a stopped broker; tests/tools/history runs it",
}
"""Each example that is not run, and why."""
_UNTIL_SIGNAL = {("serve",), ("proxy", "record")}
_COLOURS = ("muxer declare colours --class property",)
_RECORDING = "proxy record --listen 127.0.0.1:0 --to URL session.rec"
BEFORE: dict[tuple[str, ...], tuple[str, ...]] = {
    ("acl", "remove"): ("acl allow alice send,receive 'orders.#'",),
    ("acl", "revoke"): ("acl grant bob operator",),
    ("acl", "test"): ("acl allow alice send,receive 'orders.#'",),
    ("attach",): (*_COLOURS, "queue declare orders.eu"),
    ("context", "delete"): ("context add staging --url amqp://staging",),
    ("context", "show"): ("context add production --url amqp://production",),
    ("context", "use"): ("context add production --url amqp://production",),
    ("detach",): (*_COLOURS, "queue declare orders.eu", "attach orders.eu colours --property region=eu"),
    ("dlq", "purge"): ("queue declare dead",),
    ("dlq", "redrive"): ("queue declare dead",),
    ("dlq", "show"): ("queue declare dead",),
    ("queue", "copy"): ("queue declare audit",),
    ("queue", "move"): ("queue declare orders-later",),
    ("history", "message"): ("send orders hello --id order-4711",),
    ("muxer", "delete"): _COLOURS,
    ("muxer", "show"): _COLOURS,
    ("muxer", "update"): ("muxer declare net --class lossy --probability 0.9",),
    ("receive",): ("send orders hello --count 10",),
    ("route",): _COLOURS,
    ("schedule", "cancel"): ("send orders later --id o-7 --delay 1h",),
    ("snapshot", "diff"): ("snapshot create --name nightly",),
    ("subscription", "delete"): ("SUBSCRIBE",),
    ("subscription", "show"): ("SUBSCRIBE",),
    ("user", "disable"): ("user add alice --password-file password",),
    ("user", "delete"): ("user add alice --password-file password",),
    ("user", "enable"): ("user add alice --password-file password",),
    ("user", "passwd"): ("user add alice --password-file password",),
    ("user", "key", "add"): ("user add alice --password-file password",),
    ("user", "key", "delete"): ("user add alice --password-file password", "user key add alice"),
    ("vhost", "delete"): ("vhost create rehearsal",),
    ("vhost", "reset"): ("vhost create rehearsal",),
    ("vhost", "show"): ("vhost create rehearsal",),
    ("wiring", "apply"): ("wiring export wiring.toml",),
    ("wiring", "diff"): ("wiring export wiring.toml",),
}
"""The commands before an example, all with the data directory of its broker."""
_SNAPSHOTS = {"delete", "diff", "export", "restore", "show", "verify"}
_REPORTING = {("check",), ("doctor",)}
"""They judge the machine too: a machine may be at fault."""
_FILES = {
    "broker.toml": "[users]\nerin = 'secret'\n",
    "password": "secret",
    "restart.script": "broker start\nbroker stop\n",
}


class World:
    """A directory with a broker, and one client with a link."""

    def __init__(self, place: Path) -> None:
        """Write the files that examples name, and start the broker on `data`."""
        for name, text in _FILES.items():
            (place / name).write_text(text)
        self.broker = ChildBroker(place / "data")
        self.broker.start()
        self.client = LinkClient.connect(BrokerUrl.parse(self.broker.url))
        self.client.attach_receiver("watched")

    def names(self) -> tuple[str, str, str]:
        """Return the names of the connection, the session and the link of the client."""
        with LinkClient.connect(BrokerUrl.parse(self.broker.url)) as client:
            rows = Management(client).rows("org.ambermq.link")
            link = next(row for row in rows if row["address"] and "watched" in row["address"])
        return str(link["connection"]), str(link["session"]), str(link["name"])

    def words(self, line: str) -> list[str]:
        """Return the words of an example, with the broker's URL and the client's names for those of the text."""
        text = line.replace("amqp://127.0.0.1:5672", self.broker.url).replace("127.0.0.1:5673", "127.0.0.1:0")
        words = shlex.split(text.partition("ambermq ")[2])
        if "3f2a9c01be77" in words:
            # Without a password: users exist by now.
            holder = running_broker(str(self.broker.directory))
            with LinkClient.connect(BrokerUrl.parse(holder.local_url)) as client:
                (row,) = Management(client).rows("org.ambermq.user")
            words = [row["keys"][0] if word == "3f2a9c01be77" else word for word in words]
        if words[0] in ("connections", "sessions", "links"):
            connection, session, link = self.names()
            words = [{"7": connection, "7.0": session, "7.0.2": link}.get(word, word) for word in words]
        return ["100" if word == "100000" else word for word in words]


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """A fresh directory, which is the working directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "configuration"))
    made = World(tmp_path)
    yield made
    made.client.close()
    made.broker.kill()


@pytest.mark.parametrize("path", [path for path in LEAVES if path not in NOT_RUN], ids=" ".join)
def test_the_example_runs(run: Run, world: World, path: tuple[str, ...]) -> None:
    """Word for word, but for the port of the broker and the names of connections."""
    _prepare(run, world, path)
    epilog = LEAVES[path].epilog
    assert epilog is not None
    words = world.words(epilog)
    if path in _UNTIL_SIGNAL:
        _run_until_signal(words, world)
        return
    told = run(*words, stdin="secret\n" if "-" in words else None)
    allowed = {ExitCode.OK, ExitCode.FAILED} if path in _REPORTING else {ExitCode.OK}
    assert told.exit_code in allowed, told.stderr
    assert not told.stderr.startswith("warning: "), told.stderr


def test_each_reason_names_a_command() -> None:
    """No reason outlives its command."""
    assert {*NOT_RUN} <= {*LEAVES}


def _prepare(run: Run, world: World, path: tuple[str, ...]) -> None:
    data = ("--data", "data")
    if path not in {("queue", "declare"), ("serve",)}:
        assert run("send", "orders", "hello", *data).exit_code == ExitCode.OK
    write_all(world.broker)
    if path[0] == "snapshot" and path[1] in _SNAPSHOTS:
        assert run("snapshot", "create", "--name", "before-upgrade", *data).exit_code == ExitCode.OK
    if path == ("snapshot", "restore"):
        told = run("snapshot", "export", "before-upgrade", "before-upgrade.backup", *data)
        assert told.exit_code == ExitCode.OK, told.stderr
    if path in {("proxy", "print"), ("proxy", "replay")}:
        _run_until_signal(shlex.split(_RECORDING.replace("URL", world.broker.url)), world, sends=True)
        if path == ("proxy", "replay"):
            world.client.close()
            world.broker.stop()
            world.broker = ChildBroker(Path("fresh"))
            world.broker.start()
    for line in BEFORE.get(path, ()):
        if line == "SUBSCRIBE":
            _subscribe(world)
            continue
        told = run(*shlex.split(line), *(() if path[0] == "context" else data))
        assert told.exit_code == ExitCode.OK, told.stderr


def _subscribe(world: World) -> None:
    from proton.reactor import DurableSubscription

    from tests.interop.proton_peer import ProtonPeer

    peer = ProtonPeer(world.broker.url, container_id="shop")
    peer.receiver("/topics/prices", name="prices", options=DurableSubscription())
    peer.drop()


def _run_until_signal(words: list[str], world: World, *, sends: bool = False) -> None:
    """Run a command that goes on until a signal; it prints a line when it is ready."""
    if words[0] == "serve":
        words = [word.replace("./data", "./served") for word in words]
    process = subprocess.Popen(
        [sys.executable, "-m", "ambermq", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        ready = process.stdout.readline()
        assert ready, process.stderr.read() if process.stderr else ""
        if sends:
            url = next(word for word in ready.split() if word.startswith("amqp://"))
            sent = [sys.executable, "-m", "ambermq", "send", "recorded", "hello", "--url", url]
            assert subprocess.run(sent, check=False, capture_output=True).returncode == ExitCode.OK
        process.terminate()
        process.communicate(timeout=30)
        assert process.returncode == ExitCode.OK
    finally:
        process.kill()
        process.communicate()
