"""Verifiers: what is stored instead of a password."""

import pytest
from scramp import ScramMechanism

from ambermq.protocol.auth.verifier import (
    PASSWORD_BYTES_MAX,
    BadCredential,
    argon2_verifier,
    checked_name,
    checked_password,
    configured_verifier,
    decoy_verifier,
    prepared,
    scram_verifier,
)

_SALT = b"0123456789abcdef"


def test_the_keys_are_those_of_scramp() -> None:
    """RFC 5802: another implementation derives the same keys."""
    verifier = scram_verifier(b"pencil", (_SALT, _SALT), 4096)
    for mechanism, keys in (("SCRAM-SHA-256", verifier.sha256), ("SCRAM-SHA-512", verifier.sha512)):
        assert keys is not None
        expected = ScramMechanism(mechanism).make_auth_info("pencil", 4096, _SALT)
        assert (keys.salt, keys.stored_key, keys.server_key, keys.iterations) == expected


@pytest.mark.parametrize("verifier", [scram_verifier(b"right", (_SALT, _SALT), 4096), argon2_verifier(b"right", _SALT)])
def test_only_the_right_password_fits(verifier: object) -> None:
    """Against SCRAM keys and against an argon2id hash, of which a verifier has one."""
    assert verifier.is_password(b"right")  # type: ignore[attr-defined]  # both are verifiers
    assert not verifier.is_password(b"wrong")  # type: ignore[attr-defined]
    assert "right" not in repr(verifier)


@pytest.mark.parametrize("is_argon2", [False, True])
def test_a_decoy_is_the_same_each_time_and_fits_nothing(is_argon2: bool) -> None:
    """An unknown user has the same salt at each login, another broker another one."""
    one, same = (decoy_verifier(b"s" * 32, "mallory", 4096, is_argon2=is_argon2) for _ in range(2))
    assert one == same
    assert one != decoy_verifier(b"t" * 32, "mallory", 4096, is_argon2=is_argon2)
    assert not one.is_password(b"guess")


def test_a_configured_user_has_the_salt_of_its_decoy() -> None:
    """So its salt does not change when the user comes or goes."""
    decoy, user = (
        decoy_verifier(b"s" * 32, "bob", 4096, is_argon2=False),
        configured_verifier(b"s" * 32, "bob", "x", 4096),
    )
    assert decoy.sha256 is not None
    assert user.sha256 is not None
    assert decoy.sha256.salt == user.sha256.salt


def test_passwords_are_prepared() -> None:
    """RFC 4013: other spaces, compatible characters, soft hyphens; what is prohibited stays, for a configuration."""
    assert prepared("a\u00a0b\u00ad\u2168") == "a bIX"
    assert checked_password("\u2168") == b"IX"
    assert prepared("\u0007") == "\u0007"


@pytest.mark.parametrize("password", ["", "\u00ad", "\u0007", "x" * (PASSWORD_BYTES_MAX + 1), "\udcff"])
def test_bad_passwords_are_refused(password: str) -> None:
    """Empty, empty when prepared, prohibited, too long, not UTF-8; the error does not repeat it."""
    with pytest.raises(BadCredential) as error:
        checked_password(password)
    assert not password or password not in str(error.value)


@pytest.mark.parametrize("name", ["", " ", "local", "anonymous", "a\n", "\u2168", "x" * 256, " a"])
def test_bad_names_are_refused(name: str) -> None:
    """Reserved, not as SASLprep writes it, too long."""
    with pytest.raises(BadCredential):
        checked_name(name)
