"""The files of Apache Artemis: the release that is measured, fetched once by Maven, and checked."""

import hashlib
import os
import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import Final

import platformdirs

from bench.brokers.broker import BrokerFailed

__all__ = ["VERSION", "artemis_home"]

VERSION: Final = "2.56.0"
_ARTIFACT: Final = f"org.apache.artemis:apache-artemis:{VERSION}:tar.gz:bin"
_SHA512: Final = (
    "441ad38aa1b0526e5709edf43542039f016669d24134056613e4cbafdf6b101e"
    "5351f79f7ee190b43fc8031f6ec596a5fd075490dcee4d3eb3a88d8ed2cfc01b"
)
_FETCH_SECONDS: Final = 600.0


def artemis_home() -> Path:
    """Return the directory of the release, below the user's cache; fetch it if it is not there.

    Raises BrokerFailed if Java or Maven is missing, or if the file is another than the one that was measured.
    """
    cache = platformdirs.user_cache_path("ambermq-bench")
    home = cache / f"apache-artemis-{VERSION}"
    if shutil.which("java") is None:
        raise BrokerFailed("Artemis needs Java 17 or later: there is no `java` on the path")
    if not home.is_dir():
        cache.mkdir(parents=True, exist_ok=True)
        archive = _fetched(cache)
        _check(archive)
        _unpack(archive, home)
    return home


def _fetched(cache: Path) -> Path:
    """Return the archive in the local repository of Maven, which downloads it if need be."""
    archive = cache / f"apache-artemis-{VERSION}-bin.tar.gz"
    if archive.exists():
        return archive
    maven = shutil.which("mvn")
    if maven is None:
        raise BrokerFailed("Artemis is fetched by Maven: there is no `mvn` on the path")
    copy = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy"
    command = [maven, "-q", "-B", copy, f"-Dartifact={_ARTIFACT}", f"-DoutputDirectory={cache}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_FETCH_SECONDS, check=False)
    if done.returncode or not archive.exists():
        raise BrokerFailed(f"Maven has not fetched {_ARTIFACT}: {done.stdout[-500:].strip() or 'no output'}")
    return archive


def _check(archive: Path) -> None:
    """Raise BrokerFailed, and remove the archive, if its checksum is another one."""
    with archive.open("rb") as file:
        found = hashlib.file_digest(file, "sha512").hexdigest()
    if found != _SHA512:
        archive.unlink()
        raise BrokerFailed(
            f"{archive.name} has the SHA-512 {found[:16]}..., expected {_SHA512[:16]}...: fetch it again"
        )


def _unpack(archive: Path, home: Path) -> None:
    """Unpack the archive beside its place and rename it, so that a directory with that name is whole."""
    partial = home.with_name(f"{home.name}.{os.getpid()}")
    with tarfile.open(archive) as files:
        files.extractall(partial, filter="data")
    (partial / home.name).rename(home)
    shutil.rmtree(partial)
