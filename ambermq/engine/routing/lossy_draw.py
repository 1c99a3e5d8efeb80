"""The lossy draw: a function of the seed, the name of the muxer and the number of the draw."""

from hashlib import blake2b
from struct import Struct
from typing import Final

__all__ = ["passes"]

_KEY: Final = Struct("<qq")
_WHOLE: Final = float(1 << 64)


def passes(seed: int, muxer: str, number: int, probability: float) -> bool:
    """Return whether a LOSSY muxer keeps a message. `number` counts its draws from 0, `muxer` is its name.

    The name is used, not the id, so that the same wiring on another broker makes the same choices.
    """
    digest = blake2b(_KEY.pack(seed, number) + muxer.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") < probability * _WHOLE
