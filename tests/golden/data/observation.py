"""What is found in a data directory, as JSON that two versions of the project can be compared by.

    questions   {vhost: {moments, browsed, stories, received}}   what is asked beyond what every log has
    answers     {vhost: {log, verify, batches, records, history, events, state, snapshots, moments,
                         messages, stories, browsed}}

Rule 1. Only facts are compared: numbers, names, bytes and the words of a file format. What is written for a person
        (`words`) may change.
Rule 2. A state is compared by its snapshot image, whose keys are those of the file format. A queue's words are joined,
        since the image cuts them into runs as it likes; keys that a later version adds are left out, and so is
        an entry that has no other data.
Rule 3. Records are counted by the numbers of their types, which never change.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from hashlib import sha256
from itertools import accumulate
from pathlib import Path
from struct import Struct
from typing import Any, Final

from click.testing import CliRunner

from ambermq.engine.entries.entry import PLAIN
from ambermq.engine.history.past import Past, open_past
from ambermq.engine.loop.recovery import fold_log
from ambermq.engine.model.state import State
from ambermq.engine.snapshots.files import check_snapshot, load_snapshot
from ambermq.engine.snapshots.state_codec import image_of, state_of
from ambermq.log.config import LogConfig
from ambermq.log.errors import DamageError, LogError
from ambermq.log.format.checksum import crc32c
from ambermq.log.manifest.manifest import Snapshot
from ambermq.log.manifest.vhost_directories import VhostDirectories
from ambermq.log.read.body_store import DAMAGED
from ambermq.log.read.log_reader import open_reader
from ambermq.log.recovery.recovery import Recovery
from ambermq.log.recovery.verify import verify
from ambermq.log.storage.disk import DiskStorage
from ambermq.snapshot.block_file import HEADER_BYTES, Block, BlockKind, decode_header, read_blocks
from ambermq.tools.cli import main

__all__ = [
    "Answers",
    "Questions",
    "command",
    "digest_of",
    "image",
    "known_fields",
    "messages",
    "observe",
    "restored",
    "snapshot_file",
    "vhost_path",
]

Questions = Mapping[str, Mapping[str, Any]]
"""Virtual host to `moments` (offsets), `browsed` ([queue, offset] each), `stories` (ids), `received` (queue: count)."""
Answers = dict[str, dict[str, Any]]
"""Virtual host to what was found."""

_NOW_US: Final = 1 << 60
"""Later than anything in a log; a moment before it is never in the future."""
_DAMAGED: Final = 5
"""The exit code where a message that is shown cannot be read."""
_NOT_FOUND: Final = 6
"""The exit code where no message has an id, as that of a lost one."""
_RUN: Final = Struct("<qqII")
_IDS: Final = 8
"""The list of message-ids, whose words are no messages."""
_WORD: Final = Struct("<Q")
_KEYED: Final = 13
_STORY: Final = ("message_id", "offset", "bytes", "durable", "horizon", "now")
_STEP: Final = ("what", "queue", "offset", "time_us", "attempt", "delivery_count", "by", "attached", "way")
_ROW: Final = (
    "offset",
    "time",
    "state",
    "consumer",
    "delivery_count",
    "bytes",
    "message_id",
    "header",
    "properties",
    "application_properties",
    "annotations",
    "body",
)


def observe(directory: Path, questions: Questions, fields: Iterable[str] | None = None) -> Answers:
    """Return what is in each virtual host of a stopped broker's directory; changes nothing but lock files.

    `fields` are those of an image that count, None for all.
    """
    known = None if fields is None else frozenset(fields)
    return {name: _observed(vhost_path(directory, name), asked, known) for name, asked in questions.items()}


def known_fields(directory: Path, questions: Questions) -> list[str]:
    """Return the paths of all keys in the images of all states that are asked about."""
    fields: set[str] = set()
    for name, asked in questions.items():
        with open_past(str(vhost_path(directory, name)), now_us=_NOW_US) as past:
            moments = (past.state_at(one) for one in asked["moments"])
            states = [*moments, *(state for _, state in _snapshot_states(past))]
        fields.update(*(_fields_of(image(state)) for state in states))
    return sorted(fields)


def vhost_path(directory: Path, name: str) -> Path:
    """Return the directory of a virtual host's log."""
    path = VhostDirectories(DiskStorage(), str(directory)).path_of(name)
    assert path is not None
    return Path(path)


