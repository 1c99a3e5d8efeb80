"""`ambermq bench`: measure any AMQP 1.0 broker with AmberMQ's own client.

The client is interpreted Python on the broker's machine, so the figures are a lower bound. bench/ has a faster client.
"""

import os
from pathlib import Path
from typing import Any, Final

import click

from ambermq.protocol.amqp10.limits import UINT_MAX
from ambermq.tools.client.broker_option import broker_of_directory, broker_options, broker_url
from ambermq.tools.client.broker_url import BrokerUrl
from ambermq.tools.client.link_client import LinkClient
from ambermq.tools.client.named_place import named_place
from ambermq.tools.messages.load_generator import BODY_BYTES_MIN, Load, Timings
from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.exit_codes import ExitCode
from ambermq.tools.terminal.number_range import NumberRange
from ambermq.tools.terminal.output import output_option, print_values

__all__ = ["bench"]

_ADDRESS: Final = "ambermq-bench"
_PERCENTILES: Final = (("p50", 0.50), ("p99", 0.99), ("max", 1.0))


@click.command(epilog="Example: ambermq bench --data ./data --count 100000 --size 1024")
@broker_options
@click.option("--address", default=_ADDRESS, show_default=True, help="Address to send to and receive from.")
@click.option("--count", type=click.IntRange(1), default=10_000, show_default=True, help="Number of messages.")
@click.option(
    "--size",
    type=click.IntRange(BODY_BYTES_MIN, UINT_MAX),
    default=100,
    show_default=True,
    help="Size of a body in bytes.",
)
@click.option(
    "--window",
    type=click.IntRange(1, UINT_MAX),
    default=1000,
    show_default=True,
    help="Maximum of unsettled messages, and link credit.",
)
@click.option("--rate", type=NumberRange(0, min_open=True), metavar="N", help="Messages a second. Default: no limit.")
@click.option("--durable/--no-durable", default=True, show_default=True, help="Send durable messages.")
@click.option(
    "--pid", type=click.IntRange(1), help="Process id of the broker, to measure its CPU. Default: found by --data."
)
@output_option
def bench(
    url: str | None,
    data: str | None,
    address: str,
    count: int,
    size: int,
    window: int,
    rate: float | None,
    durable: bool,
    pid: int | None,
    output: str,
) -> None:
    """Measure throughput, latency and the broker's CPU time."""
    target = BrokerUrl.parse(broker_url(url, data))
    pid = pid or _pid_of(url, data)
    with LinkClient.connect(target) as outward, LinkClient.connect(target) as inward:
        load = Load(outward, inward, address, count=count, size=size, durable=durable, window=window)
        before = _cpu_seconds(pid)
        timings = load.run(rate)
        after = _cpu_seconds(pid)
    values = {"broker": str(target), "messages": count, "size": size, "durable": durable, **_figures(timings, count)}
    if before is not None and after is not None:
        values["broker_cpu_us_per_message"] = round((after - before) / count * 1e6, 2)
    print_values(values, output)
    if timings.refused:
        raise ToolError(
            "not every message was accepted", where=address, expected=str(count), found=f"{timings.refused} refused"
        )


def _figures(timings: Timings, count: int) -> dict[str, Any]:
    figures: dict[str, Any] = {
        "seconds": round(timings.seconds, 3),
        "messages_per_second": round(count / timings.seconds),
    }
    for name, latencies_ns in (("settle", timings.settle_ns), ("delivery", timings.delivery_ns)):
        ordered = sorted(latencies_ns)
        for label, share in _PERCENTILES:
            if ordered:
                value_ns = ordered[min(len(ordered) - 1, int(share * len(ordered)))]
                figures[f"{name}_{label}_ms"] = round(value_ns / 1e6, 3)
    return figures


def _pid_of(url: str | None, data: str | None) -> int | None:
    """Return the broker's process id, if the options or the environment name its directory."""
    directory = named_place(url, data).data
    holder = broker_of_directory(directory) if directory else None
    return None if holder is None else holder.pid


def _cpu_seconds(pid: int | None) -> float | None:
    """Return the user and system time of a process with all its threads; None without a process id."""
    if pid is None:
        return None
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError as error:
        raise ToolError("no such process", where=f"--pid {pid}", code=ExitCode.NOT_FOUND) from error
    # The name in parentheses may hold anything; utime and stime are the 12th and 13th field after it.
    fields = text.rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
