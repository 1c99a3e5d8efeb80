"""What is built once for all tests of the distribution."""

import subprocess
import sys
from collections.abc import Callable
from functools import cache
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.packaging.installation import BUILD_REQUIREMENT, Installation, copy_sources

Install = Callable[[str], Installation]
"""Makes an environment, or returns the one that was made before; takes what a user would say."""

_BUILD = "import sys; from setuptools import build_meta; print(getattr(build_meta, sys.argv[1])(sys.argv[2]))"


@pytest.fixture(scope="session")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the checkout, in which a build may leave what it wants."""
    found = version("setuptools")
    is_new = tuple(int(part) for part in found.split(".")[:3]) >= BUILD_REQUIREMENT
    assert is_new, f"setuptools {found} is too old to build with: install the extra `dev` anew"
    return copy_sources(tmp_path_factory.mktemp("packaging") / "sources")


@pytest.fixture(scope="session")
def wheel(sources: Path) -> Path:
    """The wheel of the checkout."""
    return _built("build_wheel", sources)


@pytest.fixture(scope="session")
def sdist(sources: Path) -> Path:
    """The source distribution of the checkout."""
    return _built("build_sdist", sources)


@pytest.fixture(scope="session")
def install(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, sources: Path) -> Install:
    """AmberMQ in an environment of its own, one for each way to install it."""

    @cache
    def installed(how: str) -> Installation:
        if how == "wheel":
            what = [str(request.getfixturevalue("wheel"))]
        else:
            what = ["--editable", str(sources)] if how == "pip install -e ." else [str(sources)]
        return Installation(tmp_path_factory.mktemp("environment") / "venv", what)

    return installed


def _built(hook: str, sources: Path) -> Path:
    """Call a hook of the build backend, as a build front end does."""
    target = sources.with_name(hook)
    target.mkdir()
    command = [sys.executable, "-c", _BUILD, hook, str(target)]
    done = subprocess.run(command, cwd=sources, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return target / done.stdout.splitlines()[-1]
