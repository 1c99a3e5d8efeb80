"""A one-time token gives its scope once, as long as its child lives."""

from ambermq.protocol.auth.identity import ManagementScope
from ambermq.tools.broker.one_time_tokens import OneTimeTokens

_SCOPE = ManagementScope("default", frozenset())
_OTHER = ManagementScope("other", frozenset())


def test_a_token_is_redeemed_once() -> None:
    """The second time there is none."""
    tokens = OneTimeTokens()
    first, second = tokens.issue(_SCOPE), tokens.issue(_OTHER)
    assert tokens.redeem(second) == _OTHER
    assert tokens.redeem(second) is None
    assert tokens.redeem(first) == _SCOPE


def test_what_is_no_token_is_refused() -> None:
    """Nothing, a part of one, and text that is no ASCII."""
    tokens = OneTimeTokens()
    token = tokens.issue(_SCOPE)
    assert [tokens.redeem(text) for text in ("", token[:-1], f"{token}0", "\u00e9", token.upper() + "X")] == [None] * 5


def test_a_revoked_token_is_refused() -> None:
    """Its child has ended; to revoke one that was redeemed does nothing."""
    tokens = OneTimeTokens()
    token = tokens.issue(_SCOPE)
    tokens.revoke(token)
    assert tokens.redeem(token) is None
    tokens.revoke(token)


def test_the_table_is_bounded() -> None:
    """The oldest token goes first, and each has 256 bits of its own."""
    tokens = OneTimeTokens()
    issued = [tokens.issue(_SCOPE) for _ in range(65)]
    assert {len(token) for token in issued} == {64}
    assert len({*issued}) == 65
    assert tokens.redeem(issued[0]) is None
    assert all(tokens.redeem(token) == _SCOPE for token in issued[1:])
