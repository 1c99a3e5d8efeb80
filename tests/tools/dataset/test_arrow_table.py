from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from ambermq.engine.entries.entry_word import entry_of, size_of, unpack_words
from ambermq.engine.events import (
    Acquired,
    Attached,
    Chunked,
    ConsumerAttached,
    ConsumerDetached,
    Damaged,
    Detached,
    Discarded,
    Due,
    Duplicated,
    Event,
    Grouped,
    Identified,
    Keyed,
    LinkEnded,
    LinkResumed,
    LinkSuspended,
    Moved,
    Prioritized,
    ProducerAttached,
    ProducerDetached,
    Published,
    QueueDeclared,
    Scheduled,
    SetAside,
    Settled,
    TagsKept,
)
from ambermq.engine.records.reader import events_of
from ambermq.log.errors import DamageError
from ambermq.log.read.log_reader import open_reader
from ambermq.tools.dataset import arrow_table
from ambermq.tools.dataset.arrow_table import Selection, event_columns
from ambermq.tools.dataset.log_segments import HistoryLog, limited, open_history
from ambermq.tools.dataset.schema import EVENT_COLUMNS, UNREADABLE, schema_of
from ambermq.tools.history.event_text import type_of
from ambermq.tools.past.id_names import IdNames
from ambermq.tools.terminal.errors import ToolError
from tests.engine.lived import Lived

_COLUMNS = tuple(EVENT_COLUMNS)


