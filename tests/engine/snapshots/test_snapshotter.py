"""Taking snapshots beside the loop: when, how many, and that what goes wrong costs a snapshot and nothing else."""

import errno
import random
from dataclasses import replace
from pathlib import Path
from select import POLLIN, poll
from typing import Any

import pytest

from ambermq.engine.commands import DeleteSnapshot, InspectSnapshots, PurgeQueue, TakeSnapshot
from ambermq.engine.config import EngineConfig
from ambermq.engine.effects import Answered, Effect, RefusedCommand
from ambermq.engine.loop.durable_loop import DurableLoop
from ambermq.engine.loop.recovery import fold_log, recover
from ambermq.engine.snapshots.files import load_snapshot, newest_snapshot
from ambermq.log.config import LogConfig
from ambermq.log.manifest.manifest import Horizon, Manifest, snapshot_path
from ambermq.log.manifest.snapshot_placement import temporary_path
from ambermq.log.recovery.recovery import Recovery
from ambermq.log.storage.disk import DiskStorage
from ambermq.log.storage.worker_threads import InlineWorkers
from tests.engine.rig import Rig
from tests.log.lives import CONFIG, DIRECTORY
from tests.log.simulated import SimulatedStorage

EAGER = EngineConfig(snapshot_bytes=2000, snapshot_interval_s=100, snapshot_pause_s=10, snapshot_keep=2)


def answer(effects: list[Effect], key: str = "snap") -> Any:
    """The value of the one answer to a key."""
    (found,) = [each.value for each in effects if type(each) is Answered and each.key == key]
    return found


def refusal(effects: list[Effect]) -> RefusedCommand:
    """The one refusal."""
    (found,) = [each for each in effects if type(each) is RefusedCommand]
    return found


def names(rig: Rig) -> list[str]:
    """The names of all snapshots, in order."""
    return [one.name for one in rig.loop.log.manifest.snapshots]


def take(rig: Rig, name: str = "", **asked: Any) -> Any:
    """Request a snapshot and run until all work has ended."""
    return answer(rig.do(TakeSnapshot("snap", name, **asked)) + settle(rig))


def settle(rig: Rig) -> list[Effect]:
    """Run the lanes until none has work: each hands over to the next."""
    return [effect for _ in range(5) for effect in rig.completed()]


def edit(rig: Rig, **changes: Any) -> None:
    """Change the manifest behind the broker's back."""

    def change(manifest: Manifest) -> Manifest:
        return replace(manifest, generation=manifest.generation + 1, **changes)

    rig.loop.log.edit_manifest(change)
    rig.completed()


def test_a_snapshot_is_the_state_at_the_end_of_its_tick() -> None:
    """What is read back is the state as it was then, to the last attribute, and lies where the log ended."""
    rig = Rig()
    producer = rig.producer()
    rig.do(rig.publish(producer, b"one", b"two"))
    told = take(rig, "first")
    held = rig.loop.state
    rig.do(rig.publish(producer, b"three"))
    (snapshot,) = rig.loop.log.manifest.snapshots
    assert (told["name"], told["end"], told["is_automatic"]) == ("first", snapshot.end, False)
    assert told["bytes"] == snapshot.size == rig.storage.size(snapshot_path(DIRECTORY, snapshot.file_id))
    assert load_snapshot(rig.storage, DIRECTORY, rig.loop.log.manifest, snapshot) == held
    assert not rig.storage.exists(temporary_path(DIRECTORY))


def test_what_was_consumed_while_it_was_written_is_in_it() -> None:
    """The state is kept as it was, and let go of in the end, a long queue in several steps."""
    rig = Rig()
    producer = rig.producer()
    for _ in range(90):
        rig.do(rig.publish(producer, *[b"m"] * 100))
    rig.step(TakeSnapshot("snap", "x"))
    held = rig.loop.state
    rig.step(PurgeQueue("purge", "q"))
    settle(rig)
    (snapshot,) = rig.loop.log.manifest.snapshots
    found = load_snapshot(rig.storage, DIRECTORY, rig.loop.log.manifest, snapshot)
    assert found == held
    assert (found.queues[rig.queue().id].available, rig.queue().available) == (9000, 0)


def test_what_was_put_off_is_written_first() -> None:
    """A state that runs ahead of the log is never held: the tick is written, and the end is behind it."""
    rig = Rig(config=EngineConfig(lazy_write_ms=1000))
    producer = rig.producer()
    consumer = rig.consumer(credit=1)
    rig.do(rig.publish(producer, b"one"))
    rig.step(TakeSnapshot("snap", "x"))
    assert rig.loop.log.draft.record_count == 0
    assert rig.loop.state.consumers.get(consumer) is not None
    assert answer(rig.completed() + rig.completed())["end"] == rig.loop.log.log_end


