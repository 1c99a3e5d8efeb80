"""The adoption of new segments: after an interruption the manifest is the old or the new one; a bad job is refused."""

import errno
import random
from array import array
from contextlib import suppress
from dataclasses import replace
from unittest.mock import Mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ambermq.log.compaction.adoption import Adoption, adopt, check_segments
from ambermq.log.compaction.job import CompactionJob, job_path, lock_jobs, read_table, sweep_jobs, write_table
from ambermq.log.compaction.record_copy import bodies_of_walk
from ambermq.log.compaction.rewrite_tasks import GroupTask, pack_offsets, rewrite_group
from ambermq.log.errors import DamageError, ForeignError, LogError, LogFailed
from ambermq.log.format.segment import segment_path
from ambermq.log.manifest import manifest as manifests
from ambermq.log.manifest.manifest import Horizon, Manifest, Snapshot
from ambermq.log.recovery.recovery import Recovery
from ambermq.log.segments.segment_reader import open_sealed, walk_whole
from ambermq.log.write.log import Log
from tests.log.lives import CONFIG, DIRECTORY, Life, SharingWorkers, body_of
from tests.log.simulated import SimulatedStorage

JOB = "1-a"


def lived() -> tuple[SimulatedStorage, dict[int, bytes]]:
    """A log of some sealed segments, with a snapshot named at its end; all that was written, by offset."""
    storage, written = SimulatedStorage(random.Random(0)), dict[int, bytes]()
    for start in range(3):
        life = Life(storage)
        for number in range(5):
            life.write([body_of(10 * start + number, 700), body_of(-1, 20)])
        life.sync()
        written.update(life.written)
        end = life.log.log_end
        life.log.close()
    life = Life(storage)
    snapshots = tuple(Snapshot(0, name, end, 5, 6, 7, is_automatic=False) for name in ("old", "base", "newest"))
    snapshots = tuple(
        replace(one, file_id=900 + index, end=end + index - 1 if index < 1 else end)
        for index, one in enumerate(snapshots)
    )
    life.log.edit_manifest(lambda old: replace(old, generation=old.generation + 1, snapshots=snapshots))
    life.log.completed()
    life.log.close()
    return storage, written


def proposed(storage: SimulatedStorage, kept: list[int]) -> CompactionJob:
    """Write the kept records of all sealed segments below the base as one segment, as a job does."""
    manifest = manifests.load(storage, DIRECTORY)
    assert manifest is not None
    horizon = manifest.snapshots[1].end
    below = [one for one in manifest.sealed if one.next_offset <= horizon]
    offsets = [array("Q", [k for k in kept if one.base_offset <= k < one.next_offset]) for one in below]
    folder = job_path(DIRECTORY, JOB)
    storage.makedirs(folder)
    segments = tuple(one.at(DIRECTORY) for one in below)
    task = GroupTask(segments, manifest.log_id, tuple(map(pack_offsets, offsets)), folder, CONFIG.batch_bytes_max)
    new = rewrite_group(storage, task)
    storage.sync_directory(folder)
    inputs = tuple(one.file_id for one in below)
    proposal = CompactionJob(1, manifest.log_id.hex(), Horizon(horizon, 5), inputs, (new,), 30, len(kept))
    write_table(storage, DIRECTORY, JOB, proposal)
    return proposal


def stored(storage: SimulatedStorage) -> dict[int, bytes]:
    """Every record of the sealed segments, each checked."""
    manifest = manifests.load(storage, DIRECTORY)
    assert manifest is not None
    found = {}
    for sealed in manifest.sealed:
        part = open_sealed(storage, DIRECTORY, manifest, sealed, batch_bytes_max=CONFIG.batch_bytes_max)
        for walk in walk_whole(part, base_offset=sealed.base_offset, next_offset=sealed.next_offset):
            bodies, batch = bodies_of_walk(walk, part.path), walk.batch()
            for record in batch.record_list():
                at = record.body_position - batch.header.head_bytes
                found[record.offset] = bytes(bodies[at : at + record.body_length])
    return found