@pytest.fixture(scope="module", params=range(3))
def lived(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a random life in it: several segments, epochs, large messages."""
    directory = tmp_path_factory.mktemp("lived") / "data"
    life = Lived(directory, request.param)
    for _ in range(3):
        life.live(150)
        life.settle_down()
        life.end(cleanly=True)
        life.start()
    life.settle_down()
    life.end()
    return directory


def rows(log: HistoryLog, columns: tuple[str, ...] = _COLUMNS, **options: Any) -> list[dict[str, Any]]:
    found = []
    for segment in log.segments:
        for batch in event_columns(segment, columns, segments=log.segments, **options):
            assert batch.schema == schema_of(columns)
            found += batch.to_pylist()
    return found


def told(directory: Path) -> Iterator[dict[str, Any]]:
    """The same rows, told one by one from the events as everything else reads them."""
    names = IdNames()
    containers: dict[int, str] = {}
    links: dict[int, int] = {}
    with open_reader(str(directory)) as reader:
        for readable in reader.batches():
            for event in events_of(readable.batch):
                names.add(event)
                if isinstance(event, ProducerAttached | ConsumerAttached):
                    containers[event.offset] = event.container
                if isinstance(event, ConsumerAttached):
                    links[event.offset] = event.queue
                yield from _rows_of(event, names, containers, links)


def _rows_of(
    event: Event, names: IdNames, containers: dict[int, str], links: dict[int, int]
) -> Iterator[dict[str, Any]]:
    row: dict[str, Any] = dict.fromkeys(
        ("queue", "message_offset", "message_id", "outcome", "container", "size", "durable")
    )
    row |= {"offset": event.offset, "timestamp": event.time_us, "vhost": "default", "type": type_of(event), "count": 0}
    match event:
        case Published():
            for word in unpack_words(event.words):
                offset, size = entry_of(word), size_of(word)
                said: dict[str, Any] = {
                    "offset": offset,
                    "message_offset": offset,
                    "durable": event.durable,
                    "count": 1,
                }
                said |= {"container": containers.get(event.producer)}
                for queue in event.queues or (0,):
                    yield row | said | {"queue": names.queue(queue) if queue else None, "size": size}
            return
        case Acquired() | Settled():
            links_of = event.consumers if isinstance(event, Acquired) else (event.consumer,)
            outcome = event.outcome.kind.name.lower() if isinstance(event, Settled) else None
            for turn, word in enumerate(unpack_words(event.words)):
                said = {"message_offset": entry_of(word), "size": size_of(word), "count": 1, "outcome": outcome}
                said |= {"container": containers.get(links_of[turn % len(links_of)])}
                yield row | said | {"queue": names.queue(event.queue)}
            return
        case Moved():
            for word in unpack_words(event.words):
                said = {"message_offset": entry_of(word), "size": size_of(word), "count": 1}
                yield row | said | {"queue": names.queue(event.targets[0])}
            return
        case Duplicated():
            for word in unpack_words(event.words):
                said = {"message_offset": entry_of(word), "size": size_of(word), "count": 1}
                said |= {"container": containers.get(event.producer)}
                yield row | said | {"queue": names.queue(event.queues[0]) if len(event.queues) == 1 else None}
            return
        case Damaged() | Discarded() | Due() | Scheduled() | SetAside():
            queues = event.queues if isinstance(event, Scheduled) else (event.queue,)
            for word in unpack_words(event.words):
                said = {"message_offset": entry_of(word), "size": size_of(word), "count": 1}
                yield row | said | {"queue": names.queue(queues[0]) if len(queues) == 1 else None}
            return
        case ProducerAttached() | ConsumerAttached():
            row |= {"container": event.container}
        case ProducerDetached() | Chunked():
            row |= {"container": containers.get(event.producer)}
        case LinkSuspended() | LinkResumed() | LinkEnded():
            queue = links.get(event.link)
            row |= {"container": containers.get(event.link), "queue": names.queue(queue) if queue else None}
        case TagsKept():
            row |= {"container": containers.get(event.producer)}
        case ConsumerDetached():
            row |= {"container": containers.get(event.consumer), "queue": names.queue(links[event.consumer])}
    if isinstance(event, Chunked):
        row["size"] = row["size"] or -1
    if isinstance(event, QueueDeclared):
        row["queue"] = event.name
    elif isinstance(event, Attached | Detached):
        row["queue"] = names.queue(event.member)
    elif isinstance(event, Grouped | Identified | Keyed | Prioritized):
        row["queue"] = names.queue(event.queues[0]) if len(event.queues) == 1 else None
    elif getattr(event, "queue", 0) and row["queue"] is None:
        row["queue"] = names.queue(event.queue)  # type: ignore[union-attr]  # as just asked
    yield row


def _comparable(row: dict[str, Any]) -> dict[str, Any]:
    """The piece of a large message says its size here, and is not told by the event; times are numbers there."""
    time_us = row["timestamp"] if isinstance(row["timestamp"], int) else round(row["timestamp"].timestamp() * 1e6)
    return row | {"timestamp": time_us, "size": None if row["type"] == "chunk" else row["size"]}


def test_rows_are_what_the_events_say(lived: Path) -> None:
    """The columns made by arrays are those that the events tell one by one."""
    with open_history(str(lived)) as log:
        assert len(log.segments) > 1
        found = [_comparable(row) for row in rows(log)]
    expected = [_comparable(row) for row in told(lived)]
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert one == other


def test_each_segment_can_be_read_alone(lived: Path) -> None:
    """Names that other segments tell are found, whichever segment is read first."""
    with open_history(str(lived)) as log:
        forwards = rows(log)
        backwards: list[dict[str, Any]] = []
        for segment in reversed(log.segments):
            mine = [
                row for batch in event_columns(segment, _COLUMNS, segments=log.segments) for row in batch.to_pylist()
            ]
            backwards = mine + backwards
    assert forwards == backwards


def test_a_selection_leaves_out_nothing_else(lived: Path) -> None:
    """Offsets, times, types and queues select the rows that a filter over all rows would."""
    with open_history(str(lived)) as log:
        everything = rows(log)
        middle = everything[len(everything) // 2]
        begin = middle["timestamp"].timestamp() * 1e6
        for selection, keeps in (
            (Selection(first=middle["offset"]), lambda row: row["offset"] >= middle["offset"]),
            (Selection(end=middle["offset"]), lambda row: row["offset"] < middle["offset"]),
            (Selection(begin_us=round(begin)), lambda row: row["timestamp"] >= middle["timestamp"]),
            (Selection(end_us=round(begin)), lambda row: row["timestamp"] < middle["timestamp"]),
            (Selection(types=frozenset({"settled", "chunk"})), lambda row: row["type"] in {"settled", "chunk"}),
            (Selection(queues=frozenset({"two"})), lambda row: row["queue"] == "two"),
        ):
            assert rows(log, selection=selection) == [row for row in everything if keeps(row)]


def test_columns_come_as_asked(lived: Path) -> None:
    """Fewer columns, in another order, say the same."""
    with open_history(str(lived)) as log:
        asked = ("queue", "offset", "size")
        assert rows(log, asked) == [{name: row[name] for name in asked} for row in rows(log)]


def test_nothing_is_told_beyond_the_end(lived: Path) -> None:
    """What is not durable yet is not told."""
    with open_history(str(lived)) as log:
        everything = rows(log)
        end = everything[-5]["offset"]
        cut = [limited(segment, end=end) for segment in log.segments]
        found = [
            row for one in cut for batch in event_columns(one, _COLUMNS, segments=cut) for row in batch.to_pylist()
        ]
    assert found == [row for row in everything if row["offset"] < end]


def test_an_unknown_column_is_named() -> None:
    """The error for an unknown column names the known ones."""
    with pytest.raises(ToolError, match="no such column of history: colour: expected offset, timestamp"):
        schema_of(["offset", "colour"])


def test_bodies_come_whole(lived: Path) -> None:
    """A body is what was published, that of a large message put together from its pieces."""
    with open_history(str(lived)) as log:
        found = rows(log, ("type", "size", "body"), selection=Selection(types=frozenset({"published"})))
    assert any(row["size"] > 1500 for row in found)
    for row in found:
        # A size is rounded up to 11 significant bits.
        assert len(row["body"]) in range(row["size"] - row["size"] // 1024 - 1, row["size"] + 1)
        assert row["body"][:8].isdigit()


def test_large_bodies_are_cut_and_their_batches_are_bounded(lived: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A record batch has large messages of a limited size, or one of them; no row is lost, in the same order."""
    columns, selection = ("offset", "size", "body"), Selection(types=frozenset({"published"}))
    with open_history(str(lived)) as log:
        whole = rows(log, columns, selection=selection)
        monkeypatch.setattr(arrow_table, "WHOLE_BYTES_MAX", 2000)
        monkeypatch.setattr(arrow_table, "_BYTES_MAX", 100)
        found = [
            batch.to_pylist()
            for segment in log.segments
            for batch in event_columns(segment, columns, segments=log.segments, selection=selection)
        ]
    for batch in found:
        sizes = [min(row["size"], 2000) for row in batch if row["size"] > 100]
        assert sum(sizes) <= 2000 or len(sizes) == 1
    flat = [row for batch in found for row in batch]
    assert [row["offset"] for row in flat] == [row["offset"] for row in whole]
    assert any(row["size"] > 2000 for row in flat)
    for row, expected in zip(flat, whole, strict=True):
        is_cut = row["size"] > 2000
        assert (len(row["body"]) < len(expected["body"])) is is_cut
        assert expected["body"].startswith(row["body"])


def _flip(path: str, position: int) -> None:
    with Path(path).open("r+b") as file:
        file.seek(position)
        byte = file.read(1)
        file.seek(position)
        file.write(bytes([byte[0] ^ 1]))


def test_damage_is_an_error_or_a_row(tmp_path: Path) -> None:
    """A damaged head ends the read with file and position; as rows, all other events are there and one tells of it."""
    life = Lived(tmp_path / "data", 5)
    life.live(200)
    life.settle_down()
    life.end()
    with open_history(life.directory) as log:
        whole = rows(log)
        segment = log.segments[0]
        with open_reader(life.directory) as reader:
            batches = list(reader.batches())
        hurt = next(one.batch for one in batches[3:] if one.batch.header.count)
        path = f"{life.directory}/segments/{segment.file_id:016x}.log"
        _flip(path, hurt.position + 70)
        with pytest.raises(DamageError, match=f"{segment.file_id:016x}.log is damaged at position {hurt.position}"):
            list(event_columns(segment, _COLUMNS, segments=log.segments))
        found = rows(log, damaged_rows=True)
    gaps = [row for row in found if row["type"] == UNREADABLE]
    assert [(row["offset"], row["size"]) for row in gaps] == [(hurt.header.base_offset, hurt.header.length)]
    lost = range(hurt.header.base_offset, hurt.next_offset)
    expected = [row["offset"] for row in whole if row["offset"] not in lost]
    assert [row["offset"] for row in found if row["type"] != UNREADABLE] == expected


def test_a_damaged_body_is_an_error_or_null(tmp_path: Path) -> None:
    """Bodies are held against their checksum when they are asked for, and not before."""
    life = Lived(tmp_path / "data", 6)
    life.live(200)
    life.settle_down()
    life.end()
    with open_reader(life.directory) as reader:
        hurt = next(one.batch for one in reader.batches() if one.batch.header.body_bytes > 100)
        files = {info.file_id: info.path for info in reader.segments()}
    with open_history(life.directory) as log:
        whole = rows(log)
        _flip(files[hurt.file_id], hurt.position + hurt.header.head_bytes + 4)
        assert rows(log, ("offset", "size")) == [{name: row[name] for name in ("offset", "size")} for row in whole]
        with pytest.raises(DamageError, match="body CRC"):
            rows(log, ("offset", "body"))
        published = Selection(types=frozenset({"published"}))
        found = rows(log, ("offset", "body"), damaged_rows=True, selection=published)
    lost = range(hurt.header.base_offset, hurt.next_offset)
    assert [row["offset"] in lost for row in found] == [row["body"] is None for row in found]


def test_batches_are_bounded(lived: Path) -> None:
    """No record batch is of a size that Spark would be slow with."""
    with open_history(str(lived)) as log:
        for segment in log.segments:
            batches: list[pa.RecordBatch] = list(event_columns(segment, _COLUMNS, segments=log.segments))
            assert all(0 < batch.num_rows <= 32_768 for batch in batches)
