"""What a broker stores instead of a password: SCRAM keys, or an argon2id hash. One of them, never both.

Rule 1. A user has SCRAM keys, against which PLAIN is checked, too. A user for PLAIN alone has an argon2id hash instead:
        a file that holds both is as weak as the weaker.
Rule 2. Passwords and names are prepared by SASLprep (RFC 4013), as SCRAM clients do it. A password that SASLprep
        prohibits is refused when it is set. In a configuration it is used as it is, by PLAIN alone.
Rule 3. Salts are arguments. To make or to check a verifier takes tens of milliseconds: a thread does it.
"""

import hashlib
import hmac
from dataclasses import dataclass, field
from typing import Final

from ambermq.protocol.auth.rules import ROLE_PREFIX

__all__ = [
    "ITERATIONS_MAX",
    "ITERATIONS_MIN",
    "NAME_BYTES_MAX",
    "PASSWORD_BYTES_MAX",
    "SALT_BYTES",
    "BadCredential",
    "ScramKeys",
    "Verifier",
    "argon2_verifier",
    "checked_name",
    "checked_password",
    "configured_verifier",
    "decoy_verifier",
    "prepared",
    "scram_verifier",
]

PASSWORD_BYTES_MAX: Final = 1024
"""The longest password in UTF-8: the work of a check depends on it."""
NAME_BYTES_MAX: Final = 255
"""The longest name of a user in UTF-8."""
SALT_BYTES: Final = 16
ITERATIONS_MIN: Final = 4096
"""The least that RFC 7677 allows."""
ITERATIONS_MAX: Final = 10_000_000
"""The most that clients accept: more would stop them for minutes."""
# The second recommendation of OWASP: the broker has room for two checks at once on a small machine, too.
_ARGON2_KIB: Final = 19 << 10
_ARGON2_PASSES: Final = 2
_ARGON2_LANES: Final = 1
_RESERVED: Final = frozenset({"local", "anonymous"})
"""The names that the broker gives to peers by itself."""
_ASCII_PRINTABLE: Final = range(0x20, 0x7F)


class BadCredential(ValueError):
    """A name or a password that no user can have; the text says why, and never repeats a password."""


@dataclass(frozen=True, slots=True)
class ScramKeys:
    """The keys of SCRAM (RFC 5802) for one hash function."""

    salt: bytes
    iterations: int
    stored_key: bytes = field(repr=False)
    server_key: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Verifier:
    """What a password is checked against."""

    sha256: ScramKeys | None = None
    """The keys of SCRAM-SHA-256; None for a user of PLAIN alone."""
    sha512: ScramKeys | None = None
    """The keys of SCRAM-SHA-512; None for a user of PLAIN alone."""
    argon2: str = field(default="", repr=False)
    """The argon2id hash of a user of PLAIN alone; empty for others."""

    def is_password(self, password: bytes) -> bool:
        """Return whether a prepared password is the right one; it takes tens of milliseconds."""
        if self.sha256 is None:
            return _is_argon2(self.argon2, password)
        found = _scram_keys("sha256", password, self.sha256.salt, self.sha256.iterations)
        return hmac.compare_digest(found.stored_key, self.sha256.stored_key)


def scram_verifier(password: bytes, salts: tuple[bytes, bytes], iterations: int) -> Verifier:
    """Return the SCRAM keys of a prepared password, with a salt for each of the two hash functions."""
    return Verifier(
        _scram_keys("sha256", password, salts[0], iterations), _scram_keys("sha512", password, salts[1], iterations)
    )


def argon2_verifier(password: bytes, salt: bytes) -> Verifier:
    """Return the argon2id hash of a prepared password."""
    from argon2.low_level import Type, hash_secret  # noqa: PLC0415 - only a broker with such users needs it

    hashed = hash_secret(password, salt, _ARGON2_PASSES, _ARGON2_KIB, _ARGON2_LANES, 32, Type.ID)
    return Verifier(argon2=hashed.decode("ascii"))