def test_it_is_named_only_when_its_end_is_durable() -> None:
    """A file that is ready before the sync waits for it."""
    rig = Rig()
    producer = rig.producer()
    rig.storage.fail(errno.EIO, operation="datasync")
    rig.step(rig.publish(producer, b"one"), TakeSnapshot("snap", "x"))
    with pytest.raises(Exception, match="sync"):
        rig.completed()
    assert names(rig) == []


def test_one_after_the_other_each_with_its_own_moment() -> None:
    """Several asked for at once are each taken; their ends are those of their ticks."""
    rig = Rig()
    producer = rig.producer()
    rig.step(TakeSnapshot("a", "a"))
    rig.step(rig.publish(producer, b"one"))
    rig.step(TakeSnapshot("b", "b"))
    effects = settle(rig)
    assert answer(effects, "b")["end"] == answer(effects, "a")["end"] + 1
    assert names(rig) == ["a", "b"]


def test_the_line_is_bounded() -> None:
    """A request beyond the queue is refused, and the others get their snapshots."""
    rig = Rig(config=EngineConfig(snapshots_waiting_max=1))
    effects = rig.step(*[TakeSnapshot(str(number), str(number)) for number in range(3)])
    assert refusal(effects).key == "2"
    assert refusal(effects).condition == "amqp:resource-limit-exceeded"
    settle(rig)
    assert names(rig) == ["0", "1"]


def test_a_request_without_a_wait_is_answered_before_the_write() -> None:
    """The answer says what will be there."""
    rig = Rig()
    rig.producer()
    effects = rig.step(TakeSnapshot("snap", "x", waits=False))
    assert answer(effects)["name"] == "x"
    assert names(rig) == []
    settle(rig)
    assert names(rig) == ["x"]


@pytest.mark.parametrize("name", ["a/b", "line\nbreak", "ä" * 200])
def test_a_name_is_short_and_printable(name: str) -> None:
    """Others are refused in one message."""
    assert refusal(Rig().do(TakeSnapshot("snap", name))).condition == "amqp:invalid-field"


def test_a_name_is_had_once() -> None:
    """A second snapshot of a name is refused, also while the first is being written; without a name one is found."""
    rig = Rig()
    effects = rig.step(TakeSnapshot("snap", "x"), TakeSnapshot("again", "x"))
    assert refusal(effects).condition == "amqp:precondition-failed"
    rig.completed()
    assert refusal(rig.do(TakeSnapshot("again", "x"))).condition == "amqp:precondition-failed"
    assert take(rig)["name"] != take(rig)["name"]


def test_a_full_disk_refuses_one_and_the_broker_goes_on() -> None:
    """Nothing is named, the temporary file is gone, and the next one is taken where there is room again."""
    rig = Rig()
    producer = rig.producer()
    rig.do(rig.publish(producer, *[b"m"] * 50))
    before = rig.loop.log.manifest
    rig.storage.fail(errno.ENOSPC, after=2, operation="write")
    effects = rig.do(TakeSnapshot("snap", "x")) + rig.completed()
    assert refusal(effects).condition == "amqp:resource-limit-exceeded"
    assert "No space left" in refusal(effects).description
    assert not rig.storage.exists(temporary_path(DIRECTORY))
    assert rig.loop.log.manifest.snapshots == before.snapshots == ()
    rig.do(rig.publish(producer, b"more"))
    assert take(rig, "x")["name"] == "x"


def test_a_removed_file_costs_one_snapshot() -> None:
    """Before it was named; the broker goes on, and takes the next one."""
    rig = Rig()
    rig.producer()
    rig.step(TakeSnapshot("snap", "x"))
    while not rig.storage.exists(temporary_path(DIRECTORY)):
        rig.completed()
    rig.storage.unlink(temporary_path(DIRECTORY))
    assert refusal(settle(rig)).condition == "amqp:internal-error"
    assert take(rig, "y")["name"] == "y"
    assert names(rig) == ["y"]


def test_a_disk_that_is_nearly_full_is_not_filled_up() -> None:
    """What a snapshot needs is known before, and asked for."""
    storage = SimulatedStorage(random.Random(0), capacity_bytes=1 << 20)
    rig = Rig(storage)
    producer = rig.producer()
    rig.do(rig.publish(producer, *[b"m"] * 100))
    storage.capacity_bytes = sum(len(inode.seen) for inode in storage._names.values()) + 100
    assert "are free" in refusal(rig.do(TakeSnapshot("snap", "x")) + rig.completed()).description
    assert names(rig) == []