def take_over(storage: SimulatedStorage, proposal: CompactionJob) -> Adoption:
    """Adopt outside of a running log."""
    adoption = Adoption(JOB, proposal)
    adopt(storage, DIRECTORY, adoption, lambda edit: manifests.commit(storage, DIRECTORY, edit))
    return adoption


def edit(storage: SimulatedStorage, **changes: object) -> None:
    def change(manifest: Manifest) -> Manifest:
        return replace(manifest, generation=manifest.generation + 1, **changes)  # type: ignore[arg-type]

    manifests.commit(storage, DIRECTORY, change)


def test_what_is_kept_takes_the_place_of_all() -> None:
    """One edit: new segments, horizon, snapshots before the base gone, old files to be deleted."""
    storage, written = lived()
    kept = sorted(written)[::7]
    proposal = proposed(storage, kept)
    before = manifests.load(storage, DIRECTORY)
    assert before is not None
    adoption = take_over(storage, proposal)
    after = manifests.load(storage, DIRECTORY)
    assert after is not None
    assert stored(storage) == {offset: written[offset] for offset in kept}
    assert after.horizon == proposal.horizon
    assert [one.name for one in after.snapshots] == ["base", "newest"]
    assert set(after.removed) == {*before.removed, *proposal.inputs, 900}
    assert [one.file_id for one in adoption.inputs] == list(proposal.inputs)


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 60), st.integers(0, 1 << 32), st.booleans())
def test_cut_short_anywhere_it_is_the_old_truth_or_the_new(calls: int, seed: int, loses_power: bool) -> None:
    """A crash at any call to the disk; then the log opens, and all that it should hold is there."""
    storage, written = lived()
    kept = sorted(written)[::3]
    proposal = proposed(storage, kept)
    storage.fail(5, after=calls)
    with suppress(OSError, LogError):
        take_over(storage, proposal)
    if loses_power:
        storage.crash(random.Random(seed))
    else:
        storage.kill()
    manifest = manifests.load(storage, DIRECTORY)
    assert manifest is not None
    is_new = manifest.horizon is not None
    assert stored(storage) == ({offset: written[offset] for offset in kept} if is_new else written)
    named = manifests.named_files(manifest)
    assert is_new or set(proposal.inputs) <= named
    assert not named & set(manifest.removed)
    sweep_jobs(storage, DIRECTORY)
    assert storage.listdir(f"{DIRECTORY}/jobs") == ["lock"]
    edit(storage, horizon=None)
    log = _reopened(storage)
    for file_id in manifest.removed:
        assert not storage.exists(segment_path(DIRECTORY, file_id))
    log.close()


def _reopened(storage: SimulatedStorage) -> Log:
    """Open the log again, folding nothing, and let the housekeeping run."""
    log = Recovery.open(storage, DIRECTORY, CONFIG, 1).log(SharingWorkers())
    for _ in range(2):
        log.completed()
    return log


def _running() -> tuple[SimulatedStorage, Log, Adoption]:
    """Return a log that runs, and an adoption that it has not made yet."""
    storage, written = lived()
    proposal = proposed(storage, sorted(written)[::7])
    return storage, _reopened(storage), Adoption(JOB, proposal)


def test_a_running_log_indexes_the_new_segments_and_no_old_one() -> None:
    """The old files are deleted: the build of an index would fail for each."""
    _, log, adoption = _running()
    inputs = set(adoption.table.inputs)
    builder = log._housekeeper._index_builder
    left_out = Mock(wraps=builder.leave_out)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(builder), "leave_out", lambda _, file_ids: left_out(file_ids))
        log.adopt(adoption)
        log.completed()
    assert (adoption.is_done, adoption.error) == (True, None)
    left_out.assert_called_once_with(inputs)
    log.close()


