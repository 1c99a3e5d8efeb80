r"""Shared access signatures: the tokens by which clients of Azure log in, and the keys that sign them.

    SharedAccessSignature sr=AUDIENCE&sig=SIGNATURE&se=EXPIRY&skn=USER        AUDIENCE and SIGNATURE percent-encoded
    SIGNATURE = base64(HMAC-SHA256(key, AUDIENCE as it is in the token + "\n" + EXPIRY))      EXPIRY in Unix seconds

Rule 1. The signature covers the bytes of the token: SDKs encode an audience differently.
Rule 2. The key of the HMAC is its base64 text, as the SDKs use it. So the broker stores the key itself, not a hash.
Rule 3. A token is for its audience and for the paths below it. An audience without a path is the whole virtual host.
Rule 4. Every wrong token has the same answer. Only a token with the right signature is called expired.
"""

import hashlib
import hmac
import re
from base64 import b64decode, b64encode
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple
from urllib.parse import unquote, unquote_plus

from ambermq.protocol.auth.address_words import Words, address_words

__all__ = [
    "KEY_BYTES",
    "SAS_TOKEN_TYPE",
    "Audience",
    "SasToken",
    "TokenGrant",
    "TokenKey",
    "covers",
    "decoy_key",
    "new_key",
    "parse_audience",
    "parse_token",
    "signing_key",
]

SAS_TOKEN_TYPE: Final = "servicebus.windows.net:sastoken"  # noqa: S105 - the name of a type
KEY_BYTES: Final = 32
_PREFIX: Final = "SharedAccessSignature "
_TOKEN_MAX: Final = 8192
"""Characters of a token."""
_EXPIRY_DIGITS_MAX: Final = 12
_ID_DIGITS: Final = 12
_FIELDS: Final = frozenset(("sr", "sig", "se", "skn"))
_URL: Final = re.compile(r"(?:amqps?|sb|https?|wss?)://([^/]*)/?", re.IGNORECASE)
_PATHS: Final = ("queues/", "topics/", "muxers/")
_MUXER_END: Final = "./."


@dataclass(frozen=True, slots=True)
class TokenKey:
    """A key of a user."""

    key: bytes = field(repr=False)
    """The base64 text, as the user has it."""
    created_s: int = 0
    """When it was made, in Unix seconds."""

    @property
    def id(self) -> str:
        """The name of the key in listings: the start of its SHA-256."""
        return hashlib.sha256(self.key).hexdigest()[:_ID_DIGITS]

    def signature(self, signed: bytes) -> bytes:
        """Return the signature of what a token signs."""
        return hmac.digest(self.key, signed, "sha256")


class Audience(NamedTuple):
    """What a token is for."""

    host: str
    """The host with its port; empty for an audience without one."""
    words: Words
    """The words of its address; empty for the whole virtual host."""
    address: str
    """The address without scheme and host."""


class SasToken(NamedTuple):
    """A token that was read, and not checked."""

    audience: Audience
    expires_s: int
    users: tuple[str, ...]
    """The name of the user, and as some SDKs mean it, who encode it twice."""
    signed: bytes
    """What the signature covers."""
    signature: bytes


class TokenGrant(NamedTuple):
    """A token that is right."""

    user: str
    key_id: str
    """The key that signed it."""
    audience: Audience
    expires_s: int


def new_key(random: bytes, now_s: int) -> TokenKey:
    """Return a new key of random bytes."""
    assert len(random) == KEY_BYTES, "a key has 32 bytes"
    return TokenKey(b64encode(random), now_s)


def decoy_key(secret: bytes, name: str) -> TokenKey:
    """Return the key of a user that has none: a check takes as long, and no token fits."""
    return TokenKey(hmac.digest(secret, f"token\0{name}".encode(errors="surrogatepass"), "sha256"))


def parse_audience(text: str) -> Audience:
    """Return the parts of an audience."""
    url = _URL.match(text)
    host, path = ("", text) if url is None else (url[1], text[url.end() :])
    if not path.startswith("/") and path.startswith(_PATHS) and url is not None:
        path = f"/{path}"
    path = path.rstrip("/")
    return Audience(host, address_words(path) if path else (), path)


def parse_token(text: str) -> SasToken | None:
    """Return the parts of a token; None if it is none."""
    if len(text) > _TOKEN_MAX or not text.startswith(_PREFIX):
        return None
    pairs = [part.partition("=") for part in text.removeprefix(_PREFIX).split("&")]
    fields = {name: value for name, _, value in pairs}
    if len(pairs) != len(fields) or fields.keys() != _FIELDS or not all(fields.values()):
        return None
    expiry, name = fields["se"], fields["skn"]
    if not (expiry.isascii() and expiry.isdigit() and len(expiry) <= _EXPIRY_DIGITS_MAX):
        return None
    try:
        audience = unquote_plus(fields["sr"], errors="strict")
        signature = b64decode(unquote(fields["sig"], errors="strict"), validate=True)
        once = unquote_plus(name, errors="strict")
        users = tuple(dict.fromkeys((once, unquote_plus(once, errors="strict"))))
        signed = f"{fields['sr']}\n{expiry}".encode()
    except ValueError:
        return None
    return SasToken(parse_audience(audience), int(expiry), users, signed, signature)


def signing_key(token: SasToken, keys: Iterable[TokenKey]) -> TokenKey | None:
    """Return the key that signed a token; None if none of the keys did."""
    found = None
    for key in keys:
        # Each key is tried, so that the time does not show which one fits.
        if hmac.compare_digest(key.signature(token.signed), token.signature):
            found = key
    return found


def covers(resource: Words, address: Words) -> bool:
    """Return whether a token for one address is also for another one: it is the same, or a path below it."""
    if not resource or resource == address:
        return True
    if resource[-1] == _MUXER_END:
        return address[: len(resource)] == resource
    return ".".join(address).startswith(f"{'.'.join(resource)}/")
