"""The socket of a client: TCP, TLS or a unix socket, with the same few calls.

Rule 1. A TLS socket behaves as a plain one that does not block: BlockingIOError if nothing can be read or written.
Rule 2. The broker's certificate is verified, by the authorities of --tls-ca or those of the system, and by the host.
Rule 3. An abstract unix socket has no file, so the client checks that its broker runs as the same user, or as root.
"""

import os
import socket
import ssl
import struct
from collections.abc import Sequence
from typing import Final, Protocol, final

from ambermq.tools.client.broker_url import BrokerUrl
from ambermq.tools.client.tls_option import tls_files
from ambermq.tools.terminal.errors import ConnectionBroke, ToolError
from ambermq.tools.terminal.exit_codes import ExitCode

__all__ = ["ClientSocket", "client_context", "connected_socket"]

_PIECE_BYTES: Final = 64 << 10
"""The bytes of small buffers that one TLS record run takes."""
_CREDENTIALS: Final = struct.Struct("iII")


class ClientSocket(Protocol):
    """What a client uses of a socket."""

    def fileno(self) -> int:
        """Return the descriptor."""

    def setblocking(self, flag: bool, /) -> None:
        """Set whether calls block."""

    def recv(self, size: int, /) -> bytes:
        """Return input; empty at its end. Raises BlockingIOError and OSError."""

    def sendmsg(self, buffers: Sequence[memoryview], /) -> int:
        """Write a part of the buffers and return its size. Raises BlockingIOError and OSError."""

    def close(self) -> None:
        """Close the socket."""


@final
class _TlsSocket:
    """A TLS connection as a plain socket."""

    __slots__ = ("_stream",)

    def __init__(self, stream: ssl.SSLSocket) -> None:
        self._stream = stream

    def fileno(self) -> int:
        """See ClientSocket."""
        return self._stream.fileno()

    def setblocking(self, flag: bool, /) -> None:
        """See ClientSocket."""
        self._stream.setblocking(flag)

    def recv(self, size: int, /) -> bytes:
        """See ClientSocket. It returns all that was decrypted, since a wait for the socket does not see it."""
        received = bytearray()
        try:
            while len(received) < size:
                data = self._stream.recv(size - len(received))
                if not data:
                    break
                received += data
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError) as error:
            if not received:
                raise BlockingIOError from error
        return bytes(received)

    def sendmsg(self, buffers: Sequence[memoryview], /) -> int:
        """See ClientSocket."""
        data: bytes | memoryview = buffers[0]
        if len(data) < _PIECE_BYTES:
            # A record for each small buffer would cost more than the copy.
            data = b"".join(_leading(buffers))
        try:
            return self._stream.send(data)
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError) as error:
            raise BlockingIOError from error

    def close(self) -> None:
        """See ClientSocket."""
        self._stream.close()


def _leading(buffers: Sequence[memoryview]) -> list[memoryview]:
    """Return the first buffers, of about `_PIECE_BYTES`."""
    found: list[memoryview] = []
    size = 0
    for buffer in buffers:
        if size >= _PIECE_BYTES:
            break
        found.append(buffer)
        size += len(buffer)
    return found


def connected_socket(url: BrokerUrl, timeout_s: float) -> ClientSocket:
    """Return a socket that is connected to a broker; raise ConnectionBroke, or ToolError for wrong certificates."""
    try:
        if url.is_unix:
            return _unix_socket(url, timeout_s)
        stream = socket.create_connection((url.host, url.port), timeout=timeout_s)
        stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return _secured(stream, url) if url.is_secure else stream
    except ssl.SSLError as error:
        raise _tls_failed(url, error) from error
    except OSError as error:
        raise ConnectionBroke(
            "cannot connect",
            where=str(url),
            found=error.strerror or str(error),
            advice="start a broker with `ambermq serve`, or name another one with --url",
        ) from error


def _unix_socket(url: BrokerUrl, timeout_s: float) -> socket.socket:
    stream = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        stream.settimeout(timeout_s)
        stream.connect(f"\0{url.path[1:]}" if url.path.startswith("@") else url.path)
        if url.path.startswith("@"):
            _check_owner(stream, url)
    except BaseException:
        stream.close()
        raise
    return stream


def _check_owner(stream: socket.socket, url: BrokerUrl) -> None:
    """Raise ToolError if the process behind an abstract socket belongs to another user."""
    _, uid, _ = _CREDENTIALS.unpack(stream.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
    if uid not in {0, os.geteuid()} and os.geteuid() != 0:
        raise ToolError("the process behind this socket belongs to another user", where=str(url), found=f"uid {uid}")


def client_context() -> ssl.SSLContext:
    """Return the TLS context of the files in the options; raise ToolError if they cannot be used."""
    files = tls_files()
    try:
        context = ssl.create_default_context(cafile=files.ca or None)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        if files.cert:
            context.load_cert_chain(files.cert, files.key or None)
    except (OSError, ValueError) as error:
        names = ", ".join(one for one in (files.ca, files.cert, files.key) if one)
        found = getattr(error, "reason", None) or getattr(error, "strerror", None) or str(error)
        raise ToolError(
            "the certificates cannot be used",
            where=names,
            expected="files in PEM",
            found=found,
            advice="check --tls-ca, --tls-cert and --tls-key",
            code=ExitCode.USAGE,
        ) from error
    return context


def _secured(stream: socket.socket, url: BrokerUrl) -> ClientSocket:
    try:
        context = client_context()
        return _TlsSocket(context.wrap_socket(stream, server_hostname=url.host))
    except BaseException:
        stream.close()
        raise


def _tls_failed(url: BrokerUrl, error: ssl.SSLError) -> ConnectionBroke:
    if isinstance(error, ssl.SSLCertVerificationError):
        advice = "name the authority of the certificate with --tls-ca, and the host that is in it with --url"
        return ConnectionBroke(
            "the broker's certificate is not trusted", where=str(url), found=error.verify_message, advice=advice
        )
    found = (error.reason or str(error)).replace("_", " ").lower()
    return ConnectionBroke("TLS failed", where=str(url), found=found, advice="check whether the broker has TLS there")
