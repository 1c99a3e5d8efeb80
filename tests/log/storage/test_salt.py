"""The salt of a segment."""

from ambermq.log.storage.salt import draw_salt


def test_salts_differ() -> None:
    """A salt is drawn from 32 bits."""
    salts = {draw_salt() for _ in range(100)}
    assert len(salts) > 90
    assert all(0 <= salt < 2**32 for salt in salts)
