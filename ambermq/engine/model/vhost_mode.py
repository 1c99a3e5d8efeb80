"""What a virtual host has before anybody wires it.

    AUTOMATIC   the muxers QUEUE and TOPIC; an address makes its queue, which is attached to QUEUE by its name
    ADVANCED    nothing, and nothing is made that nobody has declared: no plain addresses, no topics, no dynamic nodes

Rule: it is said by the first Started event and never changes; a reset keeps it.
"""

from enum import IntEnum

from ambermq.engine.errors import Refused

__all__ = ["VhostMode", "mode_named"]


class VhostMode(IntEnum):
    """Of a virtual host. The numbers are on disk and never change meaning."""

    AUTOMATIC = 0
    ADVANCED = 1

    @property
    def text(self) -> str:
        """As people write it."""
        return self.name.lower()


def mode_named(text: object) -> VhostMode:
    """Return a mode by what people call it. Raises Refused."""
    for mode in VhostMode:
        if text == mode.text:
            return mode
    known = " or ".join(mode.text for mode in VhostMode)
    raise Refused("amqp:invalid-field", f"a virtual host's mode is {known}, found {text!r:.80}")
