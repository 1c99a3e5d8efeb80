"""What the doctor finds about the machine."""

import resource

import pytest

from ambermq.tools.doctor import system_checks
from ambermq.tools.doctor.finding import Level
from ambermq.tools.doctor.system_checks import check_system, describe_build
from ambermq.tools.terminal.errors import ToolError


@pytest.mark.parametrize(
    ("arguments", "flags", "build"),
    [
        ("'--enable-optimizations' '--with-lto'", "-O3", ("profile-guided", "link-time")),
        ("", "-O3 -fprofile-use -flto=auto", ("profile-guided", "link-time")),
        ("'--enable-shared'", "-O3", ()),
    ],
)
def test_the_build_of_an_interpreter(arguments: str, flags: str, build: tuple[str, ...]) -> None:
    assert describe_build(arguments, flags) == build


def test_every_check_answers_on_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system_checks, "find_java", lambda _scratch: "/a/java")
    findings = {finding.check: finding for finding in check_system()}
    assert len(findings) == 8
    assert all(finding.advice for finding in findings.values() if finding.level is not Level.OK)
    assert findings["Java for Spark"].found == "/a/java"


def test_few_open_files_are_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _kind: (256, 256))
    (finding,) = (one for one in check_system() if one.check == "open files")
    assert finding.level is Level.WARNING
    assert finding.found.startswith("256, enough for 184 connections")


def test_a_missing_java_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_scratch: object) -> str:
        raise ToolError("no suitable Java for Spark")

    monkeypatch.setattr(system_checks, "find_java", fail)
    (finding,) = (one for one in check_system() if one.check == "Java for Spark")
    assert finding.level is Level.WARNING
    assert "--runner local" in finding.advice
