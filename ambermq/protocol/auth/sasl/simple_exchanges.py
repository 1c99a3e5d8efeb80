"""The mechanisms with one response: PLAIN, EXTERNAL, ANONYMOUS and AMBERMQ-TOKEN, at the server's end.

Rule 1. The authorization identity must be empty or the name itself: no user acts as another one.
Rule 2. What cannot be read is a failure, like a wrong password.
"""

from collections.abc import Callable
from typing import Final, Protocol, final

from ambermq.protocol.auth.exchange import Answer, Challenge, Failure, Success
from ambermq.protocol.auth.identity import Identity, ManagementScope
from ambermq.protocol.auth.users import Users
from ambermq.protocol.auth.verifier import NAME_BYTES_MAX, PASSWORD_BYTES_MAX, prepared

__all__ = ["TOKEN_MECHANISM", "AnonymousExchange", "ExternalExchange", "LoginWork", "PlainExchange", "TokenExchange"]

TOKEN_MECHANISM: Final = "AMBERMQ-TOKEN"  # noqa: S105 - the name of a mechanism
"""The mechanism of a process that the broker started: never offered, its response is a token of the broker."""


class LoginWork(Protocol):
    """What the process of a broker does for exchanges, which have no clock and no thread."""

    def check(self, is_right: Callable[[], bool], checked: Callable[[bool], None]) -> None:
        """Run a check in a thread; `checked` gets its result from the event loop's thread."""

    def later(self, delay_ms: int, call: Callable[[], None]) -> None:
        """Call after a delay, from the event loop's thread."""

    def now_ms(self) -> int:
        """Return the time of a monotonic clock."""


@final
class PlainExchange:
    """PLAIN (RFC 4616): authorization identity, NUL, name, NUL, password."""

    __slots__ = ("_is_ended", "_is_locked", "_users", "_work", "user")

    def __init__(self, users: Users, work: LoginWork, is_locked: Callable[[str], bool]) -> None:
        """`is_locked` says whether a name is refused without a check."""
        self._users = users
        self._work = work
        self._is_locked = is_locked
        self._is_ended = False
        self.user = ""
        """The name that the peer gave."""

    def step(self, response: bytes | None, answer: Callable[[Answer], None]) -> None:
        """See Exchange."""
        if response is None:
            answer(Challenge(b""))
            return
        parts = response.split(b"\0")
        try:
            authorization, name, password = (part.decode() for part in parts)
        except ValueError:
            answer(Failure("PLAIN: the response is not two NULs between three texts in UTF-8"))
            return
        self.user = prepared(name)[:NAME_BYTES_MAX]
        if prepared(authorization) not in {"", prepared(name)}:
            answer(Failure(f"PLAIN: it wants to act as {authorization[:80]!r}", self.user))
        elif len(prepared(name).encode()) > NAME_BYTES_MAX or len(parts[2]) > PASSWORD_BYTES_MAX:
            answer(Failure("PLAIN: the name or the password is too long", self.user))
        elif self._is_locked(self.user):
            answer(Failure("locked after too many failures", self.user))
        else:
            self._check(prepared(password).encode(), answer)

    def end(self) -> None:
        """Check no password that has not been checked: the peer has gone. It counts as a failure all the same."""
        self._is_ended = True

    def _check(self, password: bytes, answer: Callable[[Answer], None]) -> None:
        verifier = self._users.verifier_of(self.user)

        def checked(is_right: bool) -> None:
            user = self._users.find(self.user)
            # The password may have changed during the check.
            if not is_right or user is None or user.verifier != verifier:
                answer(Failure("the user is unknown, or the password is wrong", self.user))
            elif not user.is_enabled:
                answer(Failure("the user is disabled", self.user))
            else:
                answer(Success(Identity(user.name)))

        self._work.check(lambda: not self._is_ended and verifier.is_password(password), checked)


@final
class ExternalExchange:
    """EXTERNAL (RFC 4422, appendix A): the transport has proved who the peer is."""

    __slots__ = ("_identity", "user")

    def __init__(self, identity: Identity) -> None:
        self._identity = identity
        self.user = identity.username or ""
        """The name that the transport has proved."""

    def step(self, response: bytes | None, answer: Callable[[Answer], None]) -> None:
        """See Exchange."""
        authorization = (response or b"").decode(errors="replace")
        if authorization in {"", self.user}:
            answer(Success(self._identity))
        else:
            answer(Failure(f"EXTERNAL: it wants to act as {authorization[:80]!r}", self.user))


@final
class AnonymousExchange:
    """ANONYMOUS (RFC 4505), and MSSBCBS, by which clients for Azure announce that they put tokens later."""

    __slots__ = ("_identity", "user")

    def __init__(self, identity: Identity) -> None:
        self._identity = identity
        self.user = identity.username or ""
        """The name that the broker gives to such a peer."""

    def step(self, response: bytes | None, answer: Callable[[Answer], None]) -> None:
        """See Exchange. The response is a trace for people, and is not read."""
        del response
        answer(Success(self._identity))


@final
class TokenExchange:
    """AMBERMQ-TOKEN: a token that the broker gave to a process which it started."""

    __slots__ = ("_redeem", "user")

    def __init__(self, redeem: Callable[[str], ManagementScope | None]) -> None:
        self._redeem = redeem
        self.user = ""
        """A process has no name."""

    def step(self, response: bytes | None, answer: Callable[[Answer], None]) -> None:
        """See Exchange."""
        if response is None:
            answer(Challenge(b""))
            return
        scope = self._redeem(response.decode("ascii", errors="replace"))
        answer(Failure("the token is unknown, or was used") if scope is None else Success(Identity(scope=scope)))
