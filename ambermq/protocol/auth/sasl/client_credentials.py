"""The credentials of a client of ours, and the mechanism that it chooses of those which a server offers.

Rule 1. With a name and a password: SCRAM-SHA-512, SCRAM-SHA-256, PLAIN, in this order. SCRAM shows no password.
Rule 2. Without a password: EXTERNAL if it is offered, else ANONYMOUS for a client without a name.
Rule 3. A server that accepts a SCRAM client must prove that it knows the keys: a stranger cannot play the broker.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, final

from ambermq.protocol.amqp10.connection.sasl import SaslClientExchange
from ambermq.protocol.auth.sasl.scram_exchange import SCRAM_MECHANISMS
from ambermq.protocol.auth.sasl.simple_exchanges import TOKEN_MECHANISM

__all__ = ["ClientCredentials"]


@final
@dataclass(frozen=True, slots=True)
class ClientCredentials:
    """The credentials of a client; a SaslClient."""

    username: str | None = None
    """None: EXTERNAL or ANONYMOUS."""
    password: str = field(default="", repr=False)
    """Only PLAIN sends it, in clear text."""
    is_plain: bool = False
    """Whether PLAIN alone is used with a password: the bytes are hidden, or stay on the machine."""
    token: str = field(default="", repr=False)
    """AMBERMQ-TOKEN sends it in clear text, instead of a user name and a password."""

    def choose(self, offered: Sequence[str]) -> SaslClientExchange | str:
        """See SaslClient."""
        if self.token:
            return _OneResponse(TOKEN_MECHANISM, self.token.encode())
        if self.username is not None and self.password:
            return self._by_password(self.username, offered)
        if "EXTERNAL" in offered:
            return _OneResponse("EXTERNAL", (self.username or "").encode())
        if self.username is None and "ANONYMOUS" in offered:
            return _OneResponse("ANONYMOUS", b"anonymous")
        wanted = "ANONYMOUS" if self.username is None else f"what user {self.username!r:.80} can use without a password"
        return f"the server offers {', '.join(offered) or 'no mechanism'}, not {wanted}"

    def _by_password(self, username: str, offered: Sequence[str]) -> SaslClientExchange | str:
        for mechanism in () if self.is_plain else SCRAM_MECHANISMS:
            if mechanism in offered:
                return _scram(mechanism, username, self.password)
        if "PLAIN" in offered:
            return _OneResponse("PLAIN", b"\0".join((b"", username.encode(), self.password.encode())))
        return f"the server offers {', '.join(offered) or 'no mechanism'}, not {', '.join(SCRAM_MECHANISMS)} or PLAIN"


@final
class _OneResponse:
    """A mechanism with one response."""

    __slots__ = ("_response", "mechanism")

    def __init__(self, mechanism: str, response: bytes) -> None:
        self.mechanism = mechanism
        self._response = response

    def first(self) -> bytes | None:
        """See SaslClientExchange."""
        return self._response

    def respond(self, challenge: bytes) -> bytes | None:
        """See SaslClientExchange."""
        del challenge
        return self._response

    def is_proved(self, data: bytes) -> bool:
        """See SaslClientExchange."""
        del data
        return True


def _scram(mechanism: str, username: str, password: str) -> SaslClientExchange | str:
    from scramp import ScramClient, ScramException  # noqa: PLC0415 - its import takes 0.1 s, only for a password

    try:
        return _Scram(mechanism, ScramClient([mechanism], username, password))
    except ScramException as error:
        return f"the name or the password cannot be used with SCRAM ({error})"


@final
class _Scram:
    """SCRAM at the client's end; the server's signature may come in a challenge or with the outcome."""

    __slots__ = ("_client", "_is_proved", "_stage", "mechanism")

    def __init__(self, mechanism: str, client: Any) -> None:
        self.mechanism = mechanism
        self._client = client
        self._stage = 0
        self._is_proved = False

    def first(self) -> bytes | None:
        """See SaslClientExchange."""
        return str(self._client.get_client_first()).encode()

    def respond(self, challenge: bytes) -> bytes | None:
        """See SaslClientExchange."""
        from scramp import ScramException  # noqa: PLC0415 - as above

        self._stage += 1
        try:
            if self._stage == 1:
                self._client.set_server_first(challenge.decode())
                return str(self._client.get_client_final()).encode()
        except (ScramException, UnicodeDecodeError):
            return None
        return b"" if self.is_proved(challenge) else None

    def is_proved(self, data: bytes) -> bool:
        """See SaslClientExchange."""
        from scramp import ScramException  # noqa: PLC0415 - as above

        if data and not self._is_proved and self._stage:
            try:
                self._client.set_server_final(data.decode())
            except (ScramException, UnicodeDecodeError):
                return False
            self._is_proved = True
        return self._is_proved
