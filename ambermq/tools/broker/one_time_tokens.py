"""One-time tokens for child processes: each allows one connection with the scope that it was issued for.

Rule 1. A token is redeemed once. The broker revokes it when its child has ended.
Rule 2. A token has 256 random bits and is compared in constant time. The table is bounded: it drops the oldest token.
"""

import hmac
import secrets
from typing import Final, final

from ambermq.protocol.auth.identity import ManagementScope

__all__ = ["OneTimeTokens"]

_TOKEN_BYTES: Final = 32
_TOKENS_MAX: Final = 64


@final
class OneTimeTokens:
    """The issued tokens that are not redeemed, with their scopes."""

    def __init__(self) -> None:
        self._scopes: dict[str, ManagementScope] = {}

    def issue(self, scope: ManagementScope) -> str:
        """Return a new token, ASCII text, for one connection with this scope."""
        while len(self._scopes) >= _TOKENS_MAX:
            del self._scopes[next(iter(self._scopes))]
        token = secrets.token_hex(_TOKEN_BYTES)
        self._scopes[token] = scope
        return token

    def redeem(self, token: str) -> ManagementScope | None:
        """Remove a token and return its scope; return None if there is no such token."""
        token_bytes = token.encode()
        found = [known for known in self._scopes if hmac.compare_digest(known.encode(), token_bytes)]
        return self._scopes.pop(found[0]) if found else None

    def revoke(self, token: str) -> None:
        """Remove a token, if it was not redeemed."""
        self._scopes.pop(token, None)
