"""Room that open transactions keep."""

from ambermq.engine.transactions.reservations import Reservations


def test_what_is_kept_is_given_back() -> None:
    """Queue by queue; without room kept there is no trace."""
    kept = Reservations()
    kept.add((1, 2), 3, 30)
    kept.add((2,), 1, 5)
    assert (kept.counts, kept.sizes) == ({1: 3, 2: 4}, {1: 30, 2: 35})
    kept.remove((1, 2), 3, 30)
    assert (kept.counts, kept.sizes) == ({2: 1}, {2: 5})
    kept.remove((2,), 1, 5)
    assert not kept
    assert not kept.sizes
