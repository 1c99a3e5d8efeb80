"""The delay and the lock after failed logins, by address and by address and user, never by a user's name alone.

Rule 1. A stranger cannot lock a user out: a lock holds for the address that failed.
Rule 2. A failure is answered after a delay, which grows with the failures of its address and user. A success is not
        delayed.
Rule 3. Peers of this machine are delayed, not locked: an administrator gets in.
Rule 4. A row of failures ends when its lock ends, or after the time of a lock without a failure. A success ends the row
        of its address and user, not the one of the address: a user cannot guess the passwords of others that way.
Rule 5. The tables are bounded. At the bound the row with the oldest failure is dropped.
"""

from collections import OrderedDict
from dataclasses import dataclass
from typing import Final, TypeVar, final

from ambermq.protocol.auth.peer import Peer
from ambermq.protocol.server_limits import ServerLimits

__all__ = ["ADDRESS_FACTOR", "LoginThrottle"]

ADDRESS_FACTOR: Final = 10
"""An address may fail this often as an address and user: many clients may share it."""
Key = TypeVar("Key")

_DELAYS_MAX: Final = 8
"""The longest delay, as a multiple of the first."""


@dataclass(slots=True)
class _Row:
    count: int = 0
    end_ms: int = 0
    """When the row is forgotten."""


@final
class LoginThrottle:
    """The failures of addresses and users."""

    __slots__ = ("_addresses", "_limits", "_users")

    def __init__(self, limits: ServerLimits) -> None:
        self._limits = limits
        self._addresses: OrderedDict[str, _Row] = OrderedDict()
        self._users: OrderedDict[tuple[str, str], _Row] = OrderedDict()

    def is_locked(self, peer: Peer, user: str, now_ms: int) -> bool:
        """Return whether a login fails whatever it proves."""
        if peer.is_local or not self._limits.login_failures_max:
            return False
        failures_max = self._limits.login_failures_max
        return (
            _count(self._users, (peer.address, user), now_ms) >= failures_max
            or _count(self._addresses, peer.address, now_ms) >= failures_max * ADDRESS_FACTOR
        )

    def fail(self, peer: Peer, user: str, now_ms: int) -> int:
        """Count a failure; return the delay of its answer in milliseconds."""
        is_locked = self.is_locked(peer, user, now_ms)
        end_ms = now_ms + self._limits.login_lock_s * 1000
        # A locked login counts no more: the lock ends though the client tries again and again.
        count = 0 if is_locked else self._add(self._users, (peer.address, user), now_ms, end_ms)
        if not is_locked:
            self._add(self._addresses, peer.address, now_ms, end_ms)
        return self._limits.login_delay_ms * min(count or _DELAYS_MAX, _DELAYS_MAX)

    def succeed(self, peer: Peer, user: str) -> None:
        """Forget the failures of an address and user."""
        self._users.pop((peer.address, user), None)

    def _add(self, rows: OrderedDict[Key, _Row], key: Key, now_ms: int, end_ms: int) -> int:
        row = rows.pop(key, None)
        if row is None or row.end_ms <= now_ms:
            row = _Row()
        while rows and len(rows) >= self._limits.login_rows_max:
            rows.popitem(last=False)
        rows[key] = row
        row.count += 1
        row.end_ms = end_ms
        return row.count


def _count(rows: OrderedDict[Key, _Row], key: Key, now_ms: int) -> int:
    row = rows.get(key)
    return 0 if row is None or row.end_ms <= now_ms else row.count
