"""Numbers over time as one line of blocks. Pure: values in, text out."""

from collections.abc import Sequence
from typing import Final

__all__ = ["spark"]

_BLOCKS: Final = "▁▂▃▄▅▆▇█"
_PLAIN: Final = ".:-=+*%#"


def spark(values: Sequence[float | None], *, encoding: str = "utf-8") -> str:
    """Return one block character for each value: zero is the lowest block, the largest value the highest.

    None is a gap. The characters are ASCII if `encoding` has no blocks.
    """
    blocks = _BLOCKS if _is_encodable(_BLOCKS, encoding) else _PLAIN
    top = max((value for value in values if value is not None), default=0)
    return "".join(" " if value is None else _block(blocks, value, top) for value in values)


def _block(blocks: str, value: float, top: float) -> str:
    share = value / top if top > 0 else 0.0
    return blocks[min(len(blocks) - 1, int(share * (len(blocks) - 1) + 0.5))]


def _is_encodable(text: str, encoding: str) -> bool:
    try:
        text.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return False
    return True
