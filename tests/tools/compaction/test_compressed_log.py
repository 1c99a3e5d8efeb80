"""A log that a compaction has compressed: every reader says of it what it says of one that was compacted plainly."""

import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ambermq.engine.commands import AttachProducer, Publish
from ambermq.engine.compaction.plan import History
from ambermq.engine.effects import ProducerReady
from ambermq.engine.events import Published
from ambermq.engine.history.message_story import story_of
from ambermq.engine.history.past import open_past
from ambermq.engine.records.index_keys import touches_of
from ambermq.log.buffer import Buffer
from ambermq.log.index.segment_index import build, path_of_index
from ambermq.log.read.search import Search
from ambermq.log.recovery.verify import verify
from ambermq.log.storage.disk import DiskStorage
from ambermq.tools.broker.child_broker import ChildBroker
from ambermq.tools.dataset.arrow_table import event_columns
from ambermq.tools.dataset.log_segments import open_history
from ambermq.tools.dataset.schema import EVENT_COLUMNS
from ambermq.tools.terminal.exit_codes import ExitCode
from tests.engine.lived import LIVED, Lived, complete
from tests.log.compressed import compressed_count, compressed_parts
from tests.tools.compactions import NONE, LivedBroker, answerable, compact, live_bodies
from tests.tools.conftest import Run
from tests.tools.sealing import load_until_sealed, sealed_count

STORAGE = DiskStorage()
Twins = tuple[Path, Path]
SEED = 1
"""Of the life of the twins; any other does."""


def lived(
    directory: Path, seed: int, steps: int, history: History = NONE, *, compresses: bool, kept_count: int = 0
) -> Lived:
    """A life that was compacted; the same but for its ids for the same seed, whether compressed or not.

    So many messages wait on a queue of their own through the compaction, and for ever.
    """
    life = Lived(directory, seed)
    life.sync_share = 1.0
    life.is_reset = not kept_count
    for number in range(4):
        life.live(steps)
        LivedBroker(life).take_snapshot(f"number-{number}", seals=True)
        life.live(steps // 2)
        life.settle_down()
        if number % 2:
            life.end()
            life.start()
    if kept_count:
        keep_messages(life, kept_count)
    compact(life, history, compresses=compresses)
    life.settle_down()
    return life


def keep_messages(life: Lived, count: int) -> None:
    """Publish messages to a queue that no consumer comes to, and seal their segment."""
    life.loop.submit(AttachProducer("key", "kept", "container", "to kept"))
    effects = life.loop.step(life.now_us) + complete(life.loop, life.now_us)
    (producer,) = [effect.producer for effect in effects if type(effect) is ProducerReady]
    bodies: list[Buffer] = [b"%08d" % (len(life.bodies) + number) + bytes(30) for number in range(count)]
    life.bodies.update((bytes(body), len(life.bodies)) for body in bodies)
    life.loop.submit(Publish("link", producer, 0, bodies, [1] * count, sum(map(len, bodies))))
    life.settle_down()
    LivedBroker(life).take_snapshot("kept", seals=True)


@pytest.fixture(scope="module")
def twins(tmp_path_factory: pytest.TempPathFactory) -> Twins:
    """Two directories at rest, the first compacted plainly, the second compressed; messages wait in both."""
    plain, packed = (tmp_path_factory.mktemp("lived") / name for name in ("plain", "packed"))
    for directory in (plain, packed):
        life = lived(directory, SEED, 50, compresses=directory is packed, kept_count=30)
        life.live(20)
        life.settle_down()
        life.end()
    assert compressed_count(str(plain)) == 0
    assert compressed_count(str(packed)) >= 2
    return plain, packed


@settings(max_examples=4, deadline=None)
@example(75, 34, 0).via("a lock of 2 ms on a delivery whose body is compressed")
@given(st.integers(0, 1 << 32), st.integers(5, 35), st.sampled_from((0, 3_000_000, 30_000_000)))
def test_states_and_messages_are_those_of_a_plain_one(seed: int, steps: int, age_us: int) -> None:
    """At every moment that is answered for, now and after another life and another compaction."""
    with tempfile.TemporaryDirectory() as folder:
        found = []
        for compresses in (False, True):
            life = lived(Path(folder) / str(compresses), seed, steps, History(age_us=age_us), compresses=compresses)
            first = answerable(life.directory)
            bodies = live_bodies(life.directory, first)
            assert verify(life.directory, config=LIVED).damage is None
            life.end()
            life.start()
            life.live(steps)
            life.settle_down()
            compact(life)
            second = {life.now_us: life.loop.state}
            found.append((first, bodies, second, live_bodies(life.directory, second)))
            life.end()
            assert verify(life.directory, config=LIVED).damage is None
        assert found[0] == found[1]


def test_the_broker_delivers_what_was_compressed(twins: Twins, tmp_path: Path) -> None:
    """Single bodies, in any order, from its own tables after a recovery."""
    bodies = []
    for source in twins:
        directory = shutil.copytree(source, tmp_path / source.name)
        life = Lived(directory, 1)
        with open_past(str(directory), LIVED, now_us=1 << 60) as past:
            state = past.state_at(past.end - 1)
        wanted = live_bodies(str(directory), {0: state})
        found = {}
        for offset in sorted(wanted, key=lambda one: (one % 7, one)):
            while (body := life.loop.log.bodies.get(offset)) is None:
                life.loop.completed(life.now_us)
            found[offset] = bytes(body)
        assert found == wanted
        bodies.append(found)
        life.end()
    assert len(bodies[0]) > 20
    assert bodies[0] == bodies[1]


def lines_of(run: Run, directory: Path, *arguments: str | int) -> list[dict[str, Any]]:
    """What a command says of a directory, without what names jobs and sizes of files."""
    result = run(*arguments, "--data", directory, "--output", "json")
    assert result.exit_code == ExitCode.OK, result.stderr
    try:
        rows = json.loads(result.stdout)
    except ValueError:
        rows = [json.loads(line) for line in result.stdout.splitlines()]
    return [row for row in (rows if isinstance(rows, list) else [rows]) if row.get("type") != "compacted"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("log", "dump"),
        ("queue", "list", "--at", "now"),
        ("queue", "browse", "kept", "--at", "now"),
        ("history", "tail"),
    ],
)
def test_commands_say_the_same(twins: Twins, run: Run, arguments: tuple[str, ...]) -> None:
    """Events, queues, messages."""
    plain, packed = (lines_of(run, directory, *arguments) for directory in twins)
    assert plain == packed
    assert plain


