"""Apache Artemis as a measured broker: one JVM with its journal on libaio.

The instance is what `artemis create --aio` writes, with the buffer timeout that it measures on this disk. What differs:
one AMQP acceptor, no security, no detection of duplicates, no web console. Both sync flags and datasync are true: a
message is accepted when the journal is on the disk, as here.
"""

import os
import re
import subprocess
import time
from pathlib import Path
from typing import Final, final

from bench.brokers.artemis_files import artemis_home
from bench.brokers.broker import BrokerFailed, Usage
from bench.brokers.processes import START_SECONDS, await_listener, free_port, kill_tree, last_output, usage_of

__all__ = ["Artemis", "adapted"]

_JAVA_OPTIONS: Final = "-Xms512M -Xmx2G"
_CREATE: Final = (
    *("--user", "bench", "--password", "bench", "--allow-anonymous", "--aio", "--no-web", "--silent", "--force"),
    *("--no-amqp-acceptor", "--no-hornetq-acceptor", "--no-mqtt-acceptor", "--no-stomp-acceptor"),
    *("--host", "127.0.0.1", "--java-options", _JAVA_OPTIONS),
)
_DURABLE: Final = """\
      <security-enabled>false</security-enabled>
      <journal-sync-transactional>true</journal-sync-transactional>
      <journal-sync-non-transactional>true</journal-sync-non-transactional>
"""
_DISK_USAGE: Final = re.compile(r"<max-disk-usage>\d+<")
"""A share of the disk in percent, with the files of other programs. Beyond it Artemis takes no message."""
_IS_AIO: Final = "<journal-type>ASYNCIO</journal-type>"
_ACCEPTOR: Final = re.compile(r"protocols=[A-Z,]+")


@final
class Artemis:
    """One instance on a directory."""

    name = "artemis"

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._port = free_port()
        self.url = f"amqp://127.0.0.1:{self._port}"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> float:
        """Create the instance at the first start, start it, and wait for the listener; return the seconds."""
        if not (self._directory / "bin").is_dir():
            self._create(artemis_home())
        began = time.monotonic()
        output = self._directory.with_suffix(".stderr")
        with output.open("ab") as file:
            self._process = subprocess.Popen(
                [str(self._directory / "bin" / "artemis"), "run"],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                cwd=self._directory,
                start_new_session=True,
            )
        await_listener(self._port, self._process, output, "artemis")
        return time.monotonic() - began

    def address(self, queue: str) -> str:
        """Return the address under which an anycast queue is made at its first use."""
        return queue

    def usage(self) -> Usage:
        """Return the CPU time and memory of the JVM."""
        return usage_of(self._process)

    def kill(self) -> None:
        """Send SIGKILL and wait."""
        kill_tree(self._process)
        self._process = None

    def _create(self, home: Path) -> None:
        command = [str(home / "bin" / "artemis"), "create", str(self._directory), *_CREATE]
        command += ["--default-port", str(self._port)]
        output = self._directory.with_suffix(".stderr")
        with output.open("ab") as file:
            done = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                env=_environment(),
                check=False,
                timeout=START_SECONDS,
            )
        if done.returncode:
            raise BrokerFailed(f"artemis create failed: {last_output(output)}")
        config = self._directory / "etc" / "broker.xml"
        config.write_text(adapted(config.read_text()))


def _environment() -> dict[str, str]:
    """Return an environment without a home of another Artemis."""
    return {name: value for name, value in os.environ.items() if not name.startswith("ARTEMIS_")}


def adapted(config: str) -> str:
    """Return the configuration of the instance as it is measured. Raises BrokerFailed if it is not on libaio."""
    if _IS_AIO not in config:
        raise BrokerFailed("artemis create has not chosen ASYNCIO: is libaio's native library missing?")
    config = config.replace("      <journal-type>", f"{_DURABLE}      <journal-type>", 1)
    config = _DISK_USAGE.sub("<max-disk-usage>100<", config, count=1)
    config = config.replace("amqpDuplicateDetection=true", "amqpDuplicateDetection=false")
    return _ACCEPTOR.sub("protocols=AMQP", config, count=1)
