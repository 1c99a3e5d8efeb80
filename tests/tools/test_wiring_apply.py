"""`ambermq wiring apply` with more changes than are under way at once, on a broker that refuses some of them."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.tools.conftest import Run
from tools.child_broker import ChildBroker
from tools.exit_codes import ExitCode

_CONFIG = """
[engine]
queues_max = 50
argument_bytes_max = 20
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
        "210 changes were not done: apply again when that is mended\n"
    )
    assert len(json.loads(on_broker("queue", "list", "--output", "json").stdout)) == 50
    again = on_broker("wiring", "apply", file)
    assert (again.stdout, again.stderr) == ("", refused.stderr)


def test_nothing_goes_before_all_that_comes_is_there(on_broker: Run, tmp_path: Path) -> None:
    """What is refused among what is added leaves what would have been removed; the rest of it is done."""
    before = {"queues": [{"name": "q"}], "muxers": [{"name": "m", "class": "destination"}]}
    on_broker("wiring", "apply", _file(tmp_path, **before, attachments=[_to("old")]))
    wanted = [_to(destination) for destination in ("new", "x" * 21, "newer")]
    refused = on_broker("wiring", "apply", "--prune", _file(tmp_path, **before, attachments=wanted))
    assert refused.exit_code == ExitCode.FAILED
    shown = json.loads(on_broker("muxer", "show", "m", "--output", "json").stdout)["members"]
    assert "old" in [row["destination"] for row in shown]


def _to(destination: str) -> dict[str, str]:
    return {"muxer": "m", "member": "q", "destination": destination}
