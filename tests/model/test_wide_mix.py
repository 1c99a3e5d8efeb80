"""Random mixes with large messages, a muxer and suspended links: the laws of mix.py hold."""

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.model.wide_mix import WideMix


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 1 << 32))
def test_the_laws_hold_for_every_wide_mix(seed: int) -> None:
    """After each tick; the seed repeats the run: WideMix(seed).run(40)."""
    mix = WideMix(seed)
    mix.run(40)
    mix.end()


def test_the_wide_mixes_reach_what_they_add() -> None:
    """Large messages are read and cut through, messages fan out, and links that hold something are resumed."""
    large = fanned = resumed = read = 0
    early = Counter[str]()
    for seed in range(6):
        mix = WideMix(seed)
        mix.run(60)
        mix.end()
        large += mix.large
        fanned += mix.fanned
        resumed += mix.resumed
        read += mix.read_large
        early += mix.early.ends
    assert set(early) == {"completed", "aborted", "given up"}
    assert min(large, fanned, resumed, read) > 0, (large, fanned, resumed, read)
