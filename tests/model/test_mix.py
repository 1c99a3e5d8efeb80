"""Random mixes of settings under random commands: no message is lost or doubled, order and limits hold."""

from collections import Counter

from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.model.mix import VALUES, Mix


@settings(max_examples=30, deadline=None)
@example(4).via("scheduled messages with the time to live of their queue come to an empty tail together")
@example(91).via("two looks of one dispatch at an expired message")
@given(st.integers(0, 1 << 32))
def test_the_laws_hold_for_every_mix(seed: int) -> None:
    """After each tick; the seed repeats the run: Mix(seed).run(60)."""
    mix = Mix(seed)
    mix.run(60)
    mix.end()


def test_the_mixes_reach_every_setting_and_end() -> None:
    """A run has each setting on, and messages that end for each reason."""
    used, ends, duplicates = Counter[str](), Counter[str](), 0
    for seed in range(20):
        mix = Mix(seed)
        mix.run(60)
        mix.end()
        used += mix.used
        ends += mix.ledger.ends
        duplicates += mix.ledger.duplicates
    assert set(used) == set(VALUES)
    expected = {"accepted", "rejected", "expired", "delivery-count", "length", "replaced", "due", "redriven", "moved"}
    assert expected | {"purged", "cancelled", "deleted"} <= set(ends), ends
    assert duplicates > 0
