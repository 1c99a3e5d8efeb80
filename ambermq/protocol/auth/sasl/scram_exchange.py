"""SCRAM-SHA-256 and SCRAM-SHA-512 (RFC 5802, RFC 7677) without channel binding, at the server's end.

    client-first -> server-first (salt, iterations) -> client-final (proof) -> Success with the server's signature

Rule 1. A name that no user has gets the same first answer each time, and fails at the proof, like a wrong password.
Rule 2. A login fails if the password changes between its two answers.
Rule 3. The work is a few hashes: the client has that of the iterations.
"""

from collections.abc import Callable
from typing import Final, final

from ambermq.protocol.auth.exchange import Answer, Challenge, Failure, Success
from ambermq.protocol.auth.identity import Identity
from ambermq.protocol.auth.users import Users
from ambermq.protocol.auth.verifier import Verifier

__all__ = ["SCRAM_MECHANISMS", "ScramExchange"]

SCRAM_MECHANISMS: Final = ("SCRAM-SHA-512", "SCRAM-SHA-256")
"""The mechanisms, the best first."""


@final
class ScramExchange:
    """One authentication by SCRAM."""

    __slots__ = ("_hash_name", "_server", "_users", "_verifier", "user")

    def __init__(self, mechanism: str, users: Users) -> None:
        from scramp import ScramMechanism  # noqa: PLC0415 - its import takes 0.1 s, which a broker without users saves

        self._users = users
        self._hash_name = mechanism.removeprefix("SCRAM-").replace("-", "").lower()
        self.user = ""
        """The name that the peer gave."""
        self._verifier: Verifier | None = None
        """What the user's password was checked against at the first answer."""
        self._server = ScramMechanism(mechanism).make_server(self._keys)

    def step(self, response: bytes | None, answer: Callable[[Answer], None]) -> None:
        """See Exchange."""
        answer(self._answer(response))

    def _answer(self, response: bytes | None) -> Answer:
        from scramp.core import ScramException, ServerError  # noqa: PLC0415 - as above

        if response is None:
            return Challenge(b"")
        try:
            text = response.decode()
            if not self.user:
                self._server.set_client_first(text)
                return Challenge(self._server.get_server_first().encode())
            self._server.set_client_final(text)
            return self._finish(self._server.get_server_final().encode())
        except (ScramException, UnicodeDecodeError) as error:
            if isinstance(error, ScramException) and error.server_error is ServerError.INVALID_PROOF:
                return Failure("the user is unknown, or the password is wrong", self.user)
            return Failure(f"SCRAM: {error}", self.user)

    def _finish(self, signature: bytes) -> Answer:
        user = self._users.find(self.user)
        # The password may have changed since the first answer.
        if user is None or not user.is_enabled or user.verifier is not self._verifier:
            return Failure("the user is disabled, or it was changed meanwhile", self.user)
        return Success(Identity(user.name), signature)

    def _keys(self, name: str) -> tuple[bytes, bytes, bytes, int]:
        self.user = name
        user = self._users.find(name)
        self._verifier = None if user is None else user.verifier
        keys = self._users.scram_keys(name, self._hash_name)
        return keys.salt, keys.stored_key, keys.server_key, keys.iterations