def command(*arguments: str | int | Path, exit_codes: tuple[int, ...] = (0,)) -> str:
    """Run `ambermq` in this process, and return what it prints; AssertionError where it exits otherwise."""
    result = CliRunner().invoke(main, [str(argument) for argument in arguments], prog_name="ambermq")
    assert result.exit_code in exit_codes, (arguments, result.exit_code, result.stderr)
    return result.stdout


def _observed(path: Path, asked: Mapping[str, Any], fields: frozenset[str] | None) -> dict[str, Any]:
    state, log = _recovered(path)
    with open_past(str(path), now_us=_NOW_US) as past:
        found = {
            "log": log | _manifest(past),
            "verify": _verified(path),
            "batches": _batch_counts(path),
            "records": _record_counts(path, 0),
            "history": _record_counts(path, past.horizon.offset),
            "events": _first_events(path),
            "state": {"digest": digest_of(state, fields), "image": image(state, fields)},
            "snapshots": _snapshots(past, fields),
            "moments": {str(one): digest_of(past.state_at(one), fields) for one in asked["moments"]},
            "messages": messages(past, state),
        }
    return found | {
        "stories": {one: _stories(path, one) for one in asked["stories"]},
        "browsed": [_browsed(path, queue, offset) for queue, offset in asked["browsed"]],
    }


def restored(backup: Path, directory: Path, fields: Iterable[str] | None = None) -> dict[str, Any]:
    """Restore a backup to a new directory, and return the digest of its state and the messages."""
    command("snapshot", "restore", backup, "--data", directory)
    state, _ = _recovered(directory)
    with open_past(str(directory), now_us=_NOW_US) as past:
        return {"digest": digest_of(state, fields), "messages": messages(past, state)}


def snapshot_file(path: Path, fields: Iterable[str] | None = None) -> dict[str, Any]:
    """Return what a snapshot file says of itself, and the digest of its state."""
    content = path.read_bytes()

    def read(length: int, position: int) -> bytes:
        return content[position : position + length]

    header = decode_header(content[:HEADER_BYTES], crc32c)
    state = state_of(read_blocks(read, crc32c))
    return {
        "log_id": header.log_id.hex(),
        "epoch": header.epoch,
        "end": header.end,
        "time_us": header.time_us,
        "digest": digest_of(state, fields),
    }


def _recovered(path: Path) -> tuple[State, dict[str, Any]]:
    """Return what a broker begins with, and where its log ends; the log stays as it is."""
    recovery = Recovery.open(DiskStorage(), str(path), LogConfig(), _NOW_US)
    try:
        state = fold_log(recovery)
        return state, {"durable_end": recovery.durable_end, "valid_end": recovery.valid_end}
    finally:
        recovery.close()


def _manifest(past: Past) -> dict[str, Any]:
    manifest = past.reader.manifest
    return {
        "log_id": manifest.log_id.hex(),
        "epoch": manifest.epoch,
        "generation": manifest.generation,
        "start_offset": manifest.start_offset,
        "horizon": [past.horizon.offset, past.horizon.time_us],
        "sealed": [[one.file_id, one.base_offset, one.next_offset, one.size] for one in manifest.sealed],
    }


def _verified(path: Path) -> dict[str, Any]:
    storage = DiskStorage()
    report = verify(str(path), check_snapshot=partial(check_snapshot, storage, str(path)), storage=storage)
    return {
        "damage": _place(path, report.damage),
        "batches": report.batch_count,
        "records": report.record_count,
        "indexes": report.index_count,
        "snapshots": report.snapshot_count,
        "unknown_files": sorted(Path(one).relative_to(path).as_posix() for one in report.unknown_files),
    }


