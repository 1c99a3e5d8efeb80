"""Tokens against another construction of them: urllib and hmac as the SDKs of Azure use them."""

import hmac
from base64 import b64encode
from hashlib import sha256
from typing import Any
from urllib.parse import quote, quote_plus, urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ambermq.protocol.auth.address_words import address_words
from ambermq.protocol.auth.exchange import Failure, Success
from ambermq.protocol.auth.identity import Identity
from ambermq.protocol.auth.peer import LOCAL_PEER, Peer
from ambermq.protocol.auth.sas_token import TokenKey, covers, new_key, parse_audience, parse_token, signing_key
from ambermq.protocol.auth.sasl.authenticator import BrokerAuthenticator
from ambermq.protocol.auth.sasl.login_throttle import LoginThrottle
from ambermq.protocol.auth.users import User, Users, decode_users, encode_users
from ambermq.protocol.auth.verifier import scram_verifier
from ambermq.protocol.server_limits import ServerLimits
from tests.protocol.authenticators import InlineLogins

SALT = b"0123456789abcdef"
KEY = new_key(b"k" * 32, 5)
TEXTS = st.text(st.characters(codec="utf-8", categories=("L", "N", "P", "S", "Zs")), min_size=1, max_size=20)
REMOTE = Peer("203.0.113.1", "203.0.113.1:5", is_local=False)


def python_token(key: str, audience: str, expires_s: int, name: str) -> str:
    """Sign as the SDKs for Python do: the name is encoded twice."""
    signed = f"{quote_plus(audience)}\n{expires_s}".encode()
    signature = b64encode(hmac.new(key.encode(), signed, sha256).digest())
    fields = {"sr": audience, "sig": signature, "se": str(expires_s), "skn": quote_plus(name)}
    return f"SharedAccessSignature {urlencode(fields)}"


def node_token(key: str, audience: str, expires_s: int, name: str) -> str:
    """Sign as the SDKs for Node.js do: spaces are %20, and the name is as it is."""
    encoded = quote(audience, safe="!'()*")
    digest = hmac.new(key.encode(), f"{encoded}\n{expires_s}".encode(), sha256).digest()
    signature = quote(b64encode(digest).decode(), safe="")
    return f"SharedAccessSignature sr={encoded}&sig={signature}&se={expires_s}&skn={quote(name, safe='')}"


def lower_token(key: str, audience: str, expires_s: int, name: str) -> str:
    """Sign as the SDKs for .NET do: escapes have small letters."""
    encoded = "".join(one.lower() if "%" in one else one for one in map(quote_plus, audience))
    digest = hmac.new(key.encode(), f"{encoded}\n{expires_s}".encode(), sha256).digest()
    signature = quote_plus(b64encode(digest).decode())
    return f"SharedAccessSignature sr={encoded}&sig={signature}&se={expires_s}&skn={quote_plus(name)}"


SDKS = (python_token, node_token, lower_token)


def broker(*keys: TokenKey, is_enabled: bool = True, **options: Any) -> BrokerAuthenticator:
    """Return an authenticator of the user alice with these keys."""
    alice = User("alice", scram_verifier(b"word", (SALT, SALT), 4096), (), is_enabled, keys)
    users = Users(b"s" * 32, (alice,))
    throttle = LoginThrottle(ServerLimits(login_failures_max=3))
    return BrokerAuthenticator(users, throttle, InlineLogins(), redeem=lambda _: None, **options)


@given(
    sdk=st.sampled_from(SDKS),
    name=TEXTS,
    path=TEXTS,
    expires_s=st.integers(0, 10**11),
    random=st.binary(min_size=32, max_size=32),
)
def test_a_token_of_an_sdk_has_its_key(sdk: Any, name: str, path: str, expires_s: int, random: bytes) -> None:
    """Whatever the audience and the name are, and no other key fits."""
    key, other = new_key(random, 0), new_key(sha256(random).digest(), 0)
    audience = f"sb://host/{path}"
    token = parse_token(sdk(key.key.decode(), audience, expires_s, name))
    assert token is not None
    assert token.audience == parse_audience(audience)
    assert token.expires_s == expires_s
    assert name in token.users
    assert signing_key(token, (other, key)) is key
    assert signing_key(token, (other,)) is None


@given(sdk=st.sampled_from(SDKS), at=st.integers(0, 400), byte=st.sampled_from("aZ0%&=+/~"))
def test_a_changed_token_is_refused(sdk: Any, at: int, byte: str) -> None:
    """Each character is signed, or part of the signature, or of the prefix; a name only finds another user."""
    text = sdk(KEY.key.decode(), "sb://host/orders", 2_000_000_000, "alice")
    at %= len(text)
    changed = text[:at] + byte + text[at + 1 :]
    found = broker(KEY).check_token(changed, "sb://host/orders", LOCAL_PEER, 1_000_000_000)
    before, after = parse_token(text), parse_token(changed)
    assert isinstance(found, Failure) or before == after


@given(text=st.one_of(st.text(max_size=200), TEXTS.map(lambda rest: f"SharedAccessSignature sr={rest}")))
def test_any_text_is_read_or_refused(text: str) -> None:
    """No text of a stranger raises."""
    parse_token(text)
    parse_audience(text)
    assert isinstance(broker(KEY).check_token(text, text, LOCAL_PEER, 0), Failure)


