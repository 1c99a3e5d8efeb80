"""The root manifest: its bytes, its edits, and what a kill or a bad disk may do to it."""

import errno
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ambermq.log.errors import DamageError, ForeignError, LogError, LogFailed
from ambermq.log.format.crc_document import with_crc_line
from ambermq.log.manifest import manifest as manifests
from ambermq.log.manifest.vhost_directories import VhostDirectories, load_root
from ambermq.log.manifest.vhost_manifest import (
    EMPTY_ROOT,
    NamedVhost,
    VhostManifest,
    adopt,
    check_name,
    decode,
    drop,
    encode,
    reserve,
)
from tests.golden import GOLDEN_DIRECTORY
from tests.log.simulated import SimulatedStorage

GOLDEN = GOLDEN_DIRECTORY / "root_manifest.txt"
DATA = "/data"
NAMES = st.from_regex(r"\A[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}\Z").filter(lambda name: name != "default")
DIRECTORIES = st.builds("{}~{:08x}".format, NAMES, st.integers(0, (1 << 32) - 1))
ROOTS = st.builds(
    VhostManifest,
    st.just(1),
    st.integers(0, 1 << 40),
    st.lists(st.builds(NamedVhost, NAMES, DIRECTORIES), max_size=3).map(tuple),
    st.lists(DIRECTORIES, max_size=3).map(tuple),
)


def some_root() -> VhostManifest:
    """Two virtual hosts, one that is gone and one that is being made."""
    root = EMPTY_ROOT
    for name, directory in (("orders", "orders~00000001"), ("old", "old~00000002"), ("test.2", "test.2~0000000f")):
        root = adopt(reserve(root, directory), NamedVhost(name, directory))
    return reserve(drop(root, "old"), "new~000000ff")


def begun(storage: SimulatedStorage | None = None) -> VhostDirectories:
    """A data directory without other virtual hosts."""
    storage = storage or SimulatedStorage(random.Random(0))
    storage.makedirs(DATA)
    storage.sync_directory("/")
    return VhostDirectories(storage, DATA)


def fill(storage: SimulatedStorage, path: str) -> None:
    """Make what counts as a log."""
    storage.makedirs(path)
    manifests.store(storage, path, manifests.create(bytes(16)))
    storage.sync_directory(f"{DATA}/vhosts")


def made(storage: SimulatedStorage, vhosts: VhostDirectories, name: str) -> str:
    """Make a virtual host; return its directory."""
    directory = vhosts.reserve(name)
    fill(storage, vhosts.reserved_path(directory))
    vhosts.adopt(name, directory)
    return directory


@given(root=ROOTS)
def test_what_is_written_is_read_back(root: VhostManifest) -> None:
    """To the last field."""
    assert decode(encode(root), file="VHOSTS") == root


def test_golden_bytes() -> None:
    """The format does not change, and what was written stays readable."""
    assert encode(some_root()) == GOLDEN.read_bytes()
    assert decode(GOLDEN.read_bytes(), file="VHOSTS") == some_root()


@given(position=st.integers(0, len(encode(some_root())) - 1), bit=st.integers(0, 7))
def test_every_flipped_bit_is_found(position: int, bit: int) -> None:
    """An old or a wrong truth is never believed."""
    content = bytearray(encode(some_root()))
    content[position] ^= 1 << bit
    with pytest.raises((DamageError, ForeignError), match="VHOSTS"):
        decode(bytes(content), file="VHOSTS")


@pytest.mark.parametrize("directory", ["..", "a/../../b~00000000", "orders", "orders~0000000", ".a~00000000", ""])
def test_a_directory_that_leads_elsewhere_is_damage(directory: str) -> None:
    """What is deleted is deleted whole, so nothing is followed out of `vhosts`."""
    text = (
        encode(VhostManifest(1, 1, (), ("x~00000000",)))
        .rpartition(b"crc32c")[0]
        .replace(b"x~00000000", directory.encode())
    )
    with pytest.raises(DamageError, match="directories named"):
        decode(with_crc_line(text), file="VHOSTS")


def test_a_newer_version_is_refused() -> None:
    """And named."""
    text = encode(EMPTY_ROOT).rpartition(b"crc32c")[0].replace(b'"version": 1', b'"version": 2')
    with pytest.raises(ForeignError, match="VHOSTS has root manifest version 2, this program reads version 1"):
        decode(with_crc_line(text), file="VHOSTS")