def test_a_deleted_one_is_gone_with_its_file() -> None:
    """The answer leaves when the manifest no longer names it; an unknown name is answered with nothing."""
    rig = Rig()
    take(rig, "x")
    (snapshot,) = rig.loop.log.manifest.snapshots
    assert answer(rig.do(DeleteSnapshot("snap", "x")) + rig.completed())["name"] == "x"
    assert names(rig) == []
    assert not rig.storage.exists(snapshot_path(DIRECTORY, snapshot.file_id))
    assert answer(rig.do(DeleteSnapshot("snap", "x"))) is None


def test_what_history_begins_with_stays() -> None:
    """The base of a horizon cannot be deleted, and is never pruned."""
    rig = Rig(config=replace(EAGER, snapshot_keep=1))
    rig.loop.snapshots.start(rig.now_us, logged_bytes=1 << 40)
    rig.now_us += 20_000_000
    rig.step()
    settle(rig)
    (base,) = rig.loop.log.manifest.snapshots
    edit(rig, horizon=Horizon(base.end, base.time_us))
    assert refusal(rig.do(DeleteSnapshot("snap", base.name))).condition == "amqp:precondition-failed"
    for _ in range(3):
        log_on(rig)
    assert names(rig)[0] == base.name
    assert len(names(rig)) == 2


def log_on(rig: Rig) -> None:
    """Log enough for one more of its own, late enough."""
    producer = rig.producer()
    rig.now_us += 20_000_000
    rig.do(rig.publish(producer, bytes(3000)))
    rig.step()
    settle(rig)


def test_the_broker_takes_them_by_events() -> None:
    """One each `snapshot_events`, counted from the newest snapshot, also after a start."""
    config = replace(EAGER, snapshot_bytes=0, snapshot_interval_s=0, snapshot_events=100)
    rig = Rig(config=config)
    rig.loop.snapshots.start(rig.now_us, logged_bytes=0)
    producer = rig.producer()
    before = rig.loop.log.log_end
    rig.now_us += 20_000_000
    rig.do(rig.publish(producer, *[b"m"] * (99 - before)))
    settle(rig)
    assert names(rig) == []
    rig.do(rig.publish(producer, b"m"))
    rig.do(rig.publish(producer, b"m"))
    settle(rig)
    assert len(names(rig)) == 1
    rig.do(rig.publish(producer, *[b"m"] * 60))
    rig.loop.snapshots.start(rig.now_us, logged_bytes=0)
    assert rig.loop.snapshots.next_end == rig.loop.log.manifest.snapshots[-1].end + 100


@pytest.mark.parametrize(
    ("field", "value", "events", "count"),
    [
        *(("delay_ms", 0, 100, 0), ("delay_ms", 60_000, 100, 1), ("delay_ms", 60_000, 0, 0)),
        *(("ttl_ms", 0, 25, 0), ("ttl_ms", 60_000, 25, 1), ("ttl_ms", 60_000, 0, 0)),
    ],
)
def test_an_event_with_times_of_messages_counts_as_several(field: str, value: int, events: int, count: int) -> None:
    """40 if it schedules them, 8 with a time to live, as a start folds it; with `snapshot_events` = 0 none counts."""
    rig = Rig(config=replace(EAGER, snapshot_bytes=0, snapshot_interval_s=0, snapshot_events=events))
    rig.loop.snapshots.start(rig.now_us, logged_bytes=0)
    producer = rig.producer()
    rig.now_us += 20_000_000
    for _ in range(3):
        command = rig.publish(producer, b"timed")
        setattr(command, field, value)
        rig.do(command)
    settle(rig)
    assert len(names(rig)) == count


def test_the_broker_takes_them_by_bytes_and_keeps_the_newest() -> None:
    """One each `snapshot_bytes`, none within `snapshot_pause_s`; requested ones stay."""
    rig = Rig(config=EAGER)
    rig.loop.snapshots.start(rig.now_us, logged_bytes=0)
    take(rig, "mine")
    producer = rig.producer()
    rig.do(rig.publish(producer, bytes(3000)))
    rig.step()
    rig.completed()
    assert names(rig) == ["mine"]
    for _ in range(5):
        log_on(rig)
    assert names(rig)[0] == "mine"
    assert len(names(rig)) == 3
    assert [one.is_automatic for one in rig.loop.log.manifest.snapshots] == [False, True, True]


