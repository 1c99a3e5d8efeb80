"""The work of `ambermq proxy record`: the relay until a signal, its file, and its live trace."""

import asyncio
import signal
import ssl
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import time_ns

import click

from ambermq.protocol.server.listeners.listener_config import ListenerConfig
from ambermq.protocol.server.listeners.tls_contexts import TlsContexts, TlsFault
from ambermq.tools.client.broker_url import BrokerUrl
from ambermq.tools.client.client_socket import client_context
from ambermq.tools.proxy.recording import CONTENT_BYTES_MAX, Kind, Record
from ambermq.tools.proxy.recording_file import RecordingWriter
from ambermq.tools.proxy.relay import READ_BYTES, Relay
from ambermq.tools.proxy.trace import Trace
from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.exit_codes import ExitCode
from ambermq.tools.terminal.output import print_json, print_line, printable

__all__ = ["RecordTask", "listen_address", "record_until_signal"]

assert READ_BYTES <= CONTENT_BYTES_MAX


@dataclass(frozen=True, slots=True)
class RecordTask:
    """What to record, from the command line."""

    host: str
    port: int
    target: BrokerUrl
    path: Path
    bytes_max: int
    connections_max: int
    is_printed: bool
    """Whether the trace is printed while it is recorded."""
    output: str
    is_secure: bool = False
    """Whether the clients use TLS."""
    certificate: str = ""
    """The file with the proxy's certificate, in PEM."""
    key: str = ""
    """The file with its private key; empty: it is in the file of the certificate."""


def record_until_signal(task: RecordTask) -> None:
    """Record until SIGINT or SIGTERM; raise ToolError if the relay cannot listen or the file cannot be written."""
    listener_tls, target_tls = _listener_tls(task), client_context() if task.target.is_secure else None
    writer = RecordingWriter(task.path, bytes_max=task.bytes_max, time_us=_now_us())
    session = _Session(task, writer, listener_tls, target_tls)
    try:
        asyncio.run(session.run())
    except BaseException:
        writer.close(_now_us())
        if not session.is_listening:
            task.path.unlink(missing_ok=True)
        raise
    writer.close(_now_us())
    session.report()


def _listener_tls(task: RecordTask) -> ssl.SSLContext | None:
    if not task.is_secure:
        return None
    if not task.certificate:
        advice = "give --tls-cert FILE and --tls-key FILE"
        raise ToolError("a listener with TLS needs a certificate", where="--listen", advice=advice, code=ExitCode.USAGE)
    try:
        return TlsContexts(ListenerConfig(tls_cert=task.certificate, tls_key=task.key)).context
    except TlsFault as fault:
        raise ToolError(
            "the certificates cannot be used",
            where=fault.where,
            expected=fault.expected,
            found=fault.found,
            advice=fault.advice,
            code=ExitCode.USAGE,
        ) from fault


class _Session:
    """One run of the command."""

    def __init__(
        self,
        task: RecordTask,
        writer: RecordingWriter,
        listener_tls: ssl.SSLContext | None,
        target_tls: ssl.SSLContext | None,
    ) -> None:
        self._task = task
        self._writer = writer
        self._trace = Trace()
        self._stopped = asyncio.Event()
        self._pipe: BrokenPipeError | ToolError | None = None
        self._relay = Relay(
            task.target,
            self._note,
            connections_max=task.connections_max,
            listener_tls=listener_tls,
            target_tls=target_tls,
        )
        self.is_listening = False

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._stopped.set)
        try:
            address = await self._relay.listen(self._task.host, self._task.port)
        except OSError as error:
            where, found = f"{self._task.host}:{self._task.port}", error.strerror or str(error)
            advice = "stop the other listener, or name another address with --listen"
            raise ToolError("cannot listen", where=where, found=found, advice=advice) from error
        self.is_listening = True
        self._print_ready(address)
        await self._stopped.wait()
        await self._relay.close()
        if self._pipe is not None:
            raise self._pipe

    def report(self) -> None:
        """Print what was recorded; raise ToolError if the file could not be written."""
        if self._writer.failure is not None:
            raise self._writer.failure
        count, size = self._relay.connection_count, self._writer.size
        if self._task.output == "json":
            full = self._writer.is_full
            print_json({"file": str(self._task.path), "connections": count, "bytes": size, "is_full": full})
        else:
            text = f"recorded {count} connections in {size} bytes"
            print_line(text + (", the maximum size" if self._writer.is_full else ""))

    def _print_ready(self, address: str) -> None:
        scheme = "amqps" if self._task.is_secure else "amqp"
        url, target, path = f"{scheme}://{address}", str(self._task.target), str(self._task.path)
        if self._task.output == "json":
            print_json({"ready": url, "to": target, "file": path})
        else:
            print_line(f"ready {url} to={target} file={path}")

    def _note(self, record: Record) -> None:
        if not self._writer.append(record):
            self._warn_of_end()
        if record.kind is Kind.BROKER_END and record.content:
            _warn(f"connection {record.connection}: {record.text}")
        if self._task.is_printed and self._pipe is None:
            self._guard(lambda: self._print(record))

    def _warn_of_end(self) -> None:
        failure = self._writer.failure
        why = f"it has {self._task.bytes_max} bytes" if failure is None else failure.strerror or str(failure)
        _warn(f"{self._task.path}: the recording ended: {why}; connections are still relayed")

    def _print(self, record: Record) -> None:
        for line in self._trace.lines(record):
            if self._task.output == "json":
                print_json(line.document)
            else:
                print_line(line.line)

    def _guard(self, call: Callable[[], None]) -> None:
        """Run a call; if its reader is gone, end the command as for a signal."""
        try:
            call()
        except (BrokenPipeError, ToolError) as error:
            self._pipe = error
            self._stopped.set()


def _warn(text: str) -> None:
    click.echo(f"warning: {printable(text)}", file=sys.stderr)


def _now_us() -> int:
    return time_ns() // 1_000


def listen_address(text: str) -> tuple[str, int, bool]:
    """Return host and port of `[amqp[s]://]HOST:PORT`, and whether it is TLS; raise ToolError for another text."""
    scheme, separator, address = text.rpartition("://")
    host, colon, port = address.rpartition(":")
    is_known = scheme in ("amqp", "amqps") if separator else True
    if not is_known or not colon or not host or not port.isdecimal() or int(port) > 65_535:
        expected = "HOST:PORT, amqp://HOST:PORT or amqps://HOST:PORT"
        raise ToolError("not an address", where="--listen", expected=expected, found=repr(text), code=ExitCode.USAGE)
    return host.removeprefix("[").removesuffix("]"), int(port), scheme == "amqps"
