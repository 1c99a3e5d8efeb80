"""Browsing while the log is compacted: what a link shows stays there for it, what is below the horizon is refused."""

import random
from pathlib import Path

import pytest

from ambermq.engine.commands import PurgeQueue
from ambermq.engine.history.timestamps import iso_time
from ambermq.log.format.segment import segment_path
from ambermq.log.manifest.manifest import Manifest, load
from ambermq.log.storage.disk import DiskStorage
from ambermq.protocol.amqp10.performatives.classes import Detach
from ambermq.protocol.amqp10.types.values import Timestamp, ULong
from ambermq.protocol.server_limits import ServerLimits
from ambermq.tools.compaction.job import run_compaction
from ambermq.tools.compaction.local_runner import LocalRunner
from ambermq.tools.compaction.preview import Outcome
from tests.protocol.gateway.sources.test_queue_browser import filled, said
from tests.protocol.watching import DiskRig, Watching, at, bodies
from tests.tools.compactions import NONE, LivedBroker

TEXTS = [f"{number:06}" + random.Random(number).randbytes(3000).hex() for number in range(60)]


@pytest.fixture
def watching(tmp_path: Path) -> Watching:
    """A peer of an engine on the real disk, whose queue `q` holds more than memory keeps."""
    directory = str(tmp_path / "data")
    rig = DiskRig(directory, hot_bytes_max=0, cold_bytes_max=1 << 16)
    filled(*TEXTS, rig=rig)
    return Watching(rig, directory=directory, limits=ServerLimits(browse_ms_max=1000))


def compacted(watching: Watching) -> Outcome:
    """Compact without any history to keep, and let what may be deleted be deleted."""
    rig = watching.rig
    outcome = run_compaction(watching.directory, NONE, LocalRunner(), LivedBroker(rig), now_us=rig.now_us)
    tidy(watching)
    return outcome


def tidy(watching: Watching) -> None:
    for _ in range(2):
        watching.rig.loop.log._housekeeping_lane.wake()
        watching.settle()


def manifest_of(watching: Watching) -> Manifest:
    manifest = load(DiskStorage(), watching.directory)
    assert manifest is not None
    return manifest


@pytest.mark.parametrize("is_past", [False, True])
def test_a_compaction_takes_nothing_from_under_a_browser(watching: Watching, is_past: bool) -> None:
    """All comes byte for byte that was on the queue when it began, though it is gone from log and queue by then."""
    first = manifest_of(watching).active
    assert first is not None
    moment = at(ULong(watching.rig.loop.durable_end - 1)) if is_past else None
    watching.attach("q", filter=moment)
    begun = said(bodies(watching.flow(10)))
    watching.rig.do(PurgeQueue("key", "q"))
    outcome = compacted(watching)
    assert (outcome.is_committed, outcome.records_after) == (True, 0)
    old = Path(segment_path(watching.directory, first.file_id))
    assert old.exists()
    assert begun + said(bodies(watching.flow(100))) == TEXTS
    tidy(watching)
    assert not old.exists()


@pytest.mark.parametrize("how", ["detach", "age"])
def test_a_browser_that_ends_holds_nothing(watching: Watching, how: str) -> None:
    """Files go when the link does, by itself or since it is too old, whatever was left to show."""
    watching.attach("q")
    watching.flow(1)
    watching.rig.do(PurgeQueue("key", "q"))
    compacted(watching)
    assert manifest_of(watching).removed
    if how == "detach":
        watching.say(Detach(handle=0, closed=True))
    else:
        watching.gateway.sources.end_expired(0)
        watching.gateway.sources.end_expired(1000)
    tidy(watching)
    assert not manifest_of(watching).removed


def test_a_browser_that_is_refused_holds_nothing(tmp_path: Path) -> None:
    """Where too many ask about the past, where there is no such queue, and where the moment is none."""
    directory = str(tmp_path / "data")
    watching = Watching(DiskRig(directory), directory=directory, limits=ServerLimits(past_waiting_max=0))
    filled("a", rig=watching.rig)
    assert watching.refused("q", filters=at(ULong(3)))[0] == "amqp:resource-limit-exceeded"
    assert watching.refused("none")[0] == "amqp:not-found"
    assert not watching.rig.loop.log._body_holds._numbers


def test_below_the_horizon_browsing_and_the_log_are_refused(watching: Watching) -> None:
    """amqp:precondition-failed with the offset and the time at which history begins, by offset and by time."""
    watching.rig.now_us += 5_000_000
    watching.rig.do(PurgeQueue("key", "q"))
    before = watching.rig.loop.durable_end - 2
    compacted(watching)
    horizon = manifest_of(watching).horizon
    assert horizon is not None
    for address, mode in (("q", "copy"), ("/log", None)):
        for moment in (ULong(before), Timestamp(1001)):
            condition, description = watching.refused(address, mode=mode, filters=at(moment))
            assert condition == "amqp:precondition-failed"
            assert f"offset {horizon.offset} ({iso_time(horizon.time_us)})" in description
    assert watching.browse("q", filter=at(ULong(horizon.offset - 1))) == []


def test_a_log_reader_behind_the_horizon_is_detached(watching: Watching) -> None:
    """Half of what happened is never told as if it was all: the link ends, with the same condition."""
    watching.attach("/log", mode=None, filter=at(ULong(0)))
    watching.flow(2)
    watching.rig.do(PurgeQueue("key", "q"))
    compacted(watching)
    goodbyes = [each for each, _ in watching.flow(10_000) if isinstance(each, Detach)]
    assert [str(each.error.condition) for each in goodbyes if each.error is not None] == ["amqp:precondition-failed"]
