"""`ambermq wiring apply` with more changes than are under way at once, on a broker that refuses some of them."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ambermq.tools.broker.child_broker import ChildBroker
from ambermq.tools.terminal.exit_codes import ExitCode
from tests.tools.conftest import Run

_CONFIG = """
[engine]
queues_max = 50
muxers_max = 5
argument_bytes_max = 20
name_bytes_max = 300
"""


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[ChildBroker]:
    """A broker with little room."""
    (tmp_path / "broker.toml").write_text(_CONFIG)
    child = ChildBroker(tmp_path / "data", arguments=["--config", str(tmp_path / "broker.toml")])
    child.start()
    yield child
    child.kill()


def _file(tmp_path: Path, **wiring: Any) -> Path:
    file = tmp_path / "w.json"
    file.write_text(json.dumps(wiring))
    return file


def test_what_was_done_is_told_and_nothing_is_asked_for_behind_it(on_broker: Run, tmp_path: Path) -> None:
    """In the order of the file, though many requests are under way; applying again says the same of what is left."""
    names = [f"q{number:03}" for number in range(130)]
    attachments = [{"muxer": "m", "member": name} for name in names]
    muxers = [{"name": "m", "class": "simple"}]
    file = _file(tmp_path, muxers=muxers, queues=[{"name": name} for name in names], attachments=attachments)
    refused = on_broker("wiring", "apply", file)
    assert refused.stdout.splitlines() == ["+ muxer m (simple)", *(f"+ queue {name}" for name in names[:50])]
    assert refused.exit_code == ExitCode.FAILED
    assert refused.stderr == (
        "error: q050: the broker says 507: at most 50 queues (queues_max); "
        "210 changes were not done: correct this and apply again\n"
    )
    assert len(json.loads(on_broker("queue", "list", "--output", "json").stdout)) == 50
    again = on_broker("wiring", "apply", file)
    assert (again.stdout, again.stderr) == ("", refused.stderr)


def test_nothing_goes_before_all_that_comes_is_there(on_broker: Run, tmp_path: Path) -> None:
    """What is refused among what is added leaves what would have been removed; what came before it is done."""
    before = {"queues": [{"name": "q"}], "attachments": [_to("old")]}
    on_broker("wiring", "apply", _file(tmp_path, **before, muxers=[_muxer("m")]))
    muxers = [_muxer(name) for name in ("m", "m1", "m2", "m3")]
    wanted = {"queues": [{"name": "q"}], "attachments": [_to("new")]}
    refused = on_broker("wiring", "apply", "--prune", _file(tmp_path, **wanted, muxers=muxers))
    assert (refused.exit_code, refused.stdout) == (
        ExitCode.FAILED,
        "+ muxer m1 (destination)\n+ muxer m2 (destination)\n",
    )
    assert "3 changes were not done" in refused.stderr
    shown = json.loads(on_broker("muxer", "show", "m", "--output", "json").stdout)["members"]
    assert [row["destination"] for row in shown] == ["old"]


def test_a_file_is_tried_by_the_limits_that_the_broker_has(on_broker: Run, tmp_path: Path) -> None:
    """What its configuration refuses does nothing, what it allows is done, whatever the defaults are."""
    long = "n" * 280
    allowed = on_broker("wiring", "apply", _file(tmp_path, queues=[{"name": long}]))
    assert (allowed.exit_code, allowed.stdout) == (ExitCode.OK, f"+ queue {long}\n")
    wanted = {"queues": [{"name": "q"}], "muxers": [_muxer("m")], "attachments": [_to("x" * 21)]}
    refused = on_broker("wiring", "apply", _file(tmp_path, **wanted))
    assert (refused.exit_code, refused.stdout) == (ExitCode.USAGE, "")
    assert "takes 20 bytes (argument_bytes_max), found 21" in refused.stderr


def _muxer(name: str) -> dict[str, str]:
    return {"name": name, "class": "destination"}


def _to(destination: str) -> dict[str, str]:
    return {"muxer": "m", "member": "q", "destination": destination}