def test_the_broker_takes_them_by_time_where_anything_was_logged() -> None:
    """After `snapshot_interval_s`; while nothing is logged there is nothing to take."""
    rig = Rig(config=replace(EAGER, snapshot_bytes=0))
    rig.loop.snapshots.start(rig.now_us, logged_bytes=0)
    assert not rig.loop.snapshots.is_due(rig.now_us + 99_000_000)
    rig.now_us += 100_000_000
    assert rig.loop.snapshots.is_due(rig.now_us)
    rig.step()
    settle(rig)
    assert len(names(rig)) == 1
    rig.now_us += 100_000_000
    rig.step()
    settle(rig)
    assert len(names(rig)) == 1


def test_old_ones_go_by_age_but_not_the_newest() -> None:
    """`snapshot_age_s_max` lets go of the broker's own as soon as there is a newer one."""
    rig = Rig(config=replace(EAGER, snapshot_age_s_max=15))
    rig.loop.snapshots.start(rig.now_us, logged_bytes=0)
    for _ in range(3):
        log_on(rig)
    assert len(names(rig)) == 1


def test_what_fails_by_itself_is_told_to_the_server() -> None:
    """An automatic snapshot has no requester, so its error is kept for the log."""
    rig = Rig(config=EAGER)
    rig.loop.snapshots.start(rig.now_us, logged_bytes=0)
    rig.now_us += 100_000_000
    rig.step()
    rig.storage.fail(errno.ENOSPC, operation="write")
    rig.completed()
    assert len(rig.loop.snapshots.faults) == 1
    assert names(rig) == []


def test_those_asked_for_take_the_room_of_the_others() -> None:
    """The broker's own go first, the oldest one first; when only those asked for are left, no more are taken."""
    rig = Rig(config=replace(EAGER, snapshots_max=4))
    rig.loop.snapshots.start(rig.now_us, logged_bytes=0)
    producer = rig.producer()
    log_on(rig)
    log_on(rig)
    assert names(rig) == (own := [one.name for one in rig.loop.log.manifest.snapshots if one.is_automatic])
    rooms = []
    for name in "abcd":
        rig.do(rig.publish(producer, b"one"))
        rooms.append(take(rig, name)["room"])
        assert len(names(rig)) <= 4
        assert own[-1] in names(rig) or name in "cd"
    assert (rooms, names(rig)) == ([3, 2, 1, 0], ["a", "b", "c", "d"])
    assert refusal(rig.do(TakeSnapshot("snap", "e"))).condition == "amqp:resource-limit-exceeded"
    assert answer(rig.do(InspectSnapshots("snap", lambda _, room: room))) == 0


def test_that_there_is_no_room_for_its_own_is_told_once() -> None:
    """Until there is room again: then it takes them as ever, and tells it the next time."""
    rig = Rig(config=replace(EAGER, snapshots_max=2))
    rig.loop.snapshots.start(rig.now_us, logged_bytes=0)
    for times in (1, 2):
        take(rig, "a")
        log_on(rig)
        assert [one.is_automatic for one in rig.loop.log.manifest.snapshots] == [False, True]
        take(rig, "b")
        for _ in range(3):
            log_on(rig)
        assert (names(rig), len(rig.loop.snapshots.faults)) == (["a", "b"], times)
        for name in "ab":
            rig.do(DeleteSnapshot("snap", name))
            settle(rig)
    assert "no room for automatic snapshots" in rig.loop.snapshots.faults[0]


def test_its_own_go_on_in_the_one_place_that_is_left() -> None:
    """The newest takes the place of the one before, also where all others were asked for."""
    rig = Rig(config=replace(EAGER, snapshots_max=2))
    rig.loop.snapshots.start(rig.now_us, logged_bytes=0)
    take(rig, "a")
    seen = set()
    for _ in range(3):
        log_on(rig)
        seen.add(names(rig)[-1])
        assert names(rig)[:-1] == ["a"]
    assert (len(seen), rig.loop.snapshots.faults) == (3, [])


def test_they_are_told_in_order_of_their_ends() -> None:
    """What is asked about snapshots sees all that are named."""
    rig = Rig()
    producer = rig.producer()
    take(rig, "b")
    rig.do(rig.publish(producer, b"one"))
    take(rig, "a")
    assert answer(rig.do(InspectSnapshots("snap", lambda rows, _: [row["name"] for row in rows]))) == ["b", "a"]


