"""Wiring as a picture: what a repair could not save, and chains of any length."""

import json
import sys
from typing import Any

from ambermq.tools.terminal.exit_codes import ExitCode
from ambermq.tools.wiring.document import wiring_of
from ambermq.tools.wiring.graph import dot_lines, tree_lines
from ambermq.tools.wiring.rows import WiringRows
from tests.tools.conftest import Run


def _muxer(name: str) -> dict[str, Any]:
    options = dict.fromkeys(("separator", "probability", "seed"))
    return {"name": name, "class": "simple", **options}


def _attachment(number: int, muxer: str, member: str | None) -> dict[str, Any]:
    arguments = dict.fromkeys(("destination", "pattern", "selector", "conditions"))
    return {"id": number, "muxer": muxer, "member": member, **arguments}


def test_what_a_repair_could_not_save_is_drawn_as_gone() -> None:
    """By the id of its attachment; a file and a graph in DOT have no name for it."""
    rows = WiringRows([_muxer("m")], [], [_attachment(7, "m", None), _attachment(8, "m", "q")])
    assert list(tree_lines(rows)) == ["muxer m (simple)", "├── gone (attachment 7)", "└── queue q"]
    assert sum("->" in line for line in dot_lines(rows)) == 1
    assert [one.member for one in wiring_of(rows).attachments] == ["q"]


def test_a_tree_may_be_deeper_than_python_calls() -> None:
    """It is drawn to its end."""
    count = 2 * sys.getrecursionlimit()
    muxers = [_muxer(f"m{number}") for number in range(count)]
    attachments = [_attachment(number, f"m{number}", f"muxer:m{number + 1}") for number in range(count - 1)]
    *_, last = tree_lines(WiringRows(muxers, [], attachments))
    assert last.strip() == f"└── muxer m{count - 1} (simple)"


def test_an_attachment_is_detached_by_its_id(on_broker: Run) -> None:
    """As `muxer show` tells it; exits 6 where there is none, 2 where more is said beside it."""
    on_broker("muxer", "declare", "by-id", "--class", "simple")
    on_broker("queue", "declare", "by-id.q")
    on_broker("attach", "by-id.q", "by-id")
    (row,) = json.loads(on_broker("muxer", "show", "by-id", "--output", "json").stdout)["members"]
    assert on_broker("detach", "--id", row["id"], "by-id.q").exit_code == ExitCode.USAGE
    assert on_broker("detach", "by-id.q").exit_code == ExitCode.USAGE
    assert on_broker("detach", "--id", row["id"]).stdout == f"detached attachment {row['id']}\n"
    assert json.loads(on_broker("muxer", "show", "by-id", "--output", "json").stdout)["members"] == []
    again = on_broker("detach", "--id", row["id"])
    assert (again.exit_code, again.stdout) == (ExitCode.NOT_FOUND, "")
