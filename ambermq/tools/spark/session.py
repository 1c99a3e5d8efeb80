"""A Spark session for one command: without output, closed to the network, in UTC, and removed with its files.

Rule 1. Spark prints nothing to the terminal: the output of the Java process goes to a file. If the session does not
start, the error quotes that file.
Rule 2. A master on this machine listens only on 127.0.0.1.
Rule 3. All files of Spark are in one temporary directory, which is removed with the session.
Rule 4. pyspark is imported here when a session is opened, and by the sources that Spark itself imports.
"""

import logging
import os
import re
import socket
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from subprocess import TimeoutExpired
from typing import TYPE_CHECKING, Any, Final

from ambermq.tools.spark.java import find_java
from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.exit_codes import ExitCode

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["STARTS_SOON", "check_master", "check_packages", "open_session"]

STARTS_SOON: Final = "-XX:TieredStopAtLevel=1"
"""The Java option for little compilation: a session starts with a third less CPU time, but long queries take more."""

_LOOPBACK: Final = "127.0.0.1"
_LOCAL: Final = re.compile(r"local(\[(\*|[1-9]\d*)(,\s*[1-9]\d*)?\])?")
_STANDALONE: Final = re.compile(r"spark://(?P<host>[^:/,]+):(?P<port>\d+)(,[^:/,]+:\d+)*")
_OTHERS: Final = re.compile(r"yarn|k8s://.+|local-cluster\[.+\]")
_SAFE_PATH: Final = "PYTHONSAFEPATH"
"""Spark starts its workers with `python -m`, which would import modules of the directory that the command runs in."""
_EXCEPTION: Final = re.compile(r"[\w.$]+(Exception|Error): ")
_CONNECT_SECONDS: Final = 3.0
_STOP_SECONDS: Final = 20.0
_LOGGING: Final = """rootLogger.level = error
rootLogger.appenderRef.file.ref = err
appender.err.type = Console
appender.err.name = err
appender.err.target = SYSTEM_ERR
appender.err.layout.type = PatternLayout
appender.err.layout.pattern = %d %p %c: %m%n
logger.gateway.name = org.apache.spark.api.python.PythonGatewayServer
logger.gateway.level = error
"""


@contextmanager
def open_session(
    master: str,
    *,
    name: str = "ambermq",
    driver_memory: str = "1g",
    java_options: str = "",
    settings: Mapping[str, str] | None = None,
) -> Iterator["SparkSession"]:
    """Yield a session on a master, `local[2]` or `spark://host:port`; the session stops when the block ends.

    `java_options` are added after ours, `settings` replace ours. Raises ToolError if pyspark or Java is not installed,
    or if the master is wrong or cannot be reached.
    """
    check_packages("pyspark", "pyarrow", "numpy")
    check_master(master)
    with tempfile.TemporaryDirectory(prefix="ambermq-spark-", ignore_cleanup_errors=True) as directory:
        scratch = Path(directory)
        environment = _environment(scratch, is_local=_is_local(master))
        wanted = _settings(scratch, master, name, driver_memory, java_options) | dict(settings or {})
        with _running(scratch, environment, wanted) as session:
            yield session


def check_packages(*packages: str) -> None:
    """Raise ToolError if one of the packages of the extra `spark` is not installed."""
    missing = [package for package in packages if find_spec(package) is None]
    if missing:
        raise ToolError(
            f"not installed: {', '.join(missing)}",
            advice="run `pip install 'ambermq[spark]'`",
            code=ExitCode.NOT_INSTALLED,
        )


def _is_local(master: str) -> bool:
    return _LOCAL.fullmatch(master) is not None


