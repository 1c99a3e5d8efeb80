"""A configuration that cannot work is refused with one clear message."""

from dataclasses import fields

import pytest

from ambermq.log.config import LogConfig
from ambermq.log.errors import LogError


def test_the_defaults_work() -> None:
    """Everything has a limit, and the limits go together."""
    config = LogConfig()
    assert config.segment_bytes_min <= config.segment_bytes_max
    assert all(field.name.endswith(("_max", "_min", "_target", "_bytes")) for field in fields(config))


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("segment_bytes_max", 4096, "segment_bytes_max must be at least 4194304 (segment_bytes_min), not 4096"),
        ("segment_bytes_max", 1 << 50, "segment_bytes_max must be at most 1099511627776, not 1125899906842624"),
        ("segment_bytes_min", 0, "segment_bytes_min must be at least 8192, not 0"),
        ("segment_age_ms_max", 0, "segment_age_ms_max must be at least 1, not 0"),
        ("batch_bytes_target", 1, "batch_bytes_target must be at least 4096, not 1"),
        (
            "batch_bytes_max",
            1 << 20,
            "batch_bytes_max must be at least 2097152 (twice batch_bytes_target), not 1048576",
        ),
        ("batch_bytes_max", 1 << 31, "batch_bytes_max must be at most 1073741824, not 2147483648"),
        ("unsynced_bytes_max", 1, "unsynced_bytes_max must be at least 4096, not 1"),
        ("hot_bytes_max", -1, "hot_bytes_max must be a whole number, at least 0, not -1"),
        ("ballast_bytes", 1.5, "ballast_bytes must be a whole number, at least 0, not 1.5"),
        ("cold_bytes_max", True, "cold_bytes_max must be a whole number, at least 0, not True"),
        ("cached_bytes_max", "1", "cached_bytes_max must be a whole number, at least 0, not '1'"),
    ],
)
def test_what_cannot_work_is_named(name: str, value: int, message: str) -> None:
    """The message has the setting's name, the bound, its reason and the value."""
    with pytest.raises(LogError) as refusal:
        LogConfig(**{name: value})
    assert str(refusal.value) == message
