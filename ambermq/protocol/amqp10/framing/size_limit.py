"""Frames that a peer takes: what is longer than its max-frame-size is told in fewer words (transport, 2.7.1).

Rule 1. A transfer is cut elsewhere. What else may be too long for a peer that takes 512 bytes is text: an error's
        description and info, which go, and then the description's end.
Rule 2. What has nothing to spare does not fit: whoever writes it refuses what it was to say.
"""

from collections.abc import Iterator
from dataclasses import replace

from ambermq.protocol.amqp10.framing.frames import encode_frame
from ambermq.protocol.amqp10.performatives.base import Composite
from ambermq.protocol.amqp10.performatives.classes import Close, Detach, Disposition, End, Error, Rejected

__all__ = ["fitted"]


def fitted(channel: int, performative: Composite, frame_bytes_max: int) -> bytes | None:
    """Write a frame of at most so many bytes; None where it cannot be said in them."""
    frame = encode_frame(channel, performative)
    if len(frame) <= frame_bytes_max:
        return frame
    for shorter in _shorter(performative, len(frame) - frame_bytes_max):
        frame = encode_frame(channel, shorter)
        if len(frame) <= frame_bytes_max:
            return frame
    return None


def _shorter(performative: Composite, excess: int) -> Iterator[Composite]:
    match performative:
        case Close(error=Error() as error) | Detach(error=Error() as error) | End(error=Error() as error):
            for fewer in _fewer_words(error, excess):
                yield replace(performative, error=fewer)
        case Disposition(state=Rejected(error=Error() as error) as state):
            for fewer in _fewer_words(error, excess):
                yield replace(performative, state=replace(state, error=fewer))


def _fewer_words(error: Error, excess: int) -> Iterator[Error]:
    """Yield an error with less to say: cut, without info, and with nothing but its condition."""
    text = (error.description or "").encode(errors="replace")
    yield Error(condition=error.condition, description=_cut(text, excess), info=error.info)
    yield Error(condition=error.condition, description=_cut(text, excess))
    yield Error(condition=error.condition)


def _cut(text: bytes, excess: int) -> str | None:
    return text[: max(0, len(text) - excess)].decode(errors="ignore") or None
