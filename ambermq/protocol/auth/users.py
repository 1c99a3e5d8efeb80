"""The users of a broker, and the document that keeps them: `DIR/users`.

    {"format": "ambermq users", "version": 1, "secret": "..."}      the secret of the broker, base64
    {"name": "alice", "verifier": {...}, "roles": [...], "is_enabled": true}      one line a user, in order of creation
    {..., "keys": [{"key": "...", "created_s": 1}]}                 with token keys: only version 2 has these
    crc32c XXXXXXXX                                                 CRC-32C of every byte before, as in the manifest

Rule 1. A name that is not in the table has a verifier, too, derived from the secret: no answer tells who exists.
Rule 2. Users of the configuration are in the table and never in the document.
Rule 3. A document is read whole or not at all. The error of a damaged one names its line.
Rule 4. The document has version 1 until a user has a token key. So an older broker reads it until then.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, TypeVar, final

import msgspec

from ambermq.log.errors import DamageError
from ambermq.log.format.crc_document import with_crc_line, without_crc_line
from ambermq.protocol.auth.sas_token import TokenKey
from ambermq.protocol.auth.verifier import (
    ITERATIONS_MAX,
    ITERATIONS_MIN,
    BadCredential,
    ScramKeys,
    Verifier,
    checked_name,
    decoy_verifier,
)

__all__ = ["ADMINISTRATOR", "ROLES", "User", "Users", "UsersDamaged", "decode_users", "encode_users"]

ADMINISTRATOR: Final = "administrator"
ROLES: Final = (ADMINISTRATOR, "operator", "monitor", "application")
"""The roles that every broker has."""
_FORMAT: Final = "ambermq users"
_VERSIONS: Final = (1, 2)
"""The versions that are read; 2 has token keys."""
_SECRET_BYTES_MIN: Final = 16
_SALT_BYTES_MIN: Final = 12
_KEY_BYTES_MIN: Final = 32
_CRC_NAME: Final = "users"

Kind = TypeVar("Kind")


class UsersDamaged(ValueError):
    """The document is not what was written; the text names the line."""


@dataclass(frozen=True, slots=True)
class User:
    """A user of a broker."""

    name: str
    verifier: Verifier
    roles: tuple[str, ...] = ()
    is_enabled: bool = True
    keys: tuple[TokenKey, ...] = ()
    """The keys by which it signs tokens."""


@dataclass(frozen=True, slots=True)
class _Header:
    """The first line of the document."""

    format: str
    version: int
    secret: bytes


@final
class Users:
    """The table of users; the owner replaces its entries."""

    __slots__ = ("_configured", "_decoy_argon2", "_found_iterations", "_iterations", "_stored", "has_keys", "secret")

    def __init__(self, secret: bytes, stored: Iterable[User] = (), *, iterations: int = ITERATIONS_MIN) -> None:
        """`secret` stays the same as long as the broker exists; `iterations` are those of new users."""
        self.secret = secret
        self._iterations = iterations
        self._stored = {user.name: user for user in stored}
        self._configured: dict[str, User] = {}
        self.has_keys = False
        """Whether an enabled user has a token key."""
        self._survey()

    def configure(self, users: Iterable[User], iterations: int) -> None:
        """Add the users of the configuration. A stored user of the same name goes before."""
        self._configured = {user.name: user for user in users}
        self._iterations = iterations
        self._survey()

    def __len__(self) -> int:
        return len(self._configured.keys() | self._stored.keys())

    def __iter__(self) -> Iterator[User]:
        """Iterate over all users, those of the configuration first."""
        yield from (user for name, user in self._configured.items() if name not in self._stored)
        yield from self._stored.values()

    def stored(self) -> tuple[User, ...]:
        """Return the users of the document."""
        return tuple(self._stored.values())

    def find(self, name: str) -> User | None:
        """Return a user; None if there is none of that name."""
        return self._stored.get(name) or self._configured.get(name)

    def is_stored(self, name: str) -> bool:
        """Return whether the document has a user."""
        return name in self._stored

    def put(self, user: User) -> None:
        """Add a stored user, or replace it."""
        self._stored[user.name] = user
        self._survey()

    def remove(self, name: str) -> None:
        """Remove a stored user."""
        del self._stored[name]
        self._survey()

    def verifier_of(self, name: str) -> Verifier:
        """Return what a password of a name is checked against; for an unknown name no password fits."""
        user = self.find(name)
        if user is not None:
            return user.verifier
        # As many unknown names look like users of PLAIN alone as there are of them.
        is_argon2 = self._share("share", name) * max(len(self), 1) < self._decoy_argon2 << 32
        return decoy_verifier(self.secret, name, self._decoy_iterations(name), is_argon2=is_argon2)

    def scram_keys(self, name: str, hash_name: str) -> ScramKeys:
        """Return the keys of SCRAM for a name; for an unknown name and a user of PLAIN alone no password fits."""
        user = self.find(name)
        verifier = None if user is None else user.verifier
        if verifier is None or verifier.sha256 is None:
            verifier = decoy_verifier(self.secret, name, self._decoy_iterations(name), is_argon2=False)
        keys = verifier.sha256 if hash_name == "sha256" else verifier.sha512
        assert keys is not None, "a verifier with one of the keys has both"
        return keys

    def has_other_administrator(self, name: str) -> bool:
        """Return whether an enabled user besides this one is an administrator."""
        return any(user.name != name and user.is_enabled and ADMINISTRATOR in user.roles for user in self)

    def _decoy_iterations(self, name: str) -> int:
        """Return the iterations of an unknown name: as many names have a number as users have it."""
        found = self._found_iterations
        return found[self._share("iterations", name) * len(found) >> 32] if found else self._iterations

    def _share(self, use: str, name: str) -> int:
        """Return a number of 32 bits that is the same for a name each time."""
        keys = decoy_verifier(self.secret, f"{use} {name}", self._iterations, is_argon2=False).sha256
        assert keys is not None
        return int.from_bytes(keys.salt[:4])

    def _survey(self) -> None:
        """Count what unknown names are made like."""
        self._decoy_argon2 = sum(bool(user.verifier.argon2) for user in self._stored.values())
        keys = [user.verifier.sha256 for user in self]
        self.has_keys = any(user.keys and user.is_enabled for user in self._stored.values())
        self._found_iterations = sorted(one.iterations for one in keys if one is not None)


def encode_users(secret: bytes, stored: Iterable[User]) -> bytes:
    """Return the document of the secret of a broker and its stored users."""
    users = [_fields(user) for user in stored]
    version = _VERSIONS["keys" in {name for user in users for name in user}]
    lines = [_Header(_FORMAT, version, secret), *users]
    return with_crc_line(b"".join(msgspec.json.encode(line) + b"\n" for line in lines))


def decode_users(text: bytes, *, iterations: int = ITERATIONS_MIN) -> Users:
    """Return the users of a document. Raises UsersDamaged."""
    lines = text.split(b"\n")
    header = _line(lines[0], _Header, 1)
    _check(1, header.format == _FORMAT, f"the format {_FORMAT!r}", repr(header.format))
    _check(1, header.version in _VERSIONS, f"version {' or '.join(map(str, _VERSIONS))}", str(header.version))
    _check(1, len(header.secret) >= _SECRET_BYTES_MIN, "a secret", f"{len(header.secret)} bytes")
    users: dict[str, User] = {}
    for number, line in enumerate(lines[1:-2], 2):
        user = _line(line, User, number)
        _check_user(user, number)
        _check(number, user.name not in users, "a name that no other line has", repr(user.name))
        users[user.name] = user
    try:
        without_crc_line(text, file=_CRC_NAME)
    except DamageError as error:
        expected = "the CRC of the lines before: one of them was changed, or the end is missing"
        raise UsersDamaged(f"line {max(len(lines) - 1, 1)}: expected {expected}") from error
    return Users(header.secret, users.values(), iterations=iterations)


def _fields(user: User) -> dict[str, object]:
    """Return the fields of a line; a user without keys has the line of version 1."""
    fields = {"name": user.name, "verifier": user.verifier, "roles": user.roles, "is_enabled": user.is_enabled}
    return fields | ({"keys": user.keys} if user.keys else {})


def _line(line: bytes, kind: type[Kind], number: int) -> Kind:
    try:
        return msgspec.json.decode(line, type=kind)
    except (ValueError, RecursionError) as error:
        raise UsersDamaged(f"line {number}: {error}") from error


def _check_user(user: User, number: int) -> None:
    try:
        checked_name(user.name)
    except BadCredential as error:
        raise UsersDamaged(f"line {number}: {error}") from error
    for key in user.keys:
        _check(number, len(key.key) >= _KEY_BYTES_MIN, f"a key of {_KEY_BYTES_MIN} bytes", f"{len(key.key)} bytes")
    verifier = user.verifier
    is_scram = verifier.sha256 is not None and verifier.sha512 is not None and not verifier.argon2
    is_argon2 = verifier.sha256 is None and verifier.sha512 is None and verifier.argon2.startswith("$argon2id$")
    _check(number, is_scram or is_argon2, "keys of SCRAM, or a hash of argon2id", "neither, or both")
    for keys, size in ((verifier.sha256, 32), (verifier.sha512, 64)):
        if keys is not None:
            _check_keys(keys, size, number)


def _check_keys(keys: ScramKeys, size: int, number: int) -> None:
    is_sized = len(keys.stored_key) == len(keys.server_key) == size and len(keys.salt) >= _SALT_BYTES_MIN
    _check(number, is_sized, f"keys of {size} bytes", f"{len(keys.stored_key)} and {len(keys.server_key)}")
    is_within = ITERATIONS_MIN <= keys.iterations <= ITERATIONS_MAX
    _check(number, is_within, f"{ITERATIONS_MIN} to {ITERATIONS_MAX} iterations", str(keys.iterations))


def _check(number: int, is_right: object, expected: str, found: str) -> None:
    if not is_right:
        raise UsersDamaged(f"line {number}: expected {expected}, found {found}")