def check_master(master: str) -> None:
    """Raise ToolError if a master is wrong or cannot be reached; Spark itself would try for a minute."""
    if _is_local(master) or _OTHERS.fullmatch(master):
        return
    standalone = _STANDALONE.fullmatch(master)
    if standalone is None:
        raise ToolError(
            "wrong Spark master",
            where=repr(master),
            expected="local, local[N], local[*], spark://HOST:PORT, yarn or k8s://URL",
            advice="check --master",
            code=ExitCode.USAGE,
        )
    try:
        address = (standalone["host"], int(standalone["port"]))
        socket.create_connection(address, timeout=_CONNECT_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise ToolError(
            "the Spark master cannot be reached",
            where=master,
            found=str(error),
            advice="start it, or use --master 'local[*]'",
            code=ExitCode.CANNOT_CONNECT,
        ) from error


def _environment(scratch: Path, *, is_local: bool) -> dict[str, str]:
    """Return the environment variables to add for the Java process."""
    configuration = scratch / "conf"
    configuration.mkdir()
    (configuration / "log4j2.properties").write_text(_LOGGING)
    environment = {
        "JAVA_HOME": find_java(scratch),
        "SPARK_CONF_DIR": str(configuration),
        # On other machines the path of Python may differ: the user sets the variable.
        "PYSPARK_PYTHON": sys.executable if is_local else os.environ.get("PYSPARK_PYTHON", sys.executable),
        "PYSPARK_SUBMIT_ARGS": "pyspark-shell",
        _SAFE_PATH: "1",
    }
    return environment | ({"SPARK_LOCAL_IP": _LOOPBACK} if is_local else {})


def _settings(scratch: Path, master: str, name: str, driver_memory: str, java_options: str) -> dict[str, str]:
    # A concurrent collector would take a tenth of Java's time on two cores.
    java_options = f"-Djava.io.tmpdir={scratch} -XX:-UsePerfData -XX:+UseParallelGC {java_options}".strip()
    settings = {
        "spark.master": master,
        "spark.app.name": name,
        "spark.driver.memory": driver_memory,
        # On a cluster the workers do not inherit the environment of this process.
        f"spark.executorEnv.{_SAFE_PATH}": "1",
        "spark.driver.extraJavaOptions": java_options,
        "spark.local.dir": str(scratch / "local"),
        "spark.log.level": "ERROR",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "8",
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
    }
    loopback = {"spark.driver.host": _LOOPBACK, "spark.driver.bindAddress": _LOOPBACK}
    return settings | (loopback if _is_local(master) else {})


@contextmanager
def _running(scratch: Path, environment: Mapping[str, str], settings: Mapping[str, str]) -> Iterator["SparkSession"]:
    from pyspark import SparkConf, SparkContext  # noqa: PLC0415 - rule 4
    from pyspark.sql import SparkSession  # noqa: PLC0415

    if SparkSession.getActiveSession() is not None:
        raise ToolError("a Spark session is open in this process already", advice="stop that one first")
    output = scratch / "java.log"
    configuration = SparkConf(loadDefaults=False).setAll(list(settings.items()))
    with _variables(environment):
        gateway = _launch(configuration, output)
        # Spark reads the Python of the workers from the environment only now.
        context = _context(gateway, configuration, output)
    _silence_bridge(context)
    # Spark raises the errors that it logs here, and the command prints them once.
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    session = None
    try:
        session = SparkSession(context)
        yield session
    finally:
        with suppress(Exception):  # the Java process may have ended; then there is nothing to stop
            if session is not None:
                session.stop()
        _end(gateway)
        # The class keeps the gateway of the ended process: without this the next session would use it.
        SparkContext._gateway = SparkContext._jvm = None  # noqa: SLF001


def _launch(configuration: Any, path: Path) -> Any:
    """Start the Java process, with its output in the file `path`; return its gateway."""
    from pyspark import java_gateway  # noqa: PLC0415 - rule 4

    launch: Any = java_gateway.launch_gateway
    with path.open("wb") as output:
        try:
            return launch(configuration, {"stdout": output, "stderr": output})
        except Exception as error:
            raise _not_started(path, error) from error


def _context(gateway: Any, configuration: Any, output: Path) -> Any:
    from pyspark import SparkContext  # noqa: PLC0415 - rule 4

    try:
        return SparkContext(gateway=gateway, conf=configuration)
    except Exception as error:
        _end(gateway)
        raise _not_started(output, error) from error


def _silence_bridge(context: Any) -> None:
    """Stop the bridge to Java from logging tracebacks if the Java process ends: callers get the exception anyway."""
    logging.getLogger("py4j").setLevel(logging.CRITICAL + 1)
    if not logging.root.handlers:
        # The bridge logs to the root too, and Python gives a root without a handler one that prints.
        logging.root.addHandler(logging.NullHandler())
    context._accumulatorServer.handle_error = lambda *_: None  # noqa: SLF001 - else it prints its last error


def _not_started(output: Path, error: Exception) -> ToolError:
    lines = output.read_text(errors="replace").splitlines()
    words = next(filter(_EXCEPTION.match, lines), lines[-1] if lines else str(error))
    return ToolError("Spark does not start", found=words[:300])


def _end(gateway: Any) -> None:
    """End the Java process and wait until it has."""
    with suppress(Exception):
        gateway.shutdown()
    with suppress(OSError):
        gateway.proc.stdin.close()  # the Java process ends with its standard input
    try:
        gateway.proc.wait(_STOP_SECONDS)
    except TimeoutExpired:
        gateway.proc.kill()
        gateway.proc.wait()


@contextmanager
def _variables(environment: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables of this process for a block; Spark starts its Java process with them."""
    before = {name: os.environ.get(name) for name in environment}
    os.environ.update(environment)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
