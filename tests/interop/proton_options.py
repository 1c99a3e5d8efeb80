"""Options of proton's receivers and senders that its own library has no class for."""

from typing import Any

from proton import Data, Described, symbol, ulong
from proton.reactor import Filter, LinkOption

__all__ = ["NO_LOCAL", "Capable", "Dynamic", "NoSource"]

NO_LOCAL = Filter({symbol("no-local"): Described(ulong(0x0000468C00000003), "NoLocalFilter{}")})
"""As Qpid JMS writes it."""


class Capable(LinkOption):
    """Capabilities of the terminus that the broker is to give."""

    def __init__(self, *capabilities: str) -> None:
        self._capabilities = capabilities

    def apply(self, link: Any) -> None:
        _put_symbols((link.source if link.is_receiver else link.target).capabilities, self._capabilities)


class NoSource(LinkOption):
    """No source at all: whatever durable subscription has the link's name."""

    def apply(self, link: Any) -> None:
        link.source.type = 0


class Dynamic(LinkOption):
    """A node that the broker names, with a policy of its life by its code, and capabilities."""

    def __init__(self, policy: int | None = None, *capabilities: str) -> None:
        self._policy = policy
        self._capabilities = capabilities

    def apply(self, link: Any) -> None:
        terminus = link.source if link.is_receiver else link.target
        terminus.dynamic = True
        terminus.address = None
        if self._policy is not None:
            terminus.properties.put_dict({symbol("lifetime-policy"): Described(ulong(self._policy), [])})
        _put_symbols(terminus.capabilities, self._capabilities)


def _put_symbols(data: Any, names: tuple[str, ...]) -> None:
    if names:
        data.put_array(False, Data.SYMBOL)
        data.enter()
        for name in names:
            data.put_symbol(symbol(name))
        data.exit()
