"""Frames within the peer's max-frame-size: the texts of an error are cut if its frame is too long (transport, 2.7.1).

Rule 1. Transfers are cut elsewhere. Of other frames the texts of an error are shortened: first the end of the
        description, then info, then the whole description.
Rule 2. A frame that is still too long does not fit. Its writer then refuses what the frame was for.
"""

from collections.abc import Iterator
from dataclasses import replace

from ambermq.protocol.amqp10.framing.frames import encode_frame
from ambermq.protocol.amqp10.performatives.base import Composite
from ambermq.protocol.amqp10.performatives.classes import Close, Detach, Disposition, End, Error, Rejected

__all__ = ["fitted"]


def fitted(channel: int, performative: Composite, frame_bytes_max: int) -> bytes | None:
    """Return a frame of at most `frame_bytes_max` bytes; None if the performative does not fit."""
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
    """Yield shorter errors: with a cut description, then without info, then with the condition only."""
    text = (error.description or "").encode(errors="replace")
    yield Error(condition=error.condition, description=_cut(text, excess), info=error.info)
    yield Error(condition=error.condition, description=_cut(text, excess))
    yield Error(condition=error.condition)


def _cut(text: bytes, excess: int) -> str | None:
    return text[: max(0, len(text) - excess)].decode(errors="ignore") or None
