"""`make test-fast` finds the tests of what has changed."""

import subprocess

import pytest

from tests.fast import PYTEST, ROOT, SMOKE, arguments_of, package_of, paths_of

pytest_plugins = ["pytester"]


@pytest.mark.parametrize(
    ("path", "package"),
    [
        ("ambermq/engine/decide/messages/publish.py", "engine/decide/messages"),
        ("ambermq/engine/address.py", "engine"),
        ("tests/engine/decide/messages/test_publish.py", "engine/decide/messages"),
        ("tests/engine/world.py", "engine"),
        ("bench/paired.py", "bench"),
        ("docs/index.md", None),
        ("Makefile", None),
        ("tests/conftest.py", None),
    ],
)
def test_a_file_belongs_to_a_package(path: str, package: str | None) -> None:
    """A page or a setting belongs to none: the smoke tests are about those."""
    assert package_of(path) == package


@pytest.mark.parametrize("name", ["engine/dispatch", "ambermq/engine/dispatch/", "tests/engine/dispatch"])
def test_a_package_has_its_tests(name: str) -> None:
    """Named by its place in the package or among the tests."""
    assert paths_of(name) == ["tests/engine/dispatch"]


def test_what_holds_packages_has_the_tests_beside_its_modules() -> None:
    """All of engine/ would take too long."""
    assert paths_of("engine") == ["tests/engine/test_address.py"]


def test_a_package_without_tests_has_those_around_it() -> None:
    """Nothing is left out in silence."""
    assert paths_of("engine/dispatch/deeper") == ["tests/engine/dispatch"]


def test_the_smoke_tests_are_there() -> None:
    """They come behind those of the packages, each once."""
    assert all((ROOT / path).exists() for path in SMOKE)
    assert arguments_of(["engine/dispatch", "engine/dispatch"]) == ["tests/engine/dispatch", *SMOKE]


def test_tests_that_are_left_fail_the_run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test starts when the time is over, and the run says how many were left."""
    pytester.makepyfile("def test_one(): pass\ndef test_two(): pass\n")
    monkeypatch.setenv("TESTS_END", "0")
    done = pytester.runpytest_inprocess("-p", "tests.deadline")
    assert done.ret == pytest.ExitCode.TESTS_FAILED
    done.stdout.fnmatch_lines(["*2 tests did not start in time*"])
    monkeypatch.setenv("TESTS_END", "inf")
    assert pytester.runpytest_inprocess("-p", "tests.deadline").ret == pytest.ExitCode.OK


def test_its_pytest_finds_the_plugin(monkeypatch: pytest.MonkeyPatch) -> None:
    """From the environment alone, without a path that a shell has set."""
    monkeypatch.delenv("PYTHONPATH", raising=False)
    command = [*PYTEST, "--collect-only", "tests/engine/test_address.py"]
    assert subprocess.run(command, cwd=ROOT, capture_output=True, check=False).returncode == 0
