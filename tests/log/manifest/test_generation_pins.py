"""Pins: what a reader's manifest names stays on the disk for as long as it reads, and no longer."""

import errno
import random
from dataclasses import replace
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from ambermq.log.manifest.generation_pins import GenerationPins
from ambermq.log.manifest.manifest import Manifest, commit, load, manifest_path, named_files
from ambermq.log.read.log_reader import open_reader
from ambermq.log.recovery.recovery import Recovery
from ambermq.log.storage.disk import DiskStorage
from ambermq.log.storage.interface import Storage
from ambermq.log.storage.worker_threads import InlineWorkers
from ambermq.log.write.log import Log
from tests.log.lives import CONFIG, DIRECTORY, Life, body_of
from tests.log.simulated import SimulatedFileLock, SimulatedStorage


def _remove_oldest(manifest: Manifest) -> Manifest:
    """Remove the oldest sealed segment from the log, as a compaction does."""
    oldest, *rest = manifest.sealed
    removed = (*manifest.removed, oldest.file_id)
    return replace(manifest, generation=manifest.generation + 1, sealed=tuple(rest), removed=removed)


def _housekeep(log: Log) -> None:
    log._housekeeping_lane.wake()
    log.completed()


def _fill(life: Life, batches: int = 6) -> None:
    for number in range(batches):
        life.write([body_of(number, 3000)])
        life.sync()
        _housekeep(life.log)


def _segments(storage: Storage, directory: str) -> list[int]:
    names = storage.listdir(f"{directory}/segments")
    return [int(name.removesuffix(".log"), 16) for name in names if name.endswith(".log")]


def test_files_that_a_reader_may_still_open_are_not_deleted(tmp_path: Path) -> None:
    """A segment that is removed stays while a reader of an earlier manifest is open, and goes with it."""
    life = Life(DiskStorage(), str(tmp_path))
    _fill(life)
    with open_reader(str(tmp_path), CONFIG) as reader:
        oldest = reader.manifest.sealed[0]
        for _ in range(2):
            life.log._housekeeper.edit(_remove_oldest)
            _housekeep(life.log)
        assert next(reader.batches()).batch.header.base_offset == oldest.base_offset
        assert GenerationPins(life.storage, str(tmp_path)).generations() == [reader.manifest.generation]
    _housekeep(life.log)
    assert oldest.file_id not in _segments(life.storage, str(tmp_path))
    assert GenerationPins(life.storage, str(tmp_path)).generations() == []
    assert life.log._housekeeper.manifest.removed == ()
    life.log.close()


def test_a_reader_is_found_after_a_roll(tmp_path: Path) -> None:
    """The manifest that it holds has its own generation's name, whatever edit replaced it."""
    life = Life(DiskStorage(), str(tmp_path))
    _fill(life)
    with open_reader(str(tmp_path), CONFIG) as reader:
        sealed = len(life.log.manifest.sealed)
        _fill(life)
        assert len(life.log.manifest.sealed) > sealed
        assert GenerationPins(life.storage, str(tmp_path)).generations() == [reader.manifest.generation]
    life.log.close()


def test_a_commit_leaves_no_link_without_a_reader(tmp_path: Path) -> None:
    """Without readers the manifest is the only file of its kind."""
    life = Life(DiskStorage(), str(tmp_path))
    _fill(life)
    life.log.close()
    assert [path.name for path in tmp_path.glob("MANIFEST*")] == ["MANIFEST"]


def test_a_pin_outlives_the_broker_that_made_it(tmp_path: Path) -> None:
    """The next broker on the directory finds the link, and keeps what it names until the reader has gone."""
    life = Life(DiskStorage(), str(tmp_path))
    _fill(life)
    reader = open_reader(str(tmp_path), CONFIG)
    oldest = reader.manifest.sealed[0].file_id
    commit(life.storage, str(tmp_path), _remove_oldest)
    life.log._housekeeper.manifest = load(life.storage, str(tmp_path)) or life.log._housekeeper.manifest
    life.log.close()
    later = Recovery.open(DiskStorage(), str(tmp_path), CONFIG, 1).log(InlineWorkers())
    _housekeep(later)
    assert oldest in _segments(life.storage, str(tmp_path))
    reader.close()
    _housekeep(later)
    assert oldest not in _segments(life.storage, str(tmp_path))
    later.close()


def test_a_link_that_was_made_before_its_replacement_was_cut_short_is_used(tmp_path: Path) -> None:
    """A commit that died between link and rename is done again."""
    life = Life(DiskStorage(), str(tmp_path))
    _fill(life)
    life.log.close()
    with open_reader(str(tmp_path), CONFIG) as reader:
        path = manifest_path(str(tmp_path))
        Path(f"{path}.{reader.manifest.generation}").hardlink_to(path)
        commit(life.storage, str(tmp_path), _remove_oldest)
        assert GenerationPins(life.storage, str(tmp_path)).sweep() == named_files(reader.manifest)
    assert GenerationPins(life.storage, str(tmp_path)).sweep() == frozenset()


def test_a_held_link_that_cannot_be_read_names_nothing() -> None:
    """What its reader refused protects no file, and stays until he lets go."""
    storage = SimulatedStorage()
    Life(storage).log.close()
    link = f"{manifest_path(DIRECTORY)}.7"
    storage.open(link, create=True).write([b"not a manifest"], 0)
    reader = storage.share(link)
    pins = GenerationPins(storage, DIRECTORY)
    assert pins.sweep() == frozenset()
    assert pins.generations() == [7]
    reader.release()
    pins.sweep()
    assert pins.generations() == []


def test_a_file_system_without_links_keeps_no_broker_from_its_work() -> None:
    """Readers are not protected there; the manifest is replaced all the same."""
    storage = SimulatedStorage()
    life = Life(storage)
    _fill(life)
    storage.share(manifest_path(DIRECTORY))
    storage.fail(errno.EPERM, operation="link")
    before = life.log._housekeeper.manifest.generation
    life.log._housekeeper.edit(_remove_oldest)
    _housekeep(life.log)
    assert life.log._housekeeper.manifest.generation > before
    assert GenerationPins(storage, DIRECTORY).generations() == []


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from(["read", "leave", "write", "remove", "restart", "kill"]), max_size=25), st.randoms())
def test_what_a_held_manifest_names_is_there(steps: list[str], chance: random.Random) -> None:
    """Whatever readers, brokers and removals do, in any order; and nothing is left behind when all readers are gone."""
    storage = SimulatedStorage()
    life = Life(storage)
    readers: list[tuple[SimulatedFileLock, Manifest]] = []
    for step in steps:
        if step == "read":
            manifest = load(storage, DIRECTORY)
            assert manifest is not None
            readers.append((storage.share(manifest_path(DIRECTORY)), manifest))
        elif step == "leave" and readers:
            readers.pop(chance.randrange(len(readers)))[0].release()
        elif step == "write":
            _fill(life, 3)
        elif step == "remove" and life.log._housekeeper.manifest.sealed:
            life.log._housekeeper.edit(_remove_oldest)
            _housekeep(life.log)
        elif step in {"restart", "kill"}:
            life.log.close() if step == "restart" else storage.kill()
            life = Life(storage)
        there = set(_segments(storage, DIRECTORY))
        for _, held in readers:
            assert {one.file_id for one in held.sealed} <= there
    for hold, _ in readers:
        hold.release()
    _housekeep(life.log)
    assert GenerationPins(storage, DIRECTORY).generations() == []
    assert life.log._housekeeper.manifest.removed == ()
    assert set(_segments(storage, DIRECTORY)) == named_files(life.log._housekeeper.manifest)
