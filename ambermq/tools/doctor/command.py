"""`ambermq doctor`: look at the machine, the disk and the interpreter, and give advice."""

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import click

from ambermq.tools.client.broker_option import broker_of_directory
from ambermq.tools.client.named_place import context_option, named_directory
from ambermq.tools.config.resolution import SettingsSource
from ambermq.tools.doctor.certificate_checks import check_certificates
from ambermq.tools.doctor.disk_checks import check_disk
from ambermq.tools.doctor.finding import Finding, Level
from ambermq.tools.doctor.system_checks import check_system
from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.exit_codes import ExitCode
from ambermq.tools.terminal.output import output_option, print_line, print_rows

__all__ = ["doctor"]

_COLUMNS: Final = ("level", "check", "found", "advice")


@click.command(epilog="Example: ambermq doctor --data ./data")
@click.option(
    "--data", metavar="DIR", help="Data directory to look at. Default: AMBERMQ_DATA, or the current directory."
)
@click.option(
    "--config",
    type=click.Path(dir_okay=False),
    envvar="AMBERMQ_CONFIG",
    help="Configuration of the broker, for its certificates. Default: AMBERMQ_CONFIG.",
)
@context_option
@output_option
def doctor(data: str | None, config: str | None, output: str) -> None:
    """Check what this machine does to a broker, and give advice.

    Measures how fast the disk makes 4 KiB durable, and looks at its space, the file system, the permissions of DIR,
    limits, memory, the clock, the interpreter, Java for Spark, and how long the certificates of the configuration
    last. A running broker goes on. Exits 1 at a fault.
    """
    directory = Path(named_directory(data).data or ".")
    findings = list(_findings(directory, config))
    if output == "json":
        print_rows([finding._asdict() for finding in findings], _COLUMNS, output)
    else:
        for finding in findings:
            _print(finding)
    if any(finding.level is Level.FAULT for finding in findings):
        raise SystemExit(ExitCode.FAILED)


def _findings(directory: Path, config: str | None) -> Iterator[Finding]:
    yield from check_disk(directory)
    yield from check_system()
    yield from _certificates(config)
    yield _broker(directory)


def _certificates(config: str | None) -> Iterator[Finding]:
    try:
        settings = SettingsSource(config, os.environ).load().settings
    except ToolError as mistake:
        yield Finding("configuration", Level.FAULT, str(mistake), "`ambermq config check` shows all mistakes")
    else:
        yield from check_certificates(settings.listeners, time.time())


def _broker(directory: Path) -> Finding:
    broker = broker_of_directory(str(directory)) if directory.is_dir() else None
    found = "none runs on the directory" if broker is None else f"runs at {broker.url}, process {broker.pid}"
    return Finding("broker", Level.OK, found)


def _print(finding: Finding) -> None:
    """Print one finding; its advice is on a line of its own."""
    print_line(f"{finding.level:8} {finding.check}: {finding.found}")
    if finding.advice:
        print_line(f"{'':8} -> {finding.advice}")
