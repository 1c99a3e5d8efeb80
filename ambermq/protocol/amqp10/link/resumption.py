"""The resumption of a link's deliveries (transport, 2.6.13): the unsettled maps, and what a sender does with each.

    sender's state     receiver's state          what the sender does
    none, Received     absent                    sends the whole delivery as a new one
    none, Received     none, Received            resumes it from the receiver's position
    Received           an earlier position       aborts it: it has not the data any more
    none, Received     terminal                  takes the outcome over, and settles
    terminal           absent, or the same       settles
    terminal           none, Received            aborts it: the receiver cannot have the whole of it
    terminal           another terminal          restates its own, and settles

Rule 1. A state of none is that of a delivery of which nothing is known to have arrived: Received(0, 0).
Rule 2. The receiver ignores a resumed delivery that is not in its map. So what it does not have is sent as a new one.
Rule 3. A map that does not fit into a frame is cut, and marked as incomplete. The absence of a tag proves nothing then.
"""

from collections.abc import Mapping
from enum import Enum
from typing import Any, Final

from ambermq.protocol.amqp10.errors import DecodeError
from ambermq.protocol.amqp10.message.sections import SectionScanner, section_end
from ambermq.protocol.amqp10.performatives.classes import (
    Accepted,
    Attach,
    DeliveryState,
    Modified,
    Received,
    Rejected,
    Released,
)
from ambermq.protocol.amqp10.performatives.read import decode_composite
from ambermq.protocol.amqp10.types.decode import Buffer
from ambermq.protocol.amqp10.types.encode import encode

__all__ = [
    "ABSENT",
    "Resumption",
    "UnsettledMap",
    "is_terminal",
    "offset_in",
    "payload_from",
    "resumption_of",
    "unsettled_of",
]

UnsettledMap = Mapping[bytes, DeliveryState | None]
"""The states of deliveries by their tags."""
_TERMINAL: Final = (Accepted, Rejected, Released, Modified)
_START: Final = (0, 0)
_LARGEST: Final = 1 << 62
"""No section ends behind it."""


class _Absent(Enum):
    ABSENT = 0


ABSENT: Final = _Absent.ABSENT
"""The receiver has no delivery of a tag."""


class Resumption(Enum):
    """What a sender does with one delivery."""

    SEND = 0
    """Send it as a new delivery."""
    RESUME = 1
    """Resume it from the receiver's position."""
    ABORT = 2
    """Resume it, aborted."""
    ADOPT = 3
    """Take the receiver's outcome over, and settle it."""
    SETTLE = 4
    """Settle it."""
    RESTATE = 5
    """Resume it with the own outcome, which counts, and settle it."""


def is_terminal(state: object) -> bool:
    """Return whether a delivery state is an outcome."""
    return isinstance(state, _TERMINAL)


def resumption_of(sender: DeliveryState | None, receiver: DeliveryState | _Absent | None) -> Resumption:
    """Return what a sender does with a delivery, by the states in both unsettled maps."""
    if is_terminal(sender):
        if receiver is ABSENT or sender == receiver:
            return Resumption.SETTLE
        return Resumption.RESTATE if is_terminal(receiver) else Resumption.ABORT
    if receiver is ABSENT:
        return Resumption.SEND
    if is_terminal(receiver):
        return Resumption.ADOPT
    # A position at the sender is the first one that it can still send.
    return Resumption.ABORT if _position(sender) > _position(receiver) else Resumption.RESUME


def _position(state: object) -> tuple[int, int]:
    return (state.section_number, state.section_offset) if isinstance(state, Received) else _START


def unsettled_of(attach: Attach) -> UnsettledMap | None:
    """Return the unsettled map of a peer's attach; None if it has none.

    Raises DecodeError for one that is no map of states by binary tags.
    """
    found: Any = attach.unsettled
    if found is None:
        return None
    if not isinstance(found, dict) or not all(type(tag) is bytes and len(tag) <= 32 for tag in found):
        raise DecodeError("the keys of an unsettled map are binary, of at most 32 bytes")
    return {tag: None if state is None else _state_of(state) for tag, state in found.items()}


def _state_of(value: Any) -> DeliveryState:
    if isinstance(value, (*_TERMINAL, Received)):
        return value
    encoded = encode(value)
    state, _ = decode_composite(encoded, 0, len(encoded))
    return state  # type: ignore[return-value]  # another composite is no outcome, and counts as no state


def payload_from(message: Buffer, state: DeliveryState | None) -> tuple[Buffer, Received | None]:
    """Return what a receiver with this state has not received of a message, and where that begins.

    It is the whole message, from None on, if the state is none or names no position in the message.
    """
    if not isinstance(state, Received) or _position(state) == _START:
        return message, None
    try:
        scanner, start = SectionScanner(message), 0
        for _ in range(state.section_number):
            if not scanner.next_code():
                return message, None
            start = scanner.skip()
        size = (scanner.skip() if scanner.next_code() else len(message)) - start
    except DecodeError:
        return message, None
    if state.section_offset > size:
        return message, None
    return memoryview(message)[start + state.section_offset :], state


def offset_in(head: Buffer, state: DeliveryState | None) -> int:
    """Return how many bytes of a message in pieces, whose first one is `head`, a receiver with this state has.

    It is 0 if the state is none, or names no position in a section that begins in the first piece.
    """
    if not isinstance(state, Received) or _position(state) == _START:
        return 0
    try:
        scanner, start = SectionScanner(head), 0
        for _ in range(state.section_number):
            if not scanner.next_code():
                return 0
            start = scanner.skip()
        code = scanner.next_code()
        size = section_end(head, scanner.value_start, _LARGEST, code) - start if code else 0
    except DecodeError:
        return 0
    return start + state.section_offset if state.section_offset < size else 0