def _place(path: Path, damage: LogError | None) -> list[Any] | None:
    """Return file and position of a damage, without the words about it."""
    if damage is None:
        return None
    assert isinstance(damage, DamageError)
    return [Path(damage.file).relative_to(path).as_posix(), damage.position]


def _batch_counts(path: Path) -> dict[str, int]:
    """Return the number of batches by their flags: 1 KEPT, 2 COMPRESSED."""
    with open_reader(str(path)) as reader:
        kinds = Counter(batch.batch.header.flags for batch in reader.batches())
    return {str(flags): kinds[flags] for flags in sorted(kinds)}


def _record_counts(path: Path, first: int) -> dict[str, dict[str, int]]:
    """Return the number of records by type and flags from an offset on."""
    kinds: defaultdict[int, Counter[int]] = defaultdict(Counter)
    with open_reader(str(path)) as reader:
        for batch in reader.batches(first):
            for record in batch.records():
                if record.offset >= first:
                    kinds[record.type][record.flags] += 1
    return {str(kind): {str(flags): kinds[kind][flags] for flags in sorted(kinds[kind])} for kind in sorted(kinds)}


def _first_events(path: Path) -> dict[str, dict[str, Any]]:
    """Return the first event of each type that history has, as `ambermq log dump` has it."""
    firsts: dict[str, dict[str, Any]] = {}
    for line in command("log", "dump", "--data", path, "--output", "json").splitlines():
        event = json.loads(line)
        firsts.setdefault(event["type"], {name: value for name, value in event.items() if name != "words"})
    return firsts


def _snapshots(past: Past, fields: frozenset[str] | None) -> dict[str, dict[str, Any]]:
    return {
        one.name: {"end": one.end, "time_us": one.time_us, "size": one.size, "digest": digest_of(state, fields)}
        for one, state in _snapshot_states(past)
    }


def _snapshot_states(past: Past) -> Iterator[tuple[Snapshot, State]]:
    reader = past.reader
    for one in reader.manifest.snapshots:
        yield one, load_snapshot(reader.storage, reader.directory, reader.manifest, one)


def messages(past: Past, state: State) -> dict[str, list[Any]]:
    """Return the length and the SHA-256 of every message that is on a queue of a state, by its offset."""
    told: dict[str, list[Any]] = {}
    columns = {offset: entry for queue in state.queues.values() for offset, entry in queue.entries.items()}
    for offset in sorted(set(_live_offsets(state))):
        event, entry = past.event_at(offset), columns.get(offset, PLAIN)
        body = past.body(entry.origin or offset, entry.chunks or getattr(event, "chunks", ()))
        told[str(offset)] = ["damaged"] if body is DAMAGED else [len(body), sha256(body).hexdigest()]
    return told


def _live_offsets(state: State) -> Iterator[int]:
    for (_, _, kind), words in _words(image_of(state)).items():
        # The words with keys are in other lists too.
        if kind not in (_KEYED, _IDS):
            yield from (word >> 16 for (word,) in _WORD.iter_unpack(words))


def digest_of(state: State, fields: Iterable[str] | None = None) -> str:
    """Return the SHA-256 of a state's image."""
    text = json.dumps(image(state, fields), sort_keys=True, separators=(",", ":"))
    return sha256(text.encode()).hexdigest()


