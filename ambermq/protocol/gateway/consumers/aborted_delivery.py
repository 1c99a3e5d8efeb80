"""The outcome that a receiver says of deliveries of which the last one is not complete.

The broker aborts that delivery, and so it is settled (transport, 2.7.5). The ones before it are not, unless their
receiver has settled them.
"""

from msgspec.structs import replace

from ambermq.protocol.amqp10.events import Disposed
from ambermq.protocol.amqp10.serial_number import MASK

__all__ = ["split_at_aborted"]


def split_at_aborted(event: Disposed) -> tuple[Disposed | None, Disposed]:
    """Return the outcome of the deliveries before the last one, and that of the last; None if one event has both."""
    if event.settled:
        return None, event
    count = len(event.tokens) - 1
    last = replace(event, first_id=(event.first_id + count) & MASK, tokens=event.tokens[count:], settled=True)
    return (replace(event, tokens=event.tokens[:count]) if count else None), last
