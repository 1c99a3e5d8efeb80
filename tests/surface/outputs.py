"""Every command that prints JSON, run against one broker: a script of invocations, and the keys that they print.

Rule: where what there is to say differs (an outcome, a class of muxer), the command is run once for each of them, and
its keys are those of all its runs.
"""

import json
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from click.testing import CliRunner
from proton import Message, symbol
from proton.reactor import DurableSubscription

from ambermq.tools.broker.child_broker import ChildBroker
from ambermq.tools.cli import main
from ambermq.tools.client.broker_url import BrokerUrl
from ambermq.tools.client.link_client import LinkClient
from ambermq.tools.client.management_client import Management
from tests.interop.proton_peer import ProtonPeer
from tests.surface.shapes import keys_in_text

__all__ = ["NOT_RUN", "Found", "run_all"]

NOT_RUN: Final = {
    "audit show": ["event", "time"],
    "audit verify": ["events", "files", "from", "to"],
    "doctor": ["[].advice", "[].check", "[].found", "[].level"],
    "log query": ["the columns of the query"],
    "proxy print": ["connection", "direction", "name", "time", "the fields of the frame"],
    "proxy record": ["bytes", "connections", "file", "is_full", "ready", "to"],
    "proxy replay": ["compared", "connections", "seconds", "sent"],
    "script run": ["error", "file", "ok", "seconds", "seed", "statements"],
}
"""The doctor exits as the machine is. Spark would have to start for the query, and its keys are what a user selects.
A proxy ends by a signal, and the others need its recording or a script: their own tests read what they print."""

_WHOLE: Final = {
    "id": "m1",
    "to": "orders",
    "subject": "s",
    "reply_to": "r",
    "correlation_id": 1,
    "content_type": "text/plain",
    "group_id": "g",
    "durable": True,
    "priority": 5,
    "ttl_ms": 1_000_000,
    "properties": {"k": "v"},
    "text": "body",
}
_MESSAGES: Final = "\n".join(map(json.dumps, (_WHOLE, {"id": "m2", "value": 1}, {"id": "m3", "base64": "/w=="})))
_TEMPLATES: Final = (
    '[[templates]]\nname = "orders"\npattern = "audited.#"\nattach = [{ muxer = "news", pattern = "a" }]\n'
)

_ENVIRONMENT: Final = {"AMBERMQ_URL": None, "AMBERMQ_DATA": None, "AMBERMQ_CONTEXT": None}
"""No run depends on what the machine's environment names."""
_DAMAGED_FROM: Final = 100
"""Behind the header of a segment."""


class Found:
    """What was printed."""

    def __init__(self, place: Path) -> None:
        self._environment = {**_ENVIRONMENT, "XDG_CONFIG_HOME": str(place / "configuration")}
        self.keys: defaultdict[str, set[str]] = defaultdict(set)
        """Command to key paths."""

    def run(self, command: str, *arguments: str | Path, exits: int = 0) -> None:
        """Run a command with `--output json` and keep the keys that it prints."""
        words = [*command.split(), *map(str, arguments), "--output", "json"]
        done = CliRunner(env=self._environment).invoke(main, words, prog_name="ambermq")
        assert done.exit_code == exits, f"{' '.join(words)}: {done.exit_code}: {done.stdout}{done.stderr}"
        self.keys[command] |= keys_in_text(done.stdout)


def run_all(place: Path) -> Found:
    """Run the script in an empty directory."""
    found = Found(place)
    found.run("docs")
    found.run("config show")
    _contexts(found.run)
    found.run("config explain", "connections_max")
    found.run("config explain", "logging.level")
    config, messages = place / "config.toml", place / "messages.ndjson"
    config.write_text(_TEMPLATES)
    found.run("config check", config)
    messages.write_text(_MESSAGES + "\n")
    broker = ChildBroker(place / "data", arguments=("--config", str(config)))
    broker.start()
    try:
        on_broker, on_data = _bound(found, "--url", broker.url), _bound(found, "--data", place / "data")
        _wire(on_broker)
        _exchange(on_broker, on_data, messages)
        _dead_letters(on_broker)
        _scheduled(on_broker, broker.url)
        _subscribe(on_broker, broker.url)
        _describe(on_broker, on_data, place)
        _monitor(found, broker.url)
        _snapshots(on_broker, on_data, place)
        _vhosts(on_data)
        _rules(on_data)
        _dismantle(on_broker)
        _past(on_data, broker.url, place)
    finally:
        broker.stop()
    _stopped(found, place)
    _users(_bound(found, "--data", place / "users"), place)
    return found


def _bound(found: Found, option: str, value: str | Path) -> Callable[..., None]:
    def run(command: str, *arguments: str | Path, **rest: Any) -> None:
        found.run(command, *arguments, option, value, **rest)

    return run


