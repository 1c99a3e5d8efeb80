"""Wheel and sdist hold the package `ambermq` alone, and all of it but the generator of the AMQP tables."""

import tarfile
import tomllib
import zipfile
from pathlib import Path, PurePosixPath

from tests.packaging.installation import BUILD_REQUIREMENT
from tests.signposts import ROOT

_GENERATOR = "ambermq/tools/spec/"
_DATA = {"ambermq/py.typed", "ambermq/engine/selectors/selector.lark"}


def expected() -> set[str]:
    """The files of the package that are distributed."""
    modules = {path.relative_to(ROOT).as_posix() for path in (ROOT / "ambermq").rglob("*.py")}
    pages = {f"ambermq/{path.relative_to(ROOT).as_posix()}" for path in (ROOT / "docs").rglob("*.md")}
    return {name for name in modules if not name.startswith(_GENERATOR)} | _DATA | pages


def test_the_wheel_installs_one_name(wheel: Path) -> None:
    """`top_level.txt` says so, and no file lies beside the package and its metadata."""
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        metadata = {name for name in names if name.split("/")[0].endswith(".dist-info")}
        (top_level,) = [name for name in metadata if name.endswith("/top_level.txt")]
        assert archive.read(top_level).decode().split() == ["ambermq"]
    assert names - metadata == expected()


def test_the_sdist_has_no_links_and_one_package(sdist: Path) -> None:
    """Files and folders alone: the package, what a build needs, and what a reader wants."""
    with tarfile.open(sdist) as archive:
        members = archive.getmembers()
    assert all(member.isfile() or member.isdir() for member in members)
    names = {"/".join(PurePosixPath(member.name).parts[1:]) for member in members if member.isfile()}
    assert {name for name in names if name.startswith("ambermq/")} == expected()
    beside = {name for name in names if "/" not in name}
    built = {"LICENSE", "MANIFEST.in", "PKG-INFO", "README.md", "pyproject.toml", "setup.cfg"}
    assert beside == built | {"ARCHITECTURE.md", "CHANGELOG.md", "SECURITY.md", "Dockerfile"}
    assert {name.split("/")[0] for name in names - beside} == {"ambermq", "ambermq.egg-info", "contrib", "docs"}
    assert "docs/index.md" in names
    assert "contrib/systemd/ambermq.service" in names


def test_the_build_requirement_is_the_one_of_the_tests() -> None:
    """Builds, the extra `dev`, and the tests of the distribution ask for the same setuptools."""
    told = tomllib.loads((ROOT / "pyproject.toml").read_text())
    asked = f"setuptools>={'.'.join(map(str, BUILD_REQUIREMENT))}"
    assert told["build-system"]["requires"] == [asked]
    assert asked in told["project"]["optional-dependencies"]["dev"]
