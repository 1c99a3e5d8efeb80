"""The window of message-ids: bounded, by elapsed time, and the same after a snapshot."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ambermq.engine.entries.entry_word import make_words
from ambermq.engine.entries.id_digest import NO_DIGEST, digest_of
from ambermq.engine.model.queue_parts.id_window import FORGOTTEN_MAX, NO_IDS, IdWindow, window_of
from ambermq.snapshot.persistent_queue import EMPTY_QUEUE

_FOREVER = 1 << 60


def _filled(count: int, now_us: int = 0, *, ids_max: int = 1 << 20) -> IdWindow:
    words = make_words(10, [100] * count)
    return NO_IDS.add(words, b"".join(map(digest_of, range(count))), now_us, _FOREVER, ids_max)


def test_an_id_is_found_until_its_time_is_over() -> None:
    """With the word of its first message, which counts from its arrival."""
    window = _filled(2, 1000)
    word = int.from_bytes(make_words(11, [100]), "little")
    assert (window.find(digest_of(1), 1999, 1000), window.find(digest_of(1), 2000, 1000)) == (word, 0)
    assert window.find(digest_of("1"), 1000, 1000) == 0


def test_a_message_without_an_id_takes_no_place() -> None:
    """Only its neighbours are remembered."""
    window = NO_IDS.add(make_words(1, [1, 1]), NO_DIGEST + digest_of("a"), 0, _FOREVER, 10)
    assert (len(window), window.find(NO_DIGEST, 0, _FOREVER)) == (1, 0)


def test_a_step_forgets_a_limited_number() -> None:
    """However many are over, so that no tick takes long; those left are not found."""
    window = _filled(2000)
    after = window.add(make_words(5000, [1]), digest_of("new"), 5000, 1000, 1 << 20)
    assert len(after) == 2000 + 1 - FORGOTTEN_MAX - 2
    assert after.find(digest_of(1999), 5000, 1000) == 0
    for number in range(10):
        after = after.add(make_words(6000 + number, [1]), digest_of(f"{number}"), 5000, 1000, 1 << 20)
    assert len(after) == len(after.known) == 11


def test_the_oldest_go_beyond_the_maximum() -> None:
    """They are as many as the maximum from then on."""
    window = _filled(10, ids_max=4)
    assert [bool(window.find(digest_of(number), 0, _FOREVER)) for number in range(10)] == [False] * 6 + [True] * 4


def test_an_id_that_comes_again_after_its_window_is_the_later_one() -> None:
    """The end of the earlier one does not end it."""
    window = _filled(1).add(make_words(50, [1]), digest_of(0), 2000, 5000, 10)
    assert len(window) == 2
    window = window.add(make_words(60, [1]), digest_of("x"), 5000, 5000, 10)
    assert (len(window), window.find(digest_of(0), 5000, 5000) >> 16) == (2, 50)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 50)), max_size=30), st.integers(1, 5))
def test_a_snapshot_holds_all_of_it(arrivals: list[tuple[int, int]], ids_max: int) -> None:
    """`known` is derived from `order`."""
    window, now_us = NO_IDS, 0
    for number, (one, later_us) in enumerate(arrivals):
        now_us += later_us
        window = window.add(make_words(1 + number, [1]), digest_of(one), now_us, 60, ids_max)
        assert len(window) <= ids_max
    assert window_of(window.order) == window


def test_parts_of_ids_are_no_window() -> None:
    """A snapshot may hold anything."""
    with pytest.raises(ValueError, match="whole ids"):
        window_of(EMPTY_QUEUE.push(bytes(8)))