def _monitor(found: Found, url: str) -> None:
    found.run("status", "--interval", "0.1", "--url", url)
    found.run("check", "--crit", "depth=1", "--url", url, exits=1)
    client = LinkClient.connect(BrokerUrl.parse(url))
    client.attach_receiver("orders")
    management = Management(client)
    link = next(row for row in management.rows("org.ambermq.link") if row["role"] == "consumer")
    connection = str(link["connection"])
    for kind, name in (("links", link["name"]), ("sessions", link["session"]), ("connections", connection)):
        found.run(f"{kind} list", "--url", url)
        found.run(f"{kind} show", name, "--url", url)
        found.run(f"{kind} close", name, "--url", url)
    client.close()


def _wire(run: Callable[..., None]) -> None:
    for name, kind, *options in (
        ("news", "wild-destination", "--separator", "/"),
        ("exact", "destination"),
        ("thin", "lossy", "--probability", "0.5", "--seed", "7"),
        ("props", "property"),
        ("chosen", "selector"),
    ):
        run("muxer declare", name, "--class", kind, *options)
    run("muxer update", "thin", "--probability", "0.25")
    for name in ("orders", "copies"):
        run("queue declare", name, "--messages-max", "1000", "--template", "normal")
    run("queue update", "orders", "--messages-max", "100")
    run("queue pause", "orders")
    run("queue resume", "orders")
    run("attach", "orders", "news", "--pattern", "a/#")
    run("attach", "orders", "exact", "--destination", "d")
    run("attach", "copies", "props", "--property", "k=v")
    run("attach", "copies", "chosen", "--selector", "k = 'v'")
    run("attach", "muxer:thin", "chosen", "--selector", "k = 'v'")
    run("attach", "copies", "thin")


def _exchange(run: Callable[..., None], on_data: Callable[..., None], messages: Path) -> None:
    run("send", "orders", "--ndjson", "--file", messages)
    run("receive", "orders", "--count", "1", "--outcome", "released")
    run("receive", "orders", "--count", "1", "--outcome", "modified")
    on_data("queue browse", "orders")
    run("receive", "orders", "--count", "3", "--ndjson", "--outcome", "accepted")
    run("send", "orders", "x", "--id", "m4")
    run("receive", "orders", "--count", "1", "--outcome", "rejected")
    run("send", "orders", "y", "--id", "m5")
    run("send", "/muxers/chosen", "z", "--property", "k=v")
    run("send", "/muxers/exact/nowhere", "z", exits=1)
    run("bench", "--count", "5")


def _dead_letters(run: Callable[..., None]) -> None:
    run("queue declare", "jobs", "--dead-letter", "failed")
    run("send", "jobs", "--count", "3", "w")
    run("receive", "jobs", "--count", "3", "--outcome", "rejected")
    run("dlq list")
    run("dlq show", "failed")
    for more in (("--dry-run",), ("--limit", "1")):
        run("dlq redrive", "failed", *more)
        run("queue copy", "failed", "jobs", *more)
        run("queue move", "jobs", "failed", *more)
        run("dlq purge", "failed", "--yes", *more)
    run("queue delete", "jobs", "--yes")
    run("queue delete", "failed", "--yes")


def _scheduled(run: Callable[..., None], url: str) -> None:
    run("queue declare", "later")
    peer = ProtonPeer(url, container_id="scheduler")
    try:
        peer.sender("later").send(Message("x", id="x", annotations={symbol("x-opt-delivery-delay"): 60_000}))
    finally:
        peer.blocking.close()
    run("schedule list", "later")
    for more in (("--dry-run",), ()):
        run("schedule cancel", "later", "--message-id", "x", *more)
    run("queue delete", "later", "--yes")


def _subscribe(run: Callable[..., None], url: str) -> None:
    peer = ProtonPeer(url, container_id="me")
    try:
        peer.receiver("/topics/t.*", name="one", options=DurableSubscription())
        peer.sender("/topics/t.x").send("body")
        run("subscription list")
        run("subscription show", "one")
        run("subscription delete", "one", "--force", "--dry-run")
        run("subscription delete", "one", "--force", "--yes")
    finally:
        peer.drop()


def _describe(run: Callable[..., None], on_data: Callable[..., None], place: Path) -> None:
    run("queue list")
    run("queue show", "orders")
    run("muxer list")
    for name in ("news", "exact", "props", "chosen", "thin"):
        run("muxer show", name)
    run("route", "/muxers/chosen", "--property", "k=v")
    run("route", "/muxers/props", "--property", "k=v")
    run("route", "not-there-yet")
    run("wiring export", place / "wiring.toml")
    run("wiring export", "-")
    changed = (place / "wiring.toml").read_text().replace("a/#", "b/#").replace("0.25", "0.75").replace("100\n", "99\n")
    (place / "changed.toml").write_text(changed + '\n[[muxers]]\nname = "new"\nclass = "simple"\n')
    run("wiring diff", place / "changed.toml", exits=8)
    run("wiring apply", place / "changed.toml", "--dry-run", exits=8)
    run("wiring apply", place / "changed.toml", "--prune")
    run("wiring graph")
    on_data("log segments")


