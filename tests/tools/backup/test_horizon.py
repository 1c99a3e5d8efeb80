"""A restored log: history begins with its snapshot, and below that there are messages and nothing to fold."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from ambermq.engine.history.past import PastError, open_past
from ambermq.log.errors import DamageError, LogError
from ambermq.log.format.segment import segment_path
from ambermq.log.index.segment_index import build
from ambermq.log.manifest.manifest import Manifest, load, manifest_path, snapshot_path, store
from ambermq.log.read.log_reader import open_reader
from ambermq.log.recovery import repair
from ambermq.log.recovery.recovery import Recovery
from ambermq.log.recovery.verify import verify
from ambermq.log.storage.disk import DiskStorage
from ambermq.tools.backup.export import export_backup
from ambermq.tools.backup.restore import restore_backup
from tests.engine.lived import LIVED, Lived
from tests.tools.backups import bodies_of, folded, take_snapshot, taken

STORAGE = DiskStorage()


@pytest.fixture(params=["lived", "empty"])
def restored(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A restored log at rest: of a life with live messages, and of one that had none."""
    target = str(tmp_path / "restored")
    if request.param == "lived":
        restore_backup(taken(tmp_path, 31)[0], target)
    else:
        lived = Lived(tmp_path / "source", 32)
        lived.settle_down()
        lived.end()
        take_snapshot(str(tmp_path / "source"), "one")
        export_backup(str(tmp_path / "source"), "one", str(tmp_path / "backup"), as_directory=False)
        restore_backup(str(tmp_path / "backup"), target)
    return target


def _manifest(directory: str) -> Manifest:
    manifest = load(STORAGE, directory)
    assert manifest is not None
    return manifest


def _edited(directory: str, change: Callable[[Manifest], Manifest]) -> None:
    manifest = _manifest(directory)
    store(STORAGE, directory, replace(change(manifest), generation=manifest.generation + 1))


def test_nothing_below_the_horizon_is_folded(restored: str) -> None:
    """A manifest that forgot its horizon and its snapshot, by whatever hand, does not make half a state of the rest."""
    _edited(restored, lambda manifest: replace(manifest, horizon=None, snapshots=()))
    with pytest.raises(DamageError, match="expected a horizon above offset"):
        folded(restored)
    assert "no batch of kept messages from the horizon" in str(verify(restored, config=LIVED).damage)


def test_what_cannot_be_asked_is_refused_with_the_one_moment_there_is(restored: str) -> None:
    """Nothing was written since: the log does not go from its horizon back to the last message that was kept."""
    end = _manifest(restored).snapshots[0].end
    with open_past(restored, LIVED) as past:
        assert past.state_at(end - 1) == folded(restored)[0]
        for asked in (end - 2, end):
            with pytest.raises(PastError, match=rf"the log begins after offset {end - 1} \(.*has no event yet"):
                past.state_at(asked)


def test_the_loss_of_the_base_is_damage(restored: str) -> None:
    """Without the snapshot at the begin of history there is no state."""
    path = snapshot_path(restored, _manifest(restored).snapshots[0].file_id)
    Path(path).unlink()
    with pytest.raises(DamageError, match="that the manifest names"):
        folded(restored)
    _edited(restored, lambda manifest: replace(manifest, snapshots=()))
    with pytest.raises(DamageError, match="where history begins"):
        folded(restored)


def test_a_repair_does_not_make_up_where_history_begins(restored: str) -> None:
    """Where the manifest is damaged too, segments alone cannot tell; nothing is changed."""
    Path(manifest_path(restored)).write_bytes(b"{}")
    before = sorted(path.name for path in Path(restored).rglob("*"))
    for act in (repair.plan, repair.apply):
        with pytest.raises(LogError, match="only this manifest named the snapshot at the start of history"):
            act(restored, LIVED)
    assert sorted(path.name for path in Path(restored).rglob("*")) == before


def test_a_repair_below_the_horizon_keeps_what_it_can(tmp_path: Path) -> None:
    """A kept segment with a damaged batch is copied without it; the rest opens, and history begins where it did."""
    target = str(tmp_path / "restored")
    _, state, _ = taken(tmp_path, 31)
    restore_backup(str(tmp_path / "backup"), target)
    path = Path(segment_path(target, _manifest(target).sealed[0].file_id))
    content = bytearray(path.read_bytes())
    content[4096 + 20] ^= 1
    path.write_bytes(content)
    assert repair.apply(target, LIVED).is_needed
    assert _manifest(target).horizon is not None
    assert folded(target)[0] == state
    Lived(Path(target), 1).end()
    assert verify(target, config=LIVED).damage is None


def test_readers_and_indexes_take_holes_as_they_are(tmp_path: Path) -> None:
    """Live messages are found by their offsets, with an index and without; those that are gone are not."""
    target = str(tmp_path / "restored")
    _, state, table = taken(tmp_path, 31)
    restore_backup(str(tmp_path / "backup"), target)
    bodies = bodies_of(target, state)
    (sealed,) = _manifest(target).sealed
    file = STORAGE.open(segment_path(target, sealed.file_id))
    build(file, sealed.at(target), batch_bytes_max=LIVED.batch_bytes_max)
    file.close()
    assert bodies_of(target, state) == bodies
    report = verify(target, config=LIVED)
    assert (report.damage, report.index_count) == (None, 1)
    with open_reader(target, LIVED) as reader:
        assert all(reader.find(offset) is None for offset in range(table.end) if offset not in bodies)
        found = [record.offset for batch in reader.batches() for record in batch.records()]
        assert found == list(bodies)
        (info,) = [one for one in reader.segments() if one.size and one.state == "sealed"]
        assert reader.counts(info)[1] == len(bodies)


def test_a_broker_delivers_what_was_kept(tmp_path: Path) -> None:
    """Bodies below the horizon are read as any others, and offsets go on above all of them."""
    target = str(tmp_path / "restored")
    _, state, table = taken(tmp_path, 31)
    restore_backup(str(tmp_path / "backup"), target)
    bodies = bodies_of("/".join((str(tmp_path), "source")), state)
    log = Recovery.open(STORAGE, target, LIVED, 1).log()
    try:
        assert log.log_end % (1 << 20) == 0
        assert log.log_end >= table.end
        for offset, body in bodies.items():
            while (got := log.bodies.get(offset)) is None:
                log.completed()
            assert body.startswith(bytes(got))
    finally:
        log.close()