def image(state: State, fields: Iterable[str] | None = None) -> dict[str, Any]:
    """Return what a snapshot of a state holds, block kind to rows; `fields` are those that count, None for all."""
    known = None if fields is None else frozenset(fields)
    blocks = list(image_of(state))
    rows: defaultdict[str, list[Any]] = defaultdict(list)
    for block in blocks:
        if block.kind not in (BlockKind.WORDS, BlockKind.DUES, BlockKind.EXPIRIES, BlockKind.ENTRIES):
            content = json.loads(block.payload)
            rows[str(int(block.kind))] += content if isinstance(content, list) else [content]
    rows[str(int(BlockKind.WORDS))] = [
        [*key, len(words) // _WORD.size, sha256(words).hexdigest()] for key, words in _words(blocks).items()
    ]
    rows[str(int(BlockKind.ENTRIES))] = entries = list(_entries(blocks, known))
    counts = Counter(row["queue"] for row in entries)
    for row in rows.get(str(int(BlockKind.QUEUES)), ()):
        row["entries"] = counts[row["id"]]
    found: dict[str, Any] = _known(dict(sorted(rows.items())), "", known)
    return found


def _words(blocks: Iterable[Block]) -> dict[tuple[int, int, int], bytes]:
    """Return the words of each list of a queue, by queue, consumer and kind of list."""
    lists: defaultdict[tuple[int, int, int], bytes] = defaultdict(bytes)
    for payload in (block.payload for block in blocks if block.kind == BlockKind.WORDS):
        position = 0
        while position < len(payload):
            queue, consumer, kind, count = _RUN.unpack_from(payload, position)
            position += _RUN.size
            lists[queue, consumer, kind] += payload[position : position + count * _WORD.size]
            position += count * _WORD.size
    return dict(sorted(lists.items()))


def _entries(blocks: Iterable[Block], fields: frozenset[str] | None) -> Iterator[dict[str, Any]]:
    """Yield an entry each, however the image joins those that are alike, and wherever it has the times of one."""
    queues = state_of(blocks).queues.values()
    times = [((queue.id, entry), "due_us", due_us) for queue in queues for entry, due_us in queue.dues.items()]
    times += [
        ((queue.id, entry), "expires_us", time_us) for queue in queues for entry, time_us in queue.expiries.items()
    ]
    found = []
    for block in blocks:
        if block.kind == BlockKind.ENTRIES:
            for row in json.loads(block.payload):
                found += [(row["queue"], offset, row["entry"]) for offset in accumulate(row["offsets"])]
    known = {(queue, offset): entry for queue, offset, entry in found}
    for key, name, time_us in times:
        known[key] = known.get(key, _PLAIN_ENTRY) | {name: time_us}
    found = [(*key, entry) for key, entry in known.items()]
    for queue, offset, entry in sorted(found, key=lambda one: one[:2]):
        if fields is None or (counted := _known(entry, _ENTRY_PATH, fields)) == entry or counted != _PLAIN_ENTRY:
            yield {"queue": queue, "offset": offset, "entry": entry}


_ENTRY_PATH: Final = f"/{int(BlockKind.ENTRIES)}/entry"
_PLAIN_ENTRY: Final = {"count": 0, "excluded": [], "annotations": [], "chunks": []}


def _fields_of(value: Any, path: str = "") -> set[str]:
    if isinstance(value, list):
        return set().union(*(_fields_of(one, path) for one in value))
    if not isinstance(value, dict):
        return set()
    paths = {f"{path}/{name}" for name in value}
    return paths.union(*(_fields_of(one, f"{path}/{name}") for name, one in value.items()))


def _known(value: Any, path: str, fields: frozenset[str] | None) -> Any:
    """Return a value of an image with the keys that count."""
    if fields is None:
        return value
    if isinstance(value, list):
        return [_known(one, path, fields) for one in value]
    if not isinstance(value, dict):
        return value
    paths = {name: f"{path}/{name}" for name in value}
    return {name: _known(one, paths[name], fields) for name, one in value.items() if paths[name] in fields}


def _stories(path: Path, message_id: str) -> list[dict[str, Any]]:
    asked = ("history", "message", message_id, "--data", path, "--output", "json")
    stories = json.loads(command(*asked, exit_codes=(0, _NOT_FOUND)) or "[]")
    return [_facts(one, _STORY) | {"events": [_facts(step, _STEP) for step in one["events"]]} for one in stories]


def _browsed(path: Path, queue: str, offset: int) -> list[dict[str, Any]]:
    asked = ("queue", "browse", queue, "--at", offset, "--data", path, "--output", "json")
    rows = json.loads(command(*asked, exit_codes=(0, _DAMAGED)))
    return [_facts(row, _ROW) for row in rows]


def _facts(values: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    return {name: values[name] for name in names if name in values}
