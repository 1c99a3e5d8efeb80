"""Durations as text for people."""

from typing import Final

__all__ = ["duration_text"]

_SMALL: Final = ((1_000_000, "s"), (1_000, "ms"))
_LARGE: Final = ((86_400, "d"), (3_600, "h"), (60, "min"))


def duration_text(duration_us: int) -> str:
    """Return a duration as text: `12 us`, `3.40 ms`, `12.5 s`, `2 min 3 s`, `3 h 20 min`, `4 d 3 h`.

    The text of a negative duration, as after a step of the clock, begins with a minus sign.
    """
    if duration_us < 0:
        return f"-{duration_text(-duration_us)}"
    if duration_us < 1_000:
        return f"{duration_us} us"
    if duration_us < 60_000_000:
        unit_us, name = next(unit for unit in _SMALL if duration_us >= unit[0])
        value = duration_us / unit_us
        return f"{value:.{2 if value < 10 else 1 if value < 100 else 0}f} {name}"
    units = [*_LARGE, (1, "s")]
    seconds = duration_us // 1_000_000
    at = next(index for index, unit in enumerate(_LARGE) if seconds >= unit[0])
    whole, rest = divmod(seconds, units[at][0])
    smaller = rest // units[at + 1][0]
    return f"{whole} {units[at][1]}" + (f" {smaller} {units[at + 1][1]}" if smaller else "")
