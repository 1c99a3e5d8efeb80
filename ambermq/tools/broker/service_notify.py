"""Messages to the service manager: sd_notify(3), one datagram each to the socket that NOTIFY_SOCKET names.

    READY=1        the broker accepts connections
    STOPPING=1     the broker stops in order
    WATCHDOG=1     the event loop has had a turn; sent three times in WATCHDOG_USEC
    STATUS=text    one line for `systemctl status`

Rule 1. Without NOTIFY_SOCKET nothing is sent. A manager that does not read is no fault of the broker.
Rule 2. The watchdog's timer is one of the event loop. A loop that stands still sends nothing, and the manager restarts
        the broker.
"""

import asyncio
import os
import socket
from collections.abc import Mapping
from contextlib import suppress
from typing import Final, final

__all__ = ["ServiceNotifier"]

_SHARE: Final = 3
"""Messages in the time after which the manager restarts the broker."""


@final
class ServiceNotifier:
    """The connection to the service manager that started this process."""

    __slots__ = ("_address", "_interval_s", "_timer")

    def __init__(self, environment: Mapping[str, str] | None = None, *, pid: int = 0) -> None:
        """Read NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID; `pid` 0 is this process."""
        environment = os.environ if environment is None else environment
        address = environment.get("NOTIFY_SOCKET", "")
        # systemd writes @ for the zero byte of an abstract name.
        self._address = "\0" + address[1:] if address.startswith("@") else address
        self._interval_s = _watchdog_seconds(environment, pid or os.getpid()) / _SHARE
        self._timer: asyncio.TimerHandle | None = None

    def ready(self, status: str) -> None:
        """Report that the broker serves, and begin to answer the watchdog; called in the event loop."""
        self._send(f"READY=1\nSTATUS={status}")
        self._answer_watchdog()

    def stopping(self) -> None:
        """Report that the broker stops. The watchdog is answered until the loop ends."""
        self._send("STOPPING=1\nSTATUS=stopping")

    def close(self) -> None:
        """End the answers to the watchdog."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _answer_watchdog(self) -> None:
        if not self._interval_s:
            return
        self._send("WATCHDOG=1")
        self._timer = asyncio.get_running_loop().call_later(self._interval_s, self._answer_watchdog)

    def _send(self, text: str) -> None:
        if not self._address:
            return
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as stream:
            stream.sendto(text.encode(), self._address)


def _watchdog_seconds(environment: Mapping[str, str], pid: int) -> float:
    """Return the time after which the manager restarts a silent process; 0 without a watchdog for this one."""
    microseconds, owner = environment.get("WATCHDOG_USEC", ""), environment.get("WATCHDOG_PID", "")
    if not microseconds.isdecimal() or (owner and owner != str(pid)):
        return 0.0
    return int(microseconds) / 1e6