@pytest.mark.parametrize(("number", "ends"), [(errno.EIO, True), (errno.ENOSPC, False)])
def test_a_disk_that_fails_during_an_adoption_ends_the_log(number: int, *, ends: bool) -> None:
    """What it had written is not known. A full disk fails the adoption alone."""
    storage, log, adoption = _running()
    storage.fail(number, operation="rename")
    log.adopt(adoption)
    if ends:
        with pytest.raises(LogFailed):
            log.completed()
        return
    log.completed()
    assert isinstance(adoption.error, OSError)
    assert adoption.is_done
    log.close()


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"snapshots": ()}, "expected a snapshot at the new horizon"),
        ({"sealed": ()}, "segments are missing"),
        ({"horizon": Horizon(1 << 40, 5)}, "is below the current one 1099511627776"),
        ({"log_id": bytes(16)}, "the job was made for log"),
    ],
)
def test_a_log_that_is_another_by_now_is_left_alone(changes: dict[str, object], why: str) -> None:
    """The edit is made on the manifest of that moment, or refused; the job's files stay where they are."""
    storage, _ = lived()
    proposal = proposed(storage, [])
    edit(storage, **changes)
    sealed = manifests.load(storage, DIRECTORY)
    with pytest.raises(LogError, match=why):
        take_over(storage, proposal)
    after = manifests.load(storage, DIRECTORY)
    assert sealed is not None
    assert after is not None
    assert (after.sealed, after.snapshots, after.horizon) == (sealed.sealed, sealed.snapshots, sealed.horizon)
    assert storage.exists(f"{job_path(DIRECTORY, JOB)}/{proposal.segments[0].name}")


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"base_offset": 1}, "base offset"),
        ({"size": 9000}, "expected 9000 bytes"),
        ({"crc": 1}, "crc32c 00000001"),
        ({"record_count": 999}, "expected 999 records"),
        ({"next_offset": 2}, "offsets within"),
    ],
)
def test_new_files_are_held_against_the_table(changed: dict[str, int], why: str) -> None:
    """Whatever is not as the table says is damage, and nothing is taken over."""
    storage, written = lived()
    proposal = proposed(storage, sorted(written)[::2])
    wrong = replace(proposal, segments=(replace(proposal.segments[0], **changed),))  # type: ignore[arg-type]
    check = {"batch_bytes_max": CONFIG.batch_bytes_max, "throttle": lambda _: False}
    assert check_segments(storage, DIRECTORY, JOB, proposal, **check)  # type: ignore[arg-type]
    with pytest.raises(DamageError, match=why):
        check_segments(storage, DIRECTORY, JOB, wrong, **check)  # type: ignore[arg-type]


def test_inputs_and_new_segments_answer_for_the_same_offsets() -> None:
    """A new segment that covers only a part of the replaced offsets is refused."""
    storage, _ = lived()
    proposal = proposed(storage, [])
    with pytest.raises(LogError, match="does not cover the offsets that it replaces"):
        take_over(storage, replace(proposal, inputs=proposal.inputs[1:]))
    with pytest.raises(LogError, match="no new segment covers"):
        take_over(storage, replace(proposal, segments=()))


def test_a_table_that_leads_elsewhere_is_refused() -> None:
    """Names are names of files in the job's directory."""
    storage, _ = lived()
    proposal = proposed(storage, [])
    outside = replace(proposal, segments=(replace(proposal.segments[0], name="../segments/1"),))
    storage.unlink(f"{job_path(DIRECTORY, JOB)}/TABLE")
    write_table(storage, DIRECTORY, JOB, outside)
    with pytest.raises(ForeignError, match="is not the name of a new segment"):
        read_table(storage, DIRECTORY, JOB)
    for name in ("..", "lock", "", "a/b"):
        with pytest.raises(ForeignError, match="is not the name of a job"):
            job_path(DIRECTORY, name)


def test_the_holder_of_the_lock_sweeps_the_files_of_dead_jobs() -> None:
    """A job that runs is left alone."""
    storage, _ = lived()
    proposed(storage, [])
    with lock_jobs(storage, DIRECTORY, "me"):
        assert sweep_jobs(storage, DIRECTORY) == []
        assert storage.exists(job_path(DIRECTORY, JOB))
    assert sweep_jobs(storage, DIRECTORY) == [JOB]
    assert not storage.exists(job_path(DIRECTORY, JOB))
