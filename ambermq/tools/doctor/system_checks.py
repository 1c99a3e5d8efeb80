"""The checks of the machine: open files, memory, clock, the kernel's syncs, and the interpreter."""

import ctypes
import platform
import resource
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from ambermq.log.format import checksum
from ambermq.log.storage.linux_aio import LinuxAio
from ambermq.protocol.server.descriptors import connections_for
from ambermq.tools.broker.memory_limit import default_memory_bytes
from ambermq.tools.doctor.finding import Finding, Level
from ambermq.tools.spark.java import find_java
from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.sizes import size_text

__all__ = ["check_system", "describe_build"]

_CONNECTIONS_GOOD: Final = 1000
_MEMORY_GOOD_BYTES: Final = 64 << 20
_CLOCK_UNSYNCHRONISED: Final = 0x40
"""STA_UNSYNC of adjtimex(2)."""
_TIMEX_BYTES: Final = 256
_TIMEX_STATUS: Final = 40
"""The position of `status` in struct timex on 64-bit Linux."""


def check_system() -> Iterator[Finding]:
    """Yield the findings about the machine."""
    yield _platform()
    yield _open_files()
    yield _memory()
    yield _clock()
    yield _kernel_syncs()
    yield _checksum()
    yield _interpreter()
    yield _java()


def _platform() -> Finding:
    found = f"{platform.system()} {platform.release()} on {platform.machine()}"
    if platform.system() != "Linux":
        return Finding("system", Level.WARNING, found, "only Linux is tested")
    return Finding("system", Level.OK, found)


def _open_files() -> Finding:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    connections = connections_for(1, hard)
    found = f"{hard:,}, enough for {connections:,} connections"
    if connections < _CONNECTIONS_GOOD:
        return Finding("open files", Level.WARNING, found, "raise it: ulimit -Hn, or LimitNOFILE of systemd")
    return Finding("open files", Level.OK, found)


def _memory() -> Finding:
    budget_bytes = default_memory_bytes()
    found = f"peers may make the broker hold {size_text(budget_bytes)} (memory_bytes_max)"
    if budget_bytes < _MEMORY_GOOD_BYTES:
        advice = "give the machine, its cgroup or `ulimit -v` more memory, or set memory_bytes_max"
        return Finding("memory", Level.WARNING, found, advice)
    return Finding("memory", Level.OK, found)


def _clock() -> Finding:
    """Ask the kernel whether a time service disciplines its clock."""
    advice = "run a time service, such as chrony: times in history are those of the clock"
    if platform.system() != "Linux" or sys.maxsize < 1 << 32:
        return Finding("clock", Level.WARNING, "unknown", advice)
    buffer = ctypes.create_string_buffer(_TIMEX_BYTES)
    if ctypes.CDLL(None, use_errno=True).adjtimex(buffer) < 0:
        return Finding("clock", Level.WARNING, "unknown: the kernel does not answer", advice)
    status = int.from_bytes(buffer.raw[_TIMEX_STATUS : _TIMEX_STATUS + 4], sys.byteorder)
    if status & _CLOCK_UNSYNCHRONISED:
        return Finding("clock", Level.WARNING, "not synchronised", advice)
    return Finding("clock", Level.OK, "synchronised")


def _kernel_syncs() -> Finding:
    name = "kernel AIO"
    try:
        with tempfile.TemporaryFile() as file:
            aio = LinuxAio(file.fileno())
            aio.close()
    except OSError as error:
        advice = "allow io_setup and io_submit in the sandbox (seccomp @aio), or raise fs.aio-max-nr"
        return Finding(name, Level.WARNING, f"not available: {error}; a thread syncs instead", advice)
    return Finding(name, Level.OK, "the kernel runs small syncs")


def _checksum() -> Finding:
    if checksum.IS_FAST:
        return Finding("checksum", Level.OK, "CRC-32C is compiled")
    return Finding("checksum", Level.WARNING, "CRC-32C is interpreted: a few MB a second", "install the package crc32c")


def describe_build(arguments: str, flags: str) -> tuple[str, ...]:
    """Return the optimisations of an interpreter, by its configure arguments and compiler flags."""
    found = []
    if "--enable-optimizations" in arguments or "-fprofile-use" in flags or "-fprofile-instr-use" in flags:
        found.append("profile-guided")
    if "--with-lto" in arguments or "-flto" in flags:
        found.append("link-time")
    return tuple(found)


def _interpreter() -> Finding:
    name = "interpreter"
    version = f"{platform.python_implementation()} {platform.python_version()}, {platform.python_compiler()}"
    build = describe_build(
        str(sysconfig.get_config_var("CONFIG_ARGS") or ""),
        f"{sysconfig.get_config_var('PY_CORE_CFLAGS') or ''} {sysconfig.get_config_var('PY_CFLAGS') or ''}",
    )
    if hasattr(sys, "gettotalrefcount"):
        return Finding(name, Level.WARNING, f"{version}, a debug build", "use a release build")
    if "profile-guided" not in build:
        advice = "use one built with --enable-optimizations: it needs 7 to 21 % less CPU for each message"
        return Finding(name, Level.WARNING, f"{version}, without profile-guided optimisation", advice)
    return Finding(name, Level.OK, f"{version}, {' and '.join(build)} optimisation")


def _java() -> Finding:
    name = "Java for Spark"
    if find_spec("pyspark") is None:
        return Finding(name, Level.OK, "not needed: the extra `spark` is not installed")
    with tempfile.TemporaryDirectory(prefix="ambermq-doctor-") as scratch:
        try:
            return Finding(name, Level.OK, find_java(Path(scratch)))
        except ToolError as error:
            return Finding(name, Level.WARNING, error.message, "`ambermq log compact --runner local` needs no Java")
