"""Sources of a restored broker: its history begins at a horizon, and what lies before it is refused."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from proton import ulong
from proton.utils import LinkDetached

from ambermq.tools.backup.export import export_backup
from ambermq.tools.backup.restore import restore_backup
from ambermq.tools.broker.child_broker import ChildBroker
from tests.interop.conftest import Connect
from tests.interop.proton.test_sources import at, browse, browser, events
from tests.interop.proton_peer import ProtonPeer
from tests.tools.backups import take_snapshot


@pytest.fixture
def restored(tmp_path: Path, connect: Connect) -> Iterator[ProtonPeer]:
    """A peer of a broker that was restored from a backup with two messages on the queue `q`."""
    source, target = tmp_path / "source", tmp_path / "target"
    broker = ChildBroker(source)
    broker.start()
    connect(broker.url).sender("q").send("a", "b")
    broker.stop()
    take_snapshot(str(source), "one")
    export_backup(str(source), "one", str(tmp_path / "backup"), as_directory=False)
    restore_backup(str(tmp_path / "backup"), str(target))
    broker = ChildBroker(target)
    broker.start()
    yield connect(broker.url)
    broker.kill()


@pytest.mark.parametrize("address", ["q", "/log"])
def test_what_lies_before_the_horizon_is_refused(restored: ProtonPeer, address: str) -> None:
    """amqp:precondition-failed that tells the horizon's offset and time; from there on everything is answered."""
    with pytest.raises(LinkDetached) as caught:
        browser(restored, address, at(ulong(1)))
    assert caught.value.condition == "amqp:precondition-failed"
    horizon = re.search(r"offset (\d+) \(\d{4}-\d\d-\d\dT", str(caught.value).partition("history")[2])
    assert horizon is not None, str(caught.value)
    begin = int(horizon[1])
    told = events(restored, at(ulong(begin)))
    assert told[0].id >= begin
    assert told[0].subject == "started"
    assert browse(restored, "q", at(ulong(begin))) == ["a", "b"]
    assert browse(restored, "q") == ["a", "b"]