def test_a_story_is_the_same(twins: Twins, run: Run) -> None:
    """Of each message that was published before the horizon and lives, with indexes and without."""
    stories = []
    for directory in twins:
        with open_past(str(directory), LIVED, now_us=1 << 60) as past:
            alive = live_bodies(str(directory), {0: past.state_at(past.end - 1)})
            below = [offset for offset in alive if offset < past.horizon.offset]
            offsets = [offset for offset in below if isinstance(past.event_at(offset), Published)]
            search = Search(past.reader, touches_of)
            stories.append([(life.offset, life.steps) for life in (story_of(past, search, one) for one in offsets)])
            search.close()
            for sealed in past.reader.manifest.sealed:
                part, segment = past.reader.open_sealed(sealed), sealed.at(str(directory))
                build(part.file, segment, batch_bytes_max=LIVED.batch_bytes_max, touches_of=touches_of)
                part.file.close()
                assert Path(path_of_index(segment)).exists()
        with open_past(str(directory), LIVED, now_us=1 << 60) as past:
            search = Search(past.reader, touches_of)
            stories.append([(life.offset, life.steps) for life in (story_of(past, search, one) for one in offsets)])
            search.close()
    assert stories[0] == stories[1] == stories[2] == stories[3]
    assert len(stories[0]) > 5
    message = ("history", "message", f"offset:{stories[0][0][0]}")
    assert _without_names(lines_of(run, twins[0], *message)) == _without_names(lines_of(run, twins[1], *message))


