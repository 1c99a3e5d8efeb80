"""Apache Artemis as a peer: its files are checked, and its instance is durable; no run of it is needed here."""

import tarfile
from pathlib import Path

import pytest

from bench.brokers import artemis_files
from bench.brokers.artemis import adapted
from bench.brokers.artemis_files import VERSION, artemis_home
from bench.brokers.broker import BrokerFailed

CREATED = """\
      <persistence-enabled>true</persistence-enabled>
      <journal-type>ASYNCIO</journal-type>
      <journal-datasync>true</journal-datasync>
         <acceptor name="artemis">tcp://127.0.0.1:1?protocols=CORE,AMQP,STOMP;amqpDuplicateDetection=true</acceptor>
"""


def archive(cache: Path) -> Path:
    """Write an archive with the name of the release, and one file."""
    inner = cache / f"apache-artemis-{VERSION}"
    (inner / "bin").mkdir(parents=True)
    (inner / "bin" / "artemis").write_text("#!/bin/sh\n")
    path = cache / f"apache-artemis-{VERSION}-bin.tar.gz"
    with tarfile.open(path, "w:gz") as files:
        files.add(inner, inner.name)
    (inner / "bin" / "artemis").unlink()
    (inner / "bin").rmdir()
    inner.rmdir()
    return path


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make an empty cache, on a machine with Java and without Maven."""
    monkeypatch.setattr(artemis_files.platformdirs, "user_cache_path", lambda _name: tmp_path)
    monkeypatch.setattr(artemis_files.shutil, "which", {"java": "/java"}.get)
    return tmp_path


def test_another_file_is_refused_and_removed(cache: Path) -> None:
    """A release that is not the one of the checksum is not measured."""
    path = archive(cache)
    with pytest.raises(BrokerFailed, match="has the SHA-512"):
        artemis_home()
    assert not path.exists()


def test_the_release_is_unpacked_once(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The directory has its name only when it is whole, and is not made anew."""
    path = archive(cache)
    monkeypatch.setattr(artemis_files, "_check", lambda _path: None)
    home = artemis_home()
    assert (home / "bin" / "artemis").exists()
    path.unlink()
    assert artemis_home() == home
    assert [entry.name for entry in cache.iterdir()] == [home.name]


@pytest.mark.usefixtures("cache")
def test_without_maven_the_reason_is_told() -> None:
    """A machine without Maven runs the benchmark without Artemis."""
    with pytest.raises(BrokerFailed, match="there is no `mvn`"):
        artemis_home()


def test_an_instance_is_durable_and_speaks_amqp_alone() -> None:
    """What `artemis create` wrote gets both sync flags, no security and no detection of duplicates."""
    config = adapted(CREATED)
    assert "<journal-sync-transactional>true</journal-sync-transactional>" in config
    assert "<journal-sync-non-transactional>true</journal-sync-non-transactional>" in config
    assert "<security-enabled>false</security-enabled>" in config
    assert "protocols=AMQP;amqpDuplicateDetection=false" in config
    assert config.count("<journal-type>") == 1


def test_an_instance_without_libaio_is_refused() -> None:
    """A journal on plain files would be another broker than the one of the goals."""
    with pytest.raises(BrokerFailed, match="ASYNCIO"):
        adapted(CREATED.replace("ASYNCIO", "NIO"))
