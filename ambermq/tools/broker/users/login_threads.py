"""The threads that check passwords: few, and with a bounded queue, so that guesses cannot take the machine.

Rule 1. `login_checks_max` checks run at a time and `login_waiting_max` wait. A further one is tried again after
        `login_delay_ms`: its client waits, within the deadline of its handshake.
Rule 2. A check that fails by a mistake of ours is a wrong password.
"""

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import final

import structlog

from ambermq.protocol.server_limits import ServerLimits

__all__ = ["LoginThreads"]


@final
class LoginThreads:
    """A LoginWork of the running event loop."""

    def __init__(self, limits: ServerLimits) -> None:
        self._limits = limits
        self._loop = asyncio.get_running_loop()
        self._pool = ThreadPoolExecutor(limits.login_checks_max, thread_name_prefix="login")
        self._pending = 0

    def check(self, is_right: Callable[[], bool], checked: Callable[[bool], None]) -> None:
        """See LoginWork."""
        if self._pending >= self._limits.login_checks_max + self._limits.login_waiting_max:
            self.later(max(self._limits.login_delay_ms, 1), lambda: self.check(is_right, checked))
            return
        self._pending += 1

        def finished(future: Future[bool]) -> None:
            if not future.cancelled() and not self._loop.is_closed():
                self._loop.call_soon_threadsafe(self._finish, future, checked)

        self._pool.submit(is_right).add_done_callback(finished)

    def later(self, delay_ms: int, call: Callable[[], None]) -> None:
        """See LoginWork."""
        self._loop.call_later(delay_ms / 1000, call)

    def now_ms(self) -> int:
        """See LoginWork."""
        return time.monotonic_ns() // 1_000_000

    def close(self) -> None:
        """Drop the checks that wait."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _finish(self, future: Future[bool], checked: Callable[[bool], None]) -> None:
        self._pending -= 1
        error = future.exception()
        if error is not None:
            structlog.get_logger().error("password check failed", error=repr(error))
        checked(error is None and future.result())
