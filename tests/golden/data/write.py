"""Write a golden data directory with the present version: `python -m tests.golden.data.write NAME`.

    tests/golden/data/NAME/data.tar.zst       the data directory of a broker that was killed, unrecovered
    tests/golden/data/NAME/nightly.backup     a backup of its default virtual host
    tests/golden/data/NAME/nightly.snapshot   the snapshot that the backup is of, as a file
    tests/golden/data/NAME/expected.json      what is found in them, see observation.py

NAME is the version, and a word after `-` for a second one. Before a release it is the version that comes.

Rule: a directory is written once, by the version whose files it holds, and never again. A version that writes other
files adds a directory of its own.
"""

import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

from ambermq.engine.events import Published
from ambermq.engine.events.messages.fan_out import FANOUT
from ambermq.engine.events.messages.published import DURABLE, LARGE
from ambermq.engine.events.registry import NUMBERS, TYPE_NAMES
from ambermq.log.format.batch import COMPRESSED, KEPT
from ambermq.log.manifest.manifest import snapshot_path
from ambermq.log.read.log_reader import open_reader
from tests.golden.data.archive import pack, unpack
from tests.golden.data.life import Life
from tests.golden.data.observation import (
    Answers,
    command,
    known_fields,
    observe,
    restored,
    snapshot_file,
    vhost_path,
)
from tests.golden.data.serving import delivered
from tests.golden.data.stories import BROWSED, RESUMABLE, STORIES

__all__ = ["main", "write"]

_HERE: Final = Path(__file__).parent
_RECEIVED_MAX: Final = 20


def write(directory: Path) -> None:
    """Live a life and put what it leaves into `directory`, which must not exist."""
    directory.mkdir()
    try:
        with tempfile.TemporaryDirectory() as place:
            _write(directory, Path(place))
    except BaseException:
        shutil.rmtree(directory)
        raise


def _write(directory: Path, place: Path) -> None:
    life = Life(place)
    life.run()
    pack(life.directory, directory / "data.tar.zst")
    shutil.copyfile(life.backup, directory / "nightly.backup")
    shutil.copyfile(_snapshot_file(life.directory, "nightly"), directory / "nightly.snapshot")
    copy = place / "copy"
    unpack(directory / "data.tar.zst", copy)
    questions = {name: _questions(vhost_path(copy, name), name) for name in STORIES}
    answers = observe(copy, questions)
    _check(answers, life)
    expected = {
        "fields": known_fields(copy, questions),
        "questions": questions,
        "answers": answers,
        "backup": restored(life.backup, place / "restored"),
        "snapshot": snapshot_file(directory / "nightly.snapshot"),
        "delivered": delivered(copy, questions),
    }
    _check_backup(expected)
    (directory / "expected.json").write_text(json.dumps(expected, indent=1, ensure_ascii=False) + "\n")


def _snapshot_file(directory: Path, name: str) -> Path:
    with open_reader(str(directory)) as reader:
        (file_id,) = (one.file_id for one in reader.manifest.snapshots if one.name == name)
    return Path(snapshot_path(str(directory), file_id))


def _questions(path: Path, vhost: str) -> dict[str, Any]:
    """Return what to ask of a log: moments over all of its history, queues then, stories, what waits at the end."""
    events = [json.loads(line) for line in command("log", "dump", "--data", path, "--output", "json").splitlines()]
    offsets = [event["offset"] for event in events]
    damaged = [first for event in events if event["type"] == "damaged" for first, _ in event["offsets"]]
    moments = sorted({offsets[len(offsets) * part // 8] for part in range(1, 8)} | {offsets[-1]})
    browsed = [[name, moment] for moment in moments[::2] for name in _depths(path, moment) if name in BROWSED]
    depths = _depths(path, offsets[-1])
    return {
        "moments": moments,
        "browsed": browsed,
        "stories": [*STORIES[vhost], *(f"offset:{one}" for one in damaged)],
        "received": {
            name: min(depth, _RECEIVED_MAX)
            for name, depth in depths.items()
            if depth and name[0] != "$" and name != RESUMABLE
        },
    }


def _depths(path: Path, moment: int) -> dict[str, int]:
    rows = json.loads(command("queue", "list", "--at", moment, "--data", path, "--output", "json"))
    return {row["name"]: row["available"] + row["acquired"] for row in rows}


def _check(answers: Answers, life: Life) -> None:
    """Raise AssertionError where a record type is missing, or a message holds other bytes than were sent."""
    kinds = {int(kind) for one in answers.values() for kind in one["history"]}
    assert kinds == TYPE_NAMES.keys(), f"no record of {[TYPE_NAMES[kind] for kind in TYPE_NAMES.keys() - kinds]}"
    flags = {int(flag) for one in answers.values() for flag in one["batches"]}
    assert KEPT | COMPRESSED in flags, f"no compressed batch: {flags}"
    records = answers["default"]["records"][str(NUMBERS[Published])]
    assert {DURABLE, DURABLE | LARGE, DURABLE | FANOUT, LARGE | FANOUT} <= {int(flag) for flag in records}, records
    for name, one in answers.items():
        unknown = [offset for offset, (*_, digest) in one["messages"].items() if digest not in life.sent]
        assert not unknown, f"messages of {name} that were not sent: {unknown}"


def _check_backup(expected: dict[str, Any]) -> None:
    """Raise AssertionError where the backup or the snapshot file differs from the snapshot in the data directory."""
    digest = expected["answers"]["default"]["snapshots"]["nightly"]["digest"]
    assert expected["backup"]["digest"] == expected["snapshot"]["digest"] == digest
    stored, alive = expected["backup"]["messages"], expected["answers"]["default"]["messages"]
    common = stored.keys() & alive.keys()
    assert common
    assert all(stored[offset] == alive[offset] for offset in common)


def main() -> int:
    """Write the directory that the command line names; return the exit code."""
    (name,) = sys.argv[1:]
    directory = _HERE / name
    if directory.exists():
        print(f"{directory} exists: a golden directory is never written again", file=sys.stderr)
        return 1
    write(directory)
    print(f"{directory}: {sum(one.stat().st_size for one in directory.iterdir()):,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
