"""The mode of a virtual host: which wiring it has without a declaration.

    AUTOMATIC   the muxers QUEUE and TOPIC; an address creates its queue, which is attached to QUEUE by its name
    ADVANCED    none; everything must be declared: no plain addresses, no topics, no dynamic nodes

Rule: the first Started event records the mode. It never changes, and a reset keeps it.
"""

from enum import IntEnum

from ambermq.engine.errors import Refused

__all__ = ["VhostMode", "mode_named"]


class VhostMode(IntEnum):
    """The modes of a virtual host. The numbers are on disk and never change meaning."""

    AUTOMATIC = 0
    ADVANCED = 1

    @property
    def text(self) -> str:
        """The mode in text form, such as `automatic`."""
        return self.name.lower()


def mode_named(text: object) -> VhostMode:
    """Return the mode of a text form. Raises Refused."""
    for mode in VhostMode:
        if text == mode.text:
            return mode
    known = " or ".join(mode.text for mode in VhostMode)
    raise Refused("amqp:invalid-field", f"mode of a virtual host: expected {known}, found {text!r:.80}")