def _without_names(stories: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return stories without the names of links and muxers: only segments that were not rewritten still have those."""
    for story in stories:
        for event in story["events"]:
            for name in ("by", "muxer", "words"):
                event.pop(name, None)
    return stories


def test_a_backup_and_a_copy_hold_the_same(twins: Twins, run: Run, tmp_path: Path) -> None:
    """Export and restore, which is what the copy of a virtual host does too: plain again, and whole."""
    held = []
    for number, directory in enumerate(twins):
        backup, target = tmp_path / f"backup-{number}", tmp_path / f"target-{number}"
        newest = lines_of(run, directory, "snapshot", "list")[-1]["name"]
        assert run("snapshot", "export", newest, backup, "--data", directory).exit_code == ExitCode.OK
        assert run("snapshot", "verify", backup).exit_code == ExitCode.OK
        assert run("snapshot", "restore", backup, "--data", target).exit_code == ExitCode.OK
        with open_past(str(target)) as past:
            states = {0: past.state_at(past.horizon.offset - 1)}
        assert run("log", "verify", "--data", target).exit_code == ExitCode.OK
        held.append((set(states[0].queues), live_bodies(str(target), states)))
        assert compressed_count(str(target)) == 0
    assert held[0] == held[1]
    assert len(held[0][1]) > 20


def rows_of(directory: Path, offsets: set[int]) -> list[dict[str, Any]]:
    """What all segments say of the records at some offsets as columns, bodies too; events above the horizon as well."""
    rows = []
    # The attach event of the producer is below the horizon: segments that were not rewritten still have it.
    columns = [name for name in (*EVENT_COLUMNS, "body") if name != "container"]
    with open_history(str(directory)) as log:
        for segment in log.segments:
            for batch in event_columns(segment, columns, segments=log.segments, known=log.known()):
                rows += [row for row in batch.to_pylist() if row["type"] != "compacted"]
    return [row for row in rows if row["offset"] in offsets or row["offset"] >= log.horizon]


def test_columns_are_the_same(twins: Twins) -> None:
    """What Spark, an archive and an export are given."""
    with open_past(str(twins[0]), LIVED, now_us=1 << 60) as past:
        offsets = set(live_bodies(str(twins[0]), {0: past.state_at(past.horizon.offset - 1)}))
    plain, packed = (rows_of(directory, offsets) for directory in twins)
    assert plain == packed
    assert {row["offset"] for row in plain} >= offsets


def test_every_reader_reports_damage(twins: Twins, run: Run, tmp_path: Path) -> None:
    """File and position of a frame with a wrong byte: verification, export and compaction end there with their code."""
    directory = tmp_path / "hurt"
    shutil.copytree(twins[1], directory)
    part, places = next(one for one in compressed_parts(STORAGE, str(directory)) if one[1])
    header = next(iter(part.walk(places[0])))
    position = places[0] + header.head_bytes
    part.file.close()
    content = bytearray(Path(part.path).read_bytes())
    content[position + header.body_bytes // 2] ^= 4
    Path(part.path).write_bytes(content)
    said = f"{part.path} is damaged at position {position}: expected body CRC"
    newest = lines_of(run, directory, "snapshot", "list")[-1]["name"]
    for arguments in (
        ("log", "verify"),
        ("snapshot", "export", newest, tmp_path / "backup"),
        ("log", "compact", "--runner", "local", "--keep-history", "0s"),
    ):
        result = run(*arguments, "--data", directory)
        assert (result.exit_code, said in result.stdout + result.stderr) == (ExitCode.DAMAGED, True), result.stderr
    assert not (tmp_path / "backup").exists()


def test_beside_a_broker_everything_is_delivered_and_read(run: Run, tmp_path: Path) -> None:
    """Send, compact with --compress, browse, verify, receive, from a broker that runs all the while."""
    config = tmp_path / "config.toml"
    config.write_text("[log]\nsegment_bytes_min = 262144\nsegment_bytes_max = 262144\nballast_bytes = 0\n")
    broker = ChildBroker(tmp_path / "data", arguments=("--config", str(config)))
    broker.start()
    try:
        data = ("--data", broker.directory)
        for _ in range(4):
            assert run("send", "stays", "--size", 700, "--count", 500, *data).exit_code == ExitCode.OK
        load_until_sealed(broker, sealed_count(broker) + 2)
        compact_now = ("log", "compact", "--runner", "local", "--keep-history", "0s", "--compress", *data)
        outcome = json.loads(run(*compact_now, "--output", "json").stdout)
        assert outcome["is_committed"]
        assert outcome["bytes_after"] * 2 < outcome["bytes_before"]
        assert compressed_count(str(broker.directory)) >= 4
        # Again, without being asked to: what was compressed stays so.
        assert run(*(one for one in compact_now if one != "--compress")).exit_code == ExitCode.OK
        assert compressed_count(str(broker.directory)) >= 4
        assert len(lines_of(run, broker.directory, "queue", "browse", "stays", "--limit", 2000)) == 2000
        for command in ("verify", "segments", "dump"):
            assert run("log", command, *data).exit_code == ExitCode.OK
        received = run("receive", "stays", "--all", "--timeout", 2, *data).stdout.splitlines()
        assert len(received) == 2000
    finally:
        broker.kill()
