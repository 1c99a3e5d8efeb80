"""The columns of an entry after outcomes."""

from hypothesis import given
from hypothesis import strategies as st

from ambermq.engine.entries.entry import PLAIN, Entry, merge_annotations
from ambermq.engine.entries.outcome import Outcome, OutcomeKind

PAIRS = st.dictionaries(st.binary(max_size=3), st.binary(max_size=5), max_size=5).map(
    lambda pairs: tuple(sorted(pairs.items()))
)


@given(old=PAIRS, new=PAIRS)
def test_annotations_are_merged_by_key(
    old: tuple[tuple[bytes, bytes], ...], new: tuple[tuple[bytes, bytes], ...]
) -> None:
    """The new value wins, pairs stand in the order of their keys."""
    merged = merge_annotations(old, new, bytes_max=1000)
    assert dict(merged) == {**dict(old), **dict(new)}
    assert list(merged) == sorted(merged)


def test_annotations_have_a_limit() -> None:
    """What would exceed it leaves the old ones as they are; exactly at it they merge."""
    old, new = ((b"a", b"1"),), ((b"b", b"22"),)
    assert merge_annotations(old, new, bytes_max=5) == (*old, *new)
    assert merge_annotations(old, new, bytes_max=4) == old


def test_exclusions_have_a_limit_and_drop_the_oldest() -> None:
    """Each consumer stands there once."""
    here = Outcome(OutcomeKind.MODIFIED, undeliverable_here=True)
    entry = PLAIN
    for consumer in (1, 2, 1, 3, 4):
        entry = entry.modified(here, consumer, exclusions_max=3, annotations_bytes_max=0)
    assert entry == Entry(0, (2, 3, 4))


def test_only_delivery_failed_counts() -> None:
    """A count rises by one with delivery-failed alone; chunks stay."""
    entry = Entry(2, (5,), ((b"k", b"v"),), (7, 8))
    plain, failed = Outcome(OutcomeKind.MODIFIED), Outcome(OutcomeKind.MODIFIED, delivery_failed=True)
    assert entry.modified(plain, 9, exclusions_max=3, annotations_bytes_max=9) == entry
    assert entry.modified(failed, 9, exclusions_max=3, annotations_bytes_max=9) == Entry(
        3, (5,), ((b"k", b"v"),), (7, 8)
    )
