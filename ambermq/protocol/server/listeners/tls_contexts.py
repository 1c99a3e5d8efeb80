"""The certificates of a server: read at its start, at SIGHUP, and when the files change.

Rule 1. TLS 1.2 and newer, without compression and renegotiation.
Rule 2. A private key that other users can read is refused. The group may read a key of root: so distributions keep it.
Rule 3. New handshakes use the last certificates that could be read and fit together. Running connections stay.
Rule 4. Certificates that cannot be used keep the old ones, and are one log line for each change of the files.
"""

import os
import ssl
import stat
from pathlib import Path
from typing import Any, Final, final

from ambermq.protocol.server.listeners.certificate_expiry import certificate_ends
from ambermq.protocol.server.listeners.listener_config import ListenerConfig

__all__ = ["TlsContexts", "TlsFault"]

_READ_BYTES: Final = 8 << 20
"""The most bytes of a file with certificates."""


class TlsFault(Exception):
    """Certificates that cannot be used: where, what was expected and found, what to do."""

    def __init__(self, where: str, found: str, advice: str, *, expected: str = "") -> None:
        super().__init__(f"{where}: {found}; {advice}")
        self.where, self.found, self.advice, self.expected = where, found, advice, expected


@final
class TlsContexts:
    """The TLS context for new connections. One thread calls at a time."""

    __slots__ = ("_config", "_seen", "context", "expiry_s", "failure")

    def __init__(self, config: ListenerConfig) -> None:
        """Read the certificates. Raises TlsFault."""
        self._config = config
        self._seen = self._signature()
        self.context = _context(config)
        """The context for new handshakes."""
        self.expiry_s = _expiry_s(config)
        """The end of the broker's certificate or of one in its chain, in seconds since 1970; 0: not known."""
        self.failure = ""
        """Why the last certificates were not used; empty if they are."""

    def is_changed(self) -> bool:
        """Return whether a file has changed since it was read."""
        return self._signature() != self._seen

    def reload(self) -> None:
        """Read the certificates again. Raises TlsFault; the old ones stay in use then."""
        self._seen = self._signature()
        try:
            self.context = _context(self._config)
        except TlsFault as fault:
            self.failure = str(fault)
            raise
        self.failure, self.expiry_s = "", _expiry_s(self._config)

    def _signature(self) -> tuple[Any, ...]:
        return tuple(map(_signature_of, _files(self._config)))


def _expiry_s(config: ListenerConfig) -> int:
    try:
        return min(certificate_ends(Path(config.tls_cert).read_bytes()), default=0)
    except OSError:
        # The file was read a moment ago; its context is in use, whatever it is now.
        return 0


def _files(config: ListenerConfig) -> tuple[str, ...]:
    return config.tls_cert, config.tls_key, config.tls_ca, config.tls_crl


def _signature_of(path: str) -> tuple[int, ...]:
    """Return what changes with the content of a file; empty for a file that is missing."""
    try:
        found = Path(path).stat()
    except OSError:
        return ()
    return found.st_mtime_ns, found.st_size, found.st_ino, found.st_mode, found.st_uid


def _context(config: ListenerConfig) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_COMPRESSION | ssl.OP_NO_RENEGOTIATION | ssl.OP_CIPHER_SERVER_PREFERENCE
    _load_pair(context, config)
    if config.tls_ca:
        _load_authorities(context, config.tls_ca, "tls_ca")
        context.verify_mode = ssl.CERT_REQUIRED if config.tls_client_required else ssl.CERT_OPTIONAL
    if config.tls_crl:
        _load_authorities(context, config.tls_crl, "tls_crl")
        context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF
    return context


def _load_pair(context: ssl.SSLContext, config: ListenerConfig) -> None:
    key = config.tls_key or config.tls_cert
    _check_readable(config.tls_cert, "tls_cert")
    _check_readable(key, "tls_key")
    _check_private(key)
    try:
        context.load_cert_chain(config.tls_cert, key, password=_refuse_password)
    except (ssl.SSLError, OSError, ValueError) as error:
        found = str(error) if isinstance(error, ValueError) and not isinstance(error, OSError) else _reason(error)
        where = f"{config.tls_cert} and {key}"
        raise TlsFault(
            where, found, "name a certificate in PEM and its private key", expected="a pair that fits"
        ) from error


def _load_authorities(context: ssl.SSLContext, path: str, key: str) -> None:
    _check_readable(path, key)
    try:
        context.load_verify_locations(path)
    except (ssl.SSLError, OSError) as error:
        raise TlsFault(path, _reason(error), f"name a file in PEM with {key}", expected="certificates") from error


def _check_readable(path: str, key: str) -> None:
    try:
        with Path(path).open("rb") as file:
            status = os.fstat(file.fileno())
    except OSError as error:
        raise TlsFault(path, error.strerror or str(error), f"check {key}", expected="a file in PEM") from error
    if not stat.S_ISREG(status.st_mode) or status.st_size > _READ_BYTES:
        raise TlsFault(path, f"{status.st_size} bytes", f"check {key}", expected=f"a file of at most {_READ_BYTES}")


def _check_private(path: str) -> None:
    """Raise TlsFault if others than the owner read a private key; the group may if the owner is root."""
    status = Path(path).stat()
    mode = stat.S_IMODE(status.st_mode)
    allowed = 0o740 if status.st_uid == 0 and os.geteuid() != 0 else 0o700
    if mode & ~allowed:
        raise TlsFault(path, f"mode {mode:04o}", f"run chmod 600 {path}", expected="a key that no other user reads")


def _refuse_password() -> str:
    raise ValueError("the key is encrypted, and a broker has no terminal to ask for its password")


def _reason(error: Exception) -> str:
    """Return the reason of an error of OpenSSL or the system in words."""
    if isinstance(error, ssl.SSLError):
        return (error.reason or str(error)).replace("_", " ").lower()
    return str(getattr(error, "strerror", None) or error)
