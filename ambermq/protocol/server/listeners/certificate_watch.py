"""The certificates of a running broker: read again at SIGHUP, and when their files change.

Rule 1. The files are looked at each minute, and read in a thread: a slow disk does not stop the event loop.
Rule 2. A pair that cannot be used keeps the old one. The log has one line for each change of the files.
"""

import asyncio
from typing import Final, final

import structlog

from ambermq.protocol.server.listeners.tls_contexts import TlsContexts, TlsFault

__all__ = ["CertificateWatch"]

_CHECK_SECONDS: Final = 60.0


@final
class CertificateWatch:
    """Reads the certificates of one broker again; `tls` is None without a listener with TLS."""

    def __init__(self, tls: TlsContexts | None, *, check_s: float = _CHECK_SECONDS) -> None:
        self._tls = tls
        self._check_s = check_s
        self._is_requested = asyncio.Event()

    def request(self) -> str:
        """Read the certificates again soon, as a reload of the configuration asks; return why the last read failed."""
        self._is_requested.set()
        return "" if self._tls is None else self._tls.failure

    async def run(self) -> None:
        """Read the certificates again when that is requested or the files have changed, until the task is cancelled."""
        while True:
            is_requested = await self._wait()
            if self._tls is None:
                structlog.get_logger().info("reloaded", certificates="none are configured")
            elif is_requested or await asyncio.to_thread(self._tls.is_changed):
                await self._reload(self._tls)

    async def _wait(self) -> bool:
        """Wait for a request or the next check; return whether there was a request."""
        timeout_s = None if self._tls is None else self._check_s
        try:
            async with asyncio.timeout(timeout_s):
                await self._is_requested.wait()
        except TimeoutError:
            return False
        self._is_requested.clear()
        return True

    async def _reload(self, tls: TlsContexts) -> None:
        try:
            await asyncio.to_thread(tls.reload)
        except TlsFault as fault:
            structlog.get_logger().error("certificates not reloaded", reason=str(fault), kept="the certificates before")
        else:
            structlog.get_logger().info("certificates reloaded")