def decoy_verifier(secret: bytes, name: str, iterations: int, *, is_argon2: bool) -> Verifier:
    """Return the verifier of a user that does not exist: the same for a name each time, and no password fits it."""
    if is_argon2:
        salt, tag = (_derived(secret, use, name) for use in ("argon2 salt", "argon2 tag"))
        parameters = f"m={_ARGON2_KIB},t={_ARGON2_PASSES},p={_ARGON2_LANES}"
        return Verifier(argon2=f"$argon2id$v=19${parameters}${_base64(salt[:SALT_BYTES])}${_base64(tag[:32])}")
    sha256, sha512 = (_decoy_keys(hash_name, secret, name, iterations) for hash_name in ("sha256", "sha512"))
    return Verifier(sha256, sha512)


def configured_verifier(secret: bytes, name: str, password: str, iterations: int) -> Verifier:
    """Return the verifier of a user of the configuration: its salts are those of the decoy of its name."""
    decoy = decoy_verifier(secret, name, iterations, is_argon2=False)
    assert decoy.sha256 is not None
    assert decoy.sha512 is not None
    return scram_verifier(prepared(password).encode(), (decoy.sha256.salt, decoy.sha512.salt), iterations)


def prepared(text: str) -> str:
    """Return text as SASLprep prepares it; text that SASLprep prohibits as it is."""
    try:
        return _saslprep(text)
    except BadCredential:
        return text


def checked_password(password: str) -> bytes:
    """Return a new password, prepared. Raises BadCredential if it is empty, too long or prohibited."""
    if not password:
        raise BadCredential("the password is empty")
    found = _saslprep(password, "the password").encode()
    if not 0 < len(found) <= PASSWORD_BYTES_MAX:
        raise BadCredential(f"the password has {len(found)} bytes, expected 1 to {PASSWORD_BYTES_MAX}")
    return found


def checked_name(name: str) -> str:
    """Return the name of a new user. Raises BadCredential if no user can have it."""
    if name in _RESERVED:
        raise BadCredential(f"the name {name!r} is reserved: the broker gives it to peers by itself")
    if name.startswith(ROLE_PREFIX):
        raise BadCredential(f"the name {name[:80]!r} is reserved: rules for a role begin with {ROLE_PREFIX}")
    found = _saslprep(name, "the name")
    if found != name or not name or name.strip() != name:
        raise BadCredential(f"the name {name[:80]!r} is not as SASLprep writes it: {found[:80]!r}")
    if len(name.encode()) > NAME_BYTES_MAX:
        raise BadCredential(f"the name has {len(name.encode())} bytes, expected at most {NAME_BYTES_MAX}")
    return name


def _scram_keys(hash_name: str, password: bytes, salt: bytes, iterations: int) -> ScramKeys:
    salted = hashlib.pbkdf2_hmac(hash_name, password, salt, iterations)
    client_key = hmac.digest(salted, b"Client Key", hash_name)
    stored_key = hashlib.new(hash_name, client_key).digest()
    return ScramKeys(salt, iterations, stored_key, hmac.digest(salted, b"Server Key", hash_name))


def _decoy_keys(hash_name: str, secret: bytes, name: str, iterations: int) -> ScramKeys:
    size = hashlib.new(hash_name).digest_size
    salt, stored, server = (_derived(secret, f"{hash_name} {use}", name) for use in ("salt", "stored", "server"))
    return ScramKeys(salt[:SALT_BYTES], iterations, stored[:size], server[:size])


def _derived(secret: bytes, use: str, name: str) -> bytes:
    return hmac.digest(secret, f"{use}\0{name}".encode(errors="surrogatepass"), "sha512")


def _is_argon2(expected: str, password: bytes) -> bool:
    from argon2.exceptions import VerificationError  # noqa: PLC0415 - only a broker with such users needs it
    from argon2.low_level import Type, verify_secret  # noqa: PLC0415 - as above

    try:
        return verify_secret(expected.encode("ascii"), password, Type.ID)
    except VerificationError:
        return False


def _base64(data: bytes) -> str:
    from base64 import b64encode  # noqa: PLC0415 - only a broker with such users needs it

    return b64encode(data).decode("ascii").rstrip("=")


def _saslprep(text: str, what: str = "the text") -> str:
    if all(ord(character) in _ASCII_PRINTABLE for character in text):
        return text
    from scramp.utils import ScramException, saslprep  # noqa: PLC0415 - its import takes 0.1 s

    try:
        # A surrogate is no character: it stands for a byte that is not UTF-8.
        return str(saslprep(text))
    except ScramException as error:
        raise BadCredential(f"{what} has a character that SASLprep prohibits: {error}") from error
