"""Every listing on a terminal of 80 columns, with long names and large numbers."""

import re
from pathlib import Path

import pytest

from ambermq.tools.broker.child_broker import ChildBroker
from ambermq.tools.client.broker_url import BrokerUrl
from ambermq.tools.client.link_client import LinkClient
from ambermq.tools.terminal import output
from ambermq.tools.terminal.table import Table, is_whole, table_of
from tests.interop.proton_peer import ProtonPeer
from tests.tools.conftest import Run, write_all
from tests.tools.test_cli import ALL

LONG = "a-queue.with.a-name.that-is-longer.than-the-half-of.a-terminal"
BEFORE = (
    ("queue", "declare", LONG),
    ("muxer", "declare", f"muxer-{LONG}", "--class", "lossy", "--probability", "0.123456789", "--seed", str(2**62)),
    ("attach", LONG, f"muxer-{LONG}"),
    ("send", LONG, "--size", "100000", "--id", LONG),
    ("snapshot", "create", "--name", f"snapshot-{LONG}"),
    ("vhost", "create", f"vhost-{LONG}"[:60]),
    ("acl", "allow", f"user-{LONG}", "send,receive,browse,manage", f"{LONG}.#"),
    ("snapshot", "create", "--name", f"later-{LONG}"),
)
LISTINGS = {
    ("acl", "list"): (),
    ("config", "show"): (),
    ("connections", "list"): (),
    ("context", "list"): (),
    ("dlq", "list"): (),
    ("dlq", "show"): (LONG,),
    ("docs",): (),
    ("history", "queue"): (LONG, "--since", "0", "--step", "1h"),
    ("links", "list"): (),
    ("log", "segments"): (),
    ("muxer", "list"): (),
    ("queue", "browse"): (LONG,),
    ("schedule", "list"): (LONG,),
    ("queue", "list"): (),
    ("sessions", "list"): (),
    ("snapshot", "diff"): (f"snapshot-{LONG}", f"later-{LONG}"),
    ("snapshot", "list"): (),
    ("snapshot", "verify"): (),
    ("subscription", "list"): (),
    ("user", "key", "list"): (),
    ("user", "list"): (),
    ("vhost", "list"): (),
}
"""Each listing with its arguments."""
_ANYWHERE = {("context", "list"), ("docs",)}


@pytest.fixture(scope="module")
def crowded(tmp_path_factory: pytest.TempPathFactory) -> ChildBroker:
    """A broker with long names; its links stay for the listings of links."""
    return ChildBroker(tmp_path_factory.mktemp("crowded") / "data")


def test_every_listing_is_tried() -> None:
    """Those that have --wide, and the configuration."""
    wide = {path for path, command in ALL.items() if any(one.name == "wide" for one in command.params)}
    assert {*LISTINGS} == wide | {("config", "show")}


def test_no_listing_folds_a_number_a_time_or_an_id(
    run: Run, crowded: ChildBroker, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Columns that have no room are left out; --wide shows them."""
    del tmp_path
    tables: list[Table] = []

    def spied(rows: object, names: object, width: int | None, spare: object = ()) -> Table:
        del width
        table = table_of(rows, names, 80, spare)  # type: ignore[arg-type]
        _check(rows, names, table)
        tables.append(table)
        return table

    crowded.start()
    try:
        for words in BEFORE:
            assert run(*words, "--url", crowded.url).exit_code == 0, words
        assert run("context", "add", f"context-{LONG}"[:60], "--url", f"amqps://{LONG}", "--replace").exit_code == 0
        write_all(crowded)
        peer = ProtonPeer(crowded.url, container_id=f"container-{LONG}")
        peer.receiver("/topics/news.#", name=f"link-{LONG}")
        client = LinkClient.connect(BrokerUrl.parse(crowded.url))
        client.attach_receiver(LONG)
        monkeypatch.setattr(output, "table_of", spied)
        for path, words in LISTINGS.items():
            place = () if path in _ANYWHERE else ("--data", crowded.directory)
            count = len(tables)
            told = run(*path, *words, *place)
            assert told.exit_code == 0, (path, told.stderr)
            assert len(tables) > count, path
        client.close()
        peer.drop()
    finally:
        crowded.kill()


def _check(rows: object, names: object, table: Table) -> None:
    assert max(map(len, table.lines)) <= 80, table.lines
    shown = [index for index, name in enumerate(names) if name not in table.hidden]  # type: ignore[arg-type, var-annotated]
    text = "\n".join(table.lines)
    for row in rows:  # type: ignore[attr-defined]
        for index in shown:
            cell = row[index][0]
            if is_whole(cell):
                assert cell in text or re.sub(r"\.[0-9]+Z", "Z", cell) in text, (names, cell)
