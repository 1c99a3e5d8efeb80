"""The two disks behind the seam: alike in what they answer, and the simulated one in what it forgets."""

import errno
import os
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ambermq.log.errors import LockedError
from ambermq.log.storage.disk import DiskStorage
from ambermq.log.storage.interface import File, Storage
from tests.log.simulated import SECTOR_BYTES, SimulatedStorage


@pytest.fixture(params=["disk", "simulated"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Storage, str]:
    if request.param == "disk":
        return DiskStorage(), str(tmp_path / "data")
    return SimulatedStorage(), "/data"


def _make(storage: Storage, directory: str, name: str = "file") -> tuple[File, str]:
    storage.makedirs(directory)
    return storage.open(f"{directory}/{name}", create=True), f"{directory}/{name}"


def test_a_write_of_many_buffers_reads_back_as_one(place: tuple[Storage, str]) -> None:
    """Buffers follow each other from the position on, however many and of whatever kind."""
    file, _ = _make(*place)
    pieces = [bytes([number % 256]) * (number % 7) for number in range(3000)]
    file.write([memoryview(piece) if len(piece) % 2 else bytearray(piece) for piece in pieces], 100)
    whole = b"".join(pieces)
    assert file.read(len(whole) + 200, 0) == bytes(100) + whole
    assert file.size() == 100 + len(whole)
    file.close()


def test_a_read_past_the_end_is_short(place: tuple[Storage, str]) -> None:
    """Fewer bytes come back only at the end of the file, by the page cache or past it."""
    storage, directory = place
    file, path = _make(storage, directory)
    file.write([b"0123456789"], 4090)
    file.sync()
    for direct in (False, True):
        other = storage.open(path, direct=direct)
        assert other.read(100, 4095) == b"56789"
        assert other.read(3, 4091) == b"123"
        assert other.read(10, 9000) == b""
        assert other.read(0, 0) == b""
        other.close()
    file.close()


@pytest.mark.parametrize("read_ahead", [True, False])
def test_a_long_read_is_whole_to_the_end_of_the_file(place: tuple[Storage, str], read_ahead: bool) -> None:
    """It is read in parts, and gives the same bytes as a short one."""
    storage, directory = place
    file, path = _make(storage, directory)
    content = random.Random(1).randbytes(600_000)
    file.write([content], 0)
    other = storage.open(path, read_ahead=read_ahead)
    assert other.read(550_000, 7) == content[7:550_007]
    assert other.read(1 << 20, 100) == content[100:]
    assert other.read(1 << 20, 600_000) == b""
    other.close()
    file.close()


def test_a_file_without_read_ahead_tells_the_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a small read is one on the disk, too."""
    advice: list[int] = []
    monkeypatch.setattr("os.posix_fadvise", lambda _fd, _start, _length, what: advice.append(what))
    storage = DiskStorage()
    _make(storage, str(tmp_path))[0].close()
    storage.open(str(tmp_path / "file")).close()
    assert not advice
    storage.open(str(tmp_path / "file"), read_ahead=False).close()
    assert advice == [os.POSIX_FADV_RANDOM]


def test_allocated_space_reads_as_zeros(place: tuple[Storage, str]) -> None:
    """Both ways to allocate give zeros and lengthen the file, and keep what was there."""
    file, _ = _make(*place)
    file.write([b"head"], 0)
    file.allocate(4, 10_000, zero=True)
    file.allocate(10_004, 5_000, zero=False)
    assert file.read(20_000, 0) == b"head" + bytes(15_000)
    file.close()


def test_read_now_answers_in_full_or_not_at_all(place: tuple[Storage, str]) -> None:
    """What is in the page cache comes back at once; a range that is not wholly there is None."""
    file, _ = _make(*place)
    file.write([b"x" * 5000], 0)
    assert file.read_now(1000, 10) in {b"x" * 1000, None}
    assert file.read_now(1000, 4500) is None
    file.datasync()
    file.drop_cache(0, 0)
    assert file.read(1000, 10) == b"x" * 1000
    file.close()


def test_names_come_and_go(place: tuple[Storage, str]) -> None:
    """A rename takes the place of what had the name; listings are sorted; what is missing raises FileNotFoundError."""
    storage, directory = place
    for name in ("b", "a"):
        file, _ = _make(storage, directory, name)
        file.write([name.encode()], 0)
        file.close()
    storage.makedirs(f"{directory}/below/more")
    assert storage.listdir(directory) == ["a", "b", "below"]
    storage.rename(f"{directory}/a", f"{directory}/b")
    storage.sync_directory(directory)
    assert storage.listdir(directory) == ["b", "below"]
    assert storage.size(f"{directory}/b") == 1
    assert storage.open(f"{directory}/b").read(9, 0) == b"a"
    storage.unlink(f"{directory}/b")
    assert not storage.exists(f"{directory}/b")
    for call in (storage.open, storage.unlink, storage.size):
        with pytest.raises(FileNotFoundError):
            call(f"{directory}/b")


def test_the_lock_is_held_once_and_says_by_whom(place: tuple[Storage, str]) -> None:
    """A second lock raises an error with the text of the first process; after a release the lock is free."""
    storage, directory = place
    storage.makedirs(directory)
    lock = storage.lock(f"{directory}/lock")
    lock.write("17 amqp://127.0.0.1:5672")
    with pytest.raises(LockedError, match="17 amqp://127") as refusal:
        storage.lock(f"{directory}/lock")
    assert refusal.value.holder == "17 amqp://127.0.0.1:5672"
    lock.release()
    storage.lock(f"{directory}/lock").release()


def test_free_bytes_are_a_number(place: tuple[Storage, str]) -> None:
    """Space is told in bytes."""
    storage, directory = place
    storage.makedirs(directory)
    assert storage.free_bytes(directory) > 0


@given(
    st.lists(st.tuples(st.integers(0, 3000), st.binary(min_size=1, max_size=2000), st.booleans()), max_size=12),
    st.integers(0, 2**32),
)
@settings(max_examples=200, deadline=None)
def test_a_crash_keeps_what_was_synced_and_invents_nothing(steps: list[tuple[int, bytes, bool]], seed: int) -> None:
    """After a crash each sector is as it was at the last sync, or in a version that it had since."""
    storage = SimulatedStorage()
    file, path = _make(storage, "/data")
    storage.sync_directory("/data")
    legal: dict[int, set[bytes]] = {}
    for position, content, is_synced in steps:
        file.write([content], position)
        if is_synced:
            file.datasync()
            legal.clear()
        _note_sectors(legal, storage.content(path))
    storage.crash(random.Random(seed))
    survived = storage.content(path)
    for sector in range(-(-len(survived) // SECTOR_BYTES)):
        content = bytes(survived[sector * SECTOR_BYTES :][:SECTOR_BYTES])
        # The file's size survives on its own, and may cut its last sector anywhere.
        versions = legal.get(sector, set()) | {bytes(SECTOR_BYTES)}
        assert content in {version[: len(content)] for version in versions}
    if steps and steps[-1][2]:
        assert legal == {number: {content} for number, content in _sectors(survived)}


def _sectors(content: bytearray) -> list[tuple[int, bytes]]:
    return [
        (start // SECTOR_BYTES, bytes(content[start : start + SECTOR_BYTES]).ljust(SECTOR_BYTES, b"\0"))
        for start in range(0, len(content), SECTOR_BYTES)
    ]


def _note_sectors(legal: dict[int, set[bytes]], content: bytearray) -> None:
    for number, sector in _sectors(content):
        legal.setdefault(number, set()).add(sector)


def test_a_crash_reaches_both_ends_and_the_middle() -> None:
    """Unsynced sectors are lost in some crashes, kept in others, and torn in others."""
    found = set()
    for seed in range(60):
        storage = SimulatedStorage()
        file, path = _make(storage, "/data")
        storage.sync_directory("/data")
        file.allocate(0, 2 * SECTOR_BYTES, zero=True)
        file.datasync()
        file.write([b"n" * 2 * SECTOR_BYTES], 0)
        storage.crash(random.Random(seed))
        found.add(bytes(storage.content(path)[::SECTOR_BYTES]))
    assert found == {b"nn", b"n\0", b"\0n", b"\0\0"}


def test_an_unsynced_rename_is_lost_or_kept_whole() -> None:
    """After a crash the target is the old file or the new one; synced, it is the new one for sure."""
    found = {False: set(), True: set()}
    for seed in range(40):
        for is_synced in (False, True):
            storage = SimulatedStorage()
            for name, text in (("old", b"old"), ("new", b"new")):
                file, _ = _make(storage, "/data", name)
                file.write([text], 0)
                file.sync()
            storage.sync_directory("/data")
            storage.rename("/data/new", "/data/old")
            if is_synced:
                storage.sync_directory("/data")
            storage.crash(random.Random(seed))
            found[is_synced].add(bytes(storage.content("/data/old")))
    assert found == {False: {b"old", b"new"}, True: {b"new"}}


def test_a_failed_sync_leaves_the_cache_lying() -> None:
    """After a failed sync a second one succeeds and proves nothing; only a direct read tells."""
    lies = 0
    for seed in range(40):
        storage = SimulatedStorage(random.Random(seed))
        file, path = _make(storage, "/data")
        file.allocate(0, SECTOR_BYTES, zero=True)
        file.sync()
        storage.sync_directory("/data")
        file.write([b"new"], 0)
        storage.fail(errno.EIO, operation="datasync")
        with pytest.raises(OSError, match="Input/output"):
            file.datasync()
        file.datasync()
        assert file.read(3, 0) == b"new"
        direct = storage.open(path, direct=True).read(3, 0)
        storage.crash(random.Random(seed))
        assert bytes(storage.content(path)[:3]) == direct
        lies += direct != b"new"
    assert 0 < lies < 40


def test_a_failed_write_leaves_a_prefix() -> None:
    """A write that fails for lack of space or otherwise has written some first part of its bytes."""
    lengths = set()
    for seed in range(60):
        storage = SimulatedStorage(random.Random(seed), capacity_bytes=1000)
        file, path = _make(storage, "/data")
        with pytest.raises(OSError, match="No space"):
            file.write([b"ab" * 600], 0)
        content = storage.content(path)
        assert content == (b"ab" * 600)[: len(content)]
        lengths.add(len(content))
    assert len(lengths) > 20


def test_the_nth_call_fails_once() -> None:
    """A failure hits the call it was set for, any or of one operation, and no other."""
    storage = SimulatedStorage()
    file, _ = _make(storage, "/data")
    storage.fail(errno.EIO, after=1, operation="write")
    storage.fail(errno.ENOSPC, after=3)
    file.write([b"1"], 0)
    file.datasync()
    with pytest.raises(OSError, match="Input/output"):
        file.write([b"2"], 0)
    with pytest.raises(OSError, match="No space"):
        file.datasync()
    file.write([b"3"], 0)
    assert storage.calls["write"] == 3


def test_a_second_name_is_the_same_file(place: tuple[Storage, str]) -> None:
    """What is linked outlives its first name, and no link takes the place of another file."""
    storage, directory = place
    file, path = _make(storage, directory)
    file.write([b"bytes"], 0)
    storage.link(path, f"{path}.7")
    with pytest.raises(FileExistsError):
        storage.link(path, f"{path}.7")
    storage.unlink(path)
    other = storage.open(f"{path}.7")
    assert other.read(10, 0) == b"bytes"
    other.close()
    file.close()
    with pytest.raises(FileNotFoundError):
        storage.link(path, f"{path}.8")


def test_one_alone_holds_a_file(place: tuple[Storage, str]) -> None:
    """A file that is held cannot be held again, by any of its names, until it is released; its bytes stay."""
    storage, directory = place
    file, path = _make(storage, directory)
    file.write([b"bytes"], 0)
    storage.link(path, f"{path}.7")
    hold = storage.try_lock(path)
    assert hold is not None
    assert storage.try_lock(f"{path}.7") is None
    hold.release()
    again = storage.try_lock(f"{path}.7")
    assert again is not None
    again.release()
    assert file.read(10, 0) == b"bytes"
    file.close()
    with pytest.raises(FileNotFoundError):
        storage.try_lock(f"{path}.8")