@pytest.mark.parametrize("name", ["", ".", "..", ".a", "a/b", "a~b", "a b", "ä", "a\n", "a" * 65, "default"])
def test_names_that_cannot_be(name: str) -> None:
    """Nothing that is no plain file name, and not the one that is always there."""
    with pytest.raises(LogError, match="virtual host"):
        check_name(name)


@given(name=NAMES)
def test_names_that_can_be(name: str) -> None:
    """1 to 64 letters, digits, dots, dashes and underscores, no dot first."""
    check_name(name)
    check_name("a" * 64)


def test_a_root_manifest_that_is_missing_beside_virtual_hosts_is_damage() -> None:
    """Without any it is a broker that never had one."""
    storage = SimulatedStorage(random.Random(0))
    vhosts = begun(storage)
    assert (vhosts.names(), vhosts.root) == (["default"], EMPTY_ROOT)
    made(storage, vhosts, "orders")
    storage.unlink(f"{DATA}/VHOSTS")
    with pytest.raises(DamageError, match="a root manifest for 1 directories of virtual hosts"):
        load_root(storage, DATA)


def test_a_name_made_again_gets_another_directory() -> None:
    """And nothing of the first is left."""
    storage = SimulatedStorage(random.Random(0))
    vhosts = begun(storage)
    first = made(storage, vhosts, "orders")
    assert vhosts.path_of("orders") == f"{DATA}/vhosts/{first}"
    vhosts.remove("orders")
    assert vhosts.path_of("orders") is None
    assert storage.listdir(f"{DATA}/vhosts") == []
    assert made(storage, vhosts, "orders") != first
    assert VhostDirectories(storage, DATA).root == vhosts.root


def test_what_cannot_be_done_changes_nothing() -> None:
    """A name twice, a name that is not there, the default one, and what was not prepared."""
    storage = SimulatedStorage(random.Random(0))
    vhosts = begun(storage)
    directory = made(storage, vhosts, "orders")
    reserved = vhosts.reserve("other")
    before = vhosts.root
    for attempt in (
        lambda: vhosts.reserve("orders"),
        lambda: vhosts.reserve("default"),
        lambda: vhosts.adopt("orders", reserved),
        lambda: vhosts.adopt("other", reserved),
        lambda: vhosts.adopt("third", directory),
        lambda: vhosts.adopt("third", "../segments"),
        lambda: vhosts.remove("default"),
        lambda: vhosts.remove("other"),
    ):
        with pytest.raises(LogError, match="virtual host"):
            attempt()
    assert vhosts.root == before == load_root(storage, DATA)


def test_an_unknown_directory_is_reported_and_stays() -> None:
    """A sweep deletes what is on the list and nothing else."""
    storage = SimulatedStorage(random.Random(0))
    vhosts = begun(storage)
    kept = made(storage, vhosts, "orders")
    fill(storage, f"{DATA}/vhosts/strange")
    fill(storage, vhosts.reserved_path(vhosts.reserve("other")))
    vhosts.sweep()
    assert storage.listdir(f"{DATA}/vhosts") == sorted([kept, "strange"])
    assert vhosts.unknown() == ["strange"]
    assert vhosts.root == VhostManifest(1, vhosts.root.generation, (NamedVhost("orders", kept),))


@pytest.mark.parametrize("is_made", [True, False], ids=["made", "removed"])
@pytest.mark.parametrize("ending", ["crash", "kill"])
@pytest.mark.parametrize("after", range(0, 60, 2))
def test_a_virtual_host_is_whole_or_not_at_all(after: int, ending: str, *, is_made: bool) -> None:
    """Whatever call fails and whatever a power loss takes: after a sweep the name is there or can be had."""
    storage = SimulatedStorage(random.Random(after))
    vhosts = begun(storage)
    kept = made(storage, vhosts, "kept")
    if not is_made:
        made(storage, vhosts, "orders")
    storage.fail(errno.EIO, after=after)
    try:
        if is_made:
            made(storage, vhosts, "orders")
        else:
            vhosts.remove("orders")
    except (LogFailed, OSError):
        pass
    if ending == "crash":
        storage.crash(random.Random(after))
    else:
        storage.kill()
    after_life = VhostDirectories(storage, DATA)
    after_life.sweep()
    assert after_life.path_of("kept") == f"{DATA}/vhosts/{kept}"
    assert after_life.unknown() == []
    for name in after_life.names()[1:]:
        path = after_life.path_of(name)
        assert path is not None
        assert manifests.load(storage, path) is not None
    if "orders" not in after_life.names():
        made(storage, after_life, "orders")
    assert after_life.names() == ["default", "kept", "orders"]
