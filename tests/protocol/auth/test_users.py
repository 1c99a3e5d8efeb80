"""The table of users and its document."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ambermq.protocol.auth.users import ADMINISTRATOR, User, Users, UsersDamaged, decode_users, encode_users
from ambermq.protocol.auth.verifier import argon2_verifier, scram_verifier

_SALT = b"0123456789abcdef"
_SECRET = b"s" * 32
_ALICE = User("alice", scram_verifier(b"a", (_SALT, _SALT), 4096), (ADMINISTRATOR,))
_BOB = User("bob", argon2_verifier(b"b", _SALT), (), is_enabled=False)
_TEXT = encode_users(_SECRET, (_ALICE, _BOB))


def test_a_document_is_read_as_it_was_written() -> None:
    """decode(encode(x)) == x, with order, roles and secret."""
    users = decode_users(_TEXT)
    assert users.stored() == (_ALICE, _BOB)
    assert users.secret == _SECRET
    assert decode_users(encode_users(_SECRET, ())).stored() == ()


@given(position=st.integers(0, len(_TEXT) - 1), value=st.integers(0, 255))
def test_each_changed_byte_is_found(position: int, value: int) -> None:
    """A damaged document is never read, and the error names a line."""
    damaged = _TEXT[:position] + bytes((value,)) + _TEXT[position + 1 :]
    if damaged != _TEXT:
        with pytest.raises(UsersDamaged, match=r"^line \d"):
            decode_users(damaged)


@given(size=st.integers(0, len(_TEXT) - 1))
def test_a_cut_document_is_found(size: int) -> None:
    """Whatever a kill or a full disk left."""
    with pytest.raises(UsersDamaged, match=r"^line \d"):
        decode_users(_TEXT[:size])


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        (b'"alice"', b'"alixe', 2),
        (b'"version":1', b'"version":3', 1),
        (b'"bob"', b'"alice"', 3),
        (b"$argon2id", b"$x", 3),
    ],
)
def test_the_error_names_the_line(old: bytes, new: bytes, line: int) -> None:
    """Of the first line that cannot be one."""
    with pytest.raises(UsersDamaged, match=f"^line {line}: "):
        decode_users(_TEXT.replace(old, new))


def test_stored_users_go_before_those_of_the_configuration() -> None:
    """A user of both places has its stored password; an unknown name has a verifier, too."""
    users = decode_users(_TEXT)
    configured = User("alice", _BOB.verifier), User("carol", _ALICE.verifier, (ADMINISTRATOR,))
    users.configure(configured, 4096)
    assert users.find("alice") == _ALICE
    assert [user.name for user in users] == ["carol", "alice", "bob"]
    assert len(users) == 3
    assert not users.verifier_of("mallory").is_password(b"x")
    assert users.scram_keys("bob", "sha256").stored_key
    users.remove("alice")
    assert users.find("alice") == configured[0]


def test_unknown_names_look_like_the_users_that_exist() -> None:
    """With users of PLAIN alone some unknown names take the time of argon2id, each name always the same."""
    plain, mixed, scram = (Users(_SECRET, users) for users in ((_BOB,), (_ALICE, _BOB), (_ALICE,)))
    names = [f"n{number}" for number in range(200)]
    assert all(plain.verifier_of(name).argon2 for name in names)
    assert not any(scram.verifier_of(name).argon2 for name in names)
    assert 60 < sum(bool(mixed.verifier_of(name).argon2) for name in names) < 140


def test_unknown_names_have_the_iterations_of_the_users_that_exist() -> None:
    """After a change of `scram_iterations` the old number does not tell which names are users."""
    old = [User(f"old{number}", scram_verifier(b"a", (_SALT, _SALT), 4096)) for number in range(3)]
    users = Users(_SECRET, old, iterations=8192)
    users.put(User("new", scram_verifier(b"a", (_SALT, _SALT), 8192)))
    found = [users.scram_keys(f"unknown{number}", "sha256").iterations for number in range(400)]
    assert set(found) == {4096, 8192}
    assert 230 < found.count(4096) < 370
    assert users.scram_keys("unknown7", "sha512").iterations == users.scram_keys("unknown7", "sha256").iterations


def test_the_last_administrator_is_known() -> None:
    """A disabled one does not count."""
    users = decode_users(_TEXT)
    assert not users.has_other_administrator("alice")
    users.put(User("bob", _BOB.verifier, (ADMINISTRATOR,)))
    assert users.has_other_administrator("alice")