@pytest.mark.parametrize(
    ("resource", "address", "is_for"),
    [
        ("sb://h/", "anything", True),
        ("sb://h", "/topics/news.eu", True),
        ("sb://h/orders", "orders", True),
        ("sb://h/orders", "/queues/orders", True),
        ("amqps://h/queues/orders", "orders", True),
        ("sb://h/orders", "orders/Partitions/0", True),
        ("sb://h/orders", "orders2", False),
        ("sb://h/orders", "orders.eu", False),
        ("sb://h/orders/x", "orders", False),
        ("sb://h/topics/news.#", "/topics/news.#", True),
        ("sb://h/topics/news.#", "/topics/news.eu", False),
        ("sb://h/muxers/m", "/muxers/m/orders", True),
        ("sb://h/muxers/m", "/muxers/m2/orders", False),
        ("sb://h/$management", "$management", True),
        ("sb://h/orders", "$management", False),
    ],
)
def test_what_a_token_is_for(resource: str, address: str, is_for: bool) -> None:
    """Its address in each spelling, and the paths below it."""
    assert covers(parse_audience(resource).words, address_words(address)) is is_for


def test_what_is_refused() -> None:
    """An expired token, one for another audience or host, of a disabled user, of a user without keys."""
    good = python_token(KEY.key.decode(), "sb://h/orders", 100, "alice")
    assert not isinstance(broker(KEY).check_token(good, "sb://h/orders", LOCAL_PEER, 99), Failure)
    assert not isinstance(broker(KEY).check_token(good, "sb://h/orders/x", LOCAL_PEER, 99), Failure)
    for authenticator, audience, now_s in (
        (broker(KEY), "sb://h/orders", 100),
        (broker(KEY), "sb://h/", 99),
        (broker(KEY), "sb://h/other", 99),
        (broker(KEY), "sb://other/orders", 99),
        (broker(KEY, is_enabled=False), "sb://h/orders", 99),
        (broker(), "sb://h/orders", 99),
        (broker(new_key(b"x" * 32, 0)), "sb://h/orders", 99),
    ):
        assert isinstance(authenticator.check_token(good, audience, LOCAL_PEER, now_s), Failure)


def test_wrong_tokens_lock_their_address() -> None:
    """As wrong passwords do: the right token fails, too, for a remote peer."""
    authenticator = broker(KEY)
    good = python_token(KEY.key.decode(), "sb://h/orders", 100, "alice")
    bad = python_token("wrong", "sb://h/orders", 100, "alice")
    for _ in range(3):
        assert isinstance(authenticator.check_token(bad, "sb://h/orders", REMOTE, 0), Failure)
    assert isinstance(authenticator.check_token(good, "sb://h/orders", REMOTE, 0), Failure)
    assert not isinstance(authenticator.check_token(good, "sb://h/orders", LOCAL_PEER, 0), Failure)


def test_a_grant_ends_with_its_key() -> None:
    """And at its time."""
    authenticator = broker(KEY)
    grant = authenticator.check_token(
        python_token(KEY.key.decode(), "sb://h/orders", 100, "alice"), "sb://h/orders", LOCAL_PEER, 0
    )
    assert not isinstance(grant, Failure)
    assert authenticator.is_granted(grant, 99)
    assert not authenticator.is_granted(grant, 100)
    authenticator.users.put(User("alice", scram_verifier(b"word", (SALT, SALT), 4096)))
    assert not authenticator.is_granted(grant, 99)


def test_who_is_offered_tokens() -> None:
    """Peers whose bytes are hidden, where a user has a key; ANONYMOUS begins with a token only if it is configured."""
    encrypted = Peer("203.0.113.1", "203.0.113.1:5", is_local=False, is_encrypted=True)
    assert broker(KEY).mechanisms(encrypted)[-2:] == ("PLAIN", "MSSBCBS")
    assert "MSSBCBS" in broker(KEY).mechanisms(LOCAL_PEER)
    assert "MSSBCBS" not in broker(KEY).mechanisms(REMOTE)
    assert "MSSBCBS" not in broker().mechanisms(encrypted)
    assert "ANONYMOUS" not in broker(KEY).mechanisms(encrypted)
    assert broker(KEY).begin("ANONYMOUS", encrypted) is None
    sdk = broker(KEY, cbs_anonymous=True)
    assert sdk.mechanisms(encrypted)[-2:] == ("ANONYMOUS", "MSSBCBS")
    for authenticator, mechanism in ((broker(KEY), "MSSBCBS"), (sdk, "ANONYMOUS"), (sdk, "MSSBCBS")):
        exchange = authenticator.begin(mechanism, encrypted)
        assert exchange is not None
        found: list[Any] = []
        exchange.step(b"", found.append)
        assert found == [Success(Identity(awaits_token=True))]


def test_the_document_of_users_has_keys() -> None:
    """Version 2 with a key; without one the bytes are those of version 1, which older brokers read."""
    plain = User("bob", scram_verifier(b"word", (SALT, SALT), 4096))
    keyed = User("alice", plain.verifier, ("monitor",), True, (KEY, new_key(b"l" * 32, 6)))
    text = encode_users(b"s" * 32, (plain, keyed))
    assert b'"version":2' in text.splitlines()[0]
    assert decode_users(text).stored() == (plain, keyed)
    assert decode_users(text).has_keys
    old = encode_users(b"s" * 32, (plain,))
    assert b'"version":1' in old.splitlines()[0]
    assert b"keys" not in old
    assert not decode_users(old).has_keys
