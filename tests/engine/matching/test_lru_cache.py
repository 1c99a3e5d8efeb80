"""What is remembered is bounded in number and weight, and what was asked for longest ago goes first."""

from ambermq.engine.matching.lru_cache import LruCache


def test_the_answer_asked_for_longest_ago_goes_first() -> None:
    """Asking for an answer keeps it."""
    recent: LruCache[str, int] = LruCache(2, 100)
    recent.put("a", 1, 1)
    recent.put("b", 2, 1)
    assert recent.get("a") == 1
    recent.put("c", 3, 1)
    assert [recent.get(key) for key in "abc"] == [1, None, 3]


def test_weight_is_bounded() -> None:
    """A heavy answer pushes out several; one that is too heavy is not remembered and pushes out none."""
    recent: LruCache[str, int] = LruCache(10, 10)
    for key in "abc":
        recent.put(key, 1, 3)
    recent.put("d", 1, 7)
    assert [recent.get(key) for key in "abcd"] == [None, None, 1, 1]
    recent.put("e", 1, 11)
    assert recent.get("e") is None
    assert recent.get("d") == 1


def test_what_is_cleared_weighs_nothing() -> None:
    """As much is remembered afterwards as before."""
    recent: LruCache[str, int] = LruCache(10, 10)
    recent.put("a", 1, 10)
    recent.clear()
    assert recent.get("a") is None
    recent.put("b", 1, 10)
    assert len(recent) == 1


def test_nothing_is_remembered_where_nothing_may_be() -> None:
    """A bound of 0 turns it off."""
    recent: LruCache[str, int] = LruCache(0, 0)
    recent.put("a", 1, 1)
    recent.put("b", 1, 0)
    assert len(recent) == 0
