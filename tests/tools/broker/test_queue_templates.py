"""Queue templates of the configuration on a running broker, and limits that a file of wiring meets."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from ambermq.tools.broker.child_broker import ChildBroker
from ambermq.tools.terminal.exit_codes import ExitCode
from tests.tools.conftest import Run

_CONFIG = """
[engine]
muxers_max = 4

[[templates]]
name = "orders"
pattern = "orders.#"
messages_max = 5
attach = [{ muxer = "audit" }, { muxer = "TOPIC", pattern = "orders.#" }]
"""


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChildBroker]:
    """A broker with that configuration."""
    place = tmp_path_factory.mktemp("templates")
    (place / "broker.toml").write_text(_CONFIG)
    child = ChildBroker(place / "data", arguments=["--config", str(place / "broker.toml")])
    child.start()
    yield child
    child.kill()


def test_a_template_without_its_muxer_makes_no_queue(on_broker: Run) -> None:
    """A declaration of the queue and a link to its address are refused; the error names the missing muxer."""
    for asked in (("queue", "declare", "orders.early"), ("send", "orders.early", "x")):
        refused = on_broker(*asked)
        assert refused.exit_code == ExitCode.NOT_FOUND
        assert "template 'orders' attaches to muxer 'audit', which does not exist" in refused.stderr
    assert "orders.early" not in on_broker("queue", "list").stdout


def test_queues_are_made_from_the_template_of_their_name(on_broker: Run, tmp_path: Path) -> None:
    """By an address and by command; what its template attaches a queue to is no difference to a file that names it."""
    on_broker("muxer", "declare", "audit", "--class", "simple")
    on_broker("send", "orders.eu", "x")
    on_broker("queue", "declare", "orders.us", "--messages-max", 2)
    rows = {row["name"]: row for row in json.loads(on_broker("queue", "list", "--output", "json").stdout)}
    assert [(rows[name]["template"], rows[name]["messages_max"]) for name in ("orders.eu", "orders.us")] == [
        ("orders", 5),
        ("orders", 2),
    ]
    assert on_broker("route", "/topics/orders").stdout.splitlines()[-1] == "reaches 2 queues: orders.eu, orders.us"
    assert on_broker("route", "/muxers/audit").stdout.splitlines()[-1] == "reaches 2 queues: orders.eu, orders.us"
    file = tmp_path / "w.json"
    names = [{"name": "orders.eu"}, {"name": "orders.us", "messages_max": 2}]
    file.write_text(json.dumps({"muxers": [{"name": "audit", "class": "simple"}], "queues": names}))
    assert on_broker("wiring", "diff", file).stdout == "no differences\n"


def test_what_a_limit_refuses_ends_a_file_there(on_broker: Run, tmp_path: Path) -> None:
    """What was done before is told; there is no room for the second muxer more."""
    file = tmp_path / "w.toml"
    file.write_text("".join(f'[[muxers]]\nname = "{name}"\nclass = "simple"\n' for name in ("audit", "a", "b")))
    refused = on_broker("wiring", "apply", file)
    assert (refused.exit_code, refused.stdout) == (ExitCode.FAILED, "+ muxer a (simple)\n")
    told = "error: b: the broker says 507: at most 4 muxers (muxers_max); 1 change was not done: correct this"
    assert refused.stderr == f"{told} and apply again\n"