def _snapshots(run: Callable[..., None], on_data: Callable[..., None], place: Path) -> None:
    run("snapshot create", "--name", "s1")
    run("send", "orders", "w")
    run("queue declare", "later")
    run("snapshot create", "--name", "s2")
    on_data("snapshot list")
    on_data("snapshot show", "s2")
    on_data("snapshot verify", "s2")
    on_data("snapshot diff", "s1", "s2")
    on_data("snapshot export", "s2", place / "s2.backup")
    on_data("snapshot verify", place / "s2.backup")
    on_data("snapshot delete", "s1", "--dry-run")
    run("snapshot delete", "s1", "--yes")


def _users(run: Callable[..., None], place: Path) -> None:
    """Without a broker, which would have to authenticate the commands after the first user."""
    password, config = place / "password", place / "users.toml"
    password.write_text("secret")
    config.write_text("[users]\nerin = 'secret'\n")
    run("user add", "alice", "--password-file", password)
    run("user passwd", "alice", "--password-file", password)
    run("user disable", "alice")
    run("user enable", "alice")
    run("user import", "--config", config)
    run("user list")
    run("user key add", "alice", "--file", config.with_name("alice.key"))
    run("user key list", "alice")
    run("user key delete", "alice", "--all", "--dry-run")
    run("user key delete", "alice", "--all", "--yes")
    run("user import", "--config", config, "--dry-run")
    run("user delete", "alice", "--dry-run")
    run("user delete", "alice", "--yes")


def _contexts(run: Callable[..., None]) -> None:
    run("context add", "surface", "--data", "./data", "--replace", "--use")
    run("context list")
    run("context show")
    run("context use", "surface")
    run("context delete", "surface", "--dry-run")
    run("context delete", "surface", "--yes")


def _vhosts(on_data: Callable[..., None]) -> None:
    on_data("vhost create", "v1", "--mode", "advanced")
    on_data("vhost copy", "default", "v2", "--dry-run")
    on_data("vhost copy", "default", "v2")
    on_data("vhost list")
    on_data("config reload")
    on_data("vhost show", "v1")
    for command in ("vhost reset", "vhost delete"):
        on_data(command, "v1", "--dry-run")
        on_data(command, "v1", "--yes")


def _rules(on_data: Callable[..., None]) -> None:
    on_data("acl allow", "alice", "send", "orders.#")
    on_data("acl deny", "alice", "send", "orders.x")
    on_data("acl grant", "bob", "operator")
    on_data("acl list")
    on_data("acl test", "alice", "send", "orders.eu")
    on_data("acl revoke", "bob", "operator")
    on_data("acl remove", "deny", "alice", "send", "orders.x")


def _dismantle(run: Callable[..., None]) -> None:
    run("detach", "orders", "news", "--pattern", "b/#")
    run("detach", "copies", "thin")
    run("detach", "copies", "chosen", "--selector", "k = 'v'")
    run("detach", "copies", "props", "--property", "k=v")
    run("detach", "orders", "exact", "--destination", "d")
    for command, name in (("muxer delete", "news"), ("queue purge", "copies"), ("queue delete", "copies")):
        run(command, name, "--dry-run")
        run(command, name, "--yes")


def _past(run: Callable[..., None], url: str, place: Path) -> None:
    run("log dump")
    run("log verify")
    run("history tail", "--limit", "1000")
    run("history queue", "orders", "--since", "0", "--until", "now")
    peer = ProtonPeer(url)
    try:
        peer.receiver("later", name="link")
        run("history diff", "--since", "5", "--until", "now")
    finally:
        peer.drop()
    for name in ("m1", "m2", "m4", "m5"):
        run("history message", name)
    run("log export", "--runner", "local", "--contents", "--parquet", place / "parquet")
    compact = ("log compact", "--runner", "local", "--keep-history", "0s")
    run(*compact, "--dry-run")
    run(*compact, "--archive", place / "archive")


def _stopped(found: Found, place: Path) -> None:
    restore = ("snapshot restore", place / "s2.backup", "--data", place / "restored")
    found.run(*restore, "--dry-run")
    found.run(*restore)
    _repair(found, place)


def _repair(found: Found, place: Path) -> None:
    """Run a repair over a log that a restore has made, in which bytes of messages are others now."""
    (path,) = (place / "restored" / "segments").glob("*.log")
    with path.open("r+b") as file:
        file.seek(_DAMAGED_FROM)
        file.write(bytes(path.stat().st_size - _DAMAGED_FROM))
    found.run("log repair", "--data", place / "restored", "--dry-run")
    assert "lost[].first" in found.keys["log repair"], found.keys["log repair"]