def test_a_damaged_one_is_told_and_the_one_before_is_used() -> None:
    """Recovery folds from the newest that can be believed, and says what was wrong with the others."""
    rig = Rig(log_config=CONFIG)
    producer = rig.producer()
    rig.do(rig.publish(producer, b"one"))
    take(rig, "older")
    rig.do(rig.publish(producer, b"two"))
    take(rig, "newer")
    rig.do(rig.publish(producer, b"three"))
    state = rig.loop.state
    older, newer = rig.loop.log.manifest.snapshots
    rig.storage.damage(snapshot_path(DIRECTORY, newer.file_id), 100, b"\xff\xff")
    rig.storage.kill()
    recovery = Recovery.open(rig.storage, DIRECTORY, CONFIG, rig.now_us)
    found = newest_snapshot(rig.storage, DIRECTORY, recovery.manifest)
    assert found.snapshot == older
    (fault,) = found.faults
    assert snapshot_path(DIRECTORY, newer.file_id) in str(fault)
    told: list[str] = []
    assert fold_log(recovery, report=lambda error: told.append(str(error))) == state
    assert told == [str(fault)]
    recovery.close()


def test_without_what_history_begins_with_nothing_is_recovered() -> None:
    """Where a horizon is set, a fold from the first event would be another state: that is damage."""
    rig = Rig(log_config=CONFIG)
    take(rig, "base")
    (base,) = rig.loop.log.manifest.snapshots
    edit(rig, horizon=Horizon(base.end, base.time_us))
    rig.storage.damage(snapshot_path(DIRECTORY, base.file_id), 70, b"\xff")
    rig.storage.kill()
    recovery = Recovery.open(rig.storage, DIRECTORY, CONFIG, rig.now_us)
    with pytest.raises(Exception, match="damaged at position"):
        fold_log(recovery)
    recovery.close()


def test_sealed_segments_below_a_snapshot_are_not_read() -> None:
    """Damage there is no concern of a start, and the total that progress is told leaves them out."""
    rig = Rig(log_config=CONFIG)
    producer = rig.producer()
    for _ in range(6):
        rig.do(rig.publish(producer, bytes(4000)))
        rig.completed()
    take(rig, "x")
    rig.do(rig.publish(producer, b"last"))
    state = rig.loop.state
    sealed = rig.loop.log.manifest.sealed[0]
    rig.storage.damage(sealed.at(DIRECTORY).path, 4096, bytes(64))
    rig.storage.kill()
    recovery = Recovery.open(rig.storage, DIRECTORY, CONFIG, rig.now_us)
    whole_bytes = recovery.total_bytes
    assert fold_log(recovery) == state
    assert recovery.scanned_bytes == recovery.total_bytes < whole_bytes
    log = recovery.log(InlineWorkers())
    log.close()


def test_a_stop_drops_the_one_under_way_and_does_not_wait_for_it(tmp_path: Path) -> None:
    """However slowly it is written: the log closes at once, and the next start finds nothing of it."""
    directory, storage = str(tmp_path), DiskStorage()
    loop = _on_disk(directory, EngineConfig(snapshot_bytes_per_s=1))
    loop.submit(TakeSnapshot("snap", "x"))
    loop.step(1_000_000)
    loop.log.close()
    assert not storage.exists(temporary_path(directory))
    again = _on_disk(directory, EngineConfig())
    assert again.log.manifest.snapshots == ()
    again.log.close()


def test_a_thread_takes_it_as_the_stand_in_does(tmp_path: Path) -> None:
    """With real threads and files: taken, named, and what the next start begins with."""
    directory = str(tmp_path)
    loop = _on_disk(directory, EngineConfig())
    loop.submit(TakeSnapshot("snap", "x"))
    effects = loop.step(1_000_000)
    news = poll()
    news.register(loop.fileno(), POLLIN)
    while not effects:
        news.poll()
        effects = loop.completed(1_000_000)
    end, state = answer(effects)["end"], loop.state
    loop.log.close()
    recovery = Recovery.open(DiskStorage(), directory, LogConfig(), 2_000_000)
    found = newest_snapshot(recovery.storage, directory, recovery.manifest)
    assert found.snapshot is not None
    assert (found.snapshot.end, found.state) == (end, state)
    recovery.close()


def _on_disk(directory: str, config: EngineConfig) -> DurableLoop:
    """A loop on real files, with threads."""
    return recover(Recovery.open(DiskStorage(), directory, LogConfig(ballast_bytes=0), 1_000_000), config, 1_000_000)
