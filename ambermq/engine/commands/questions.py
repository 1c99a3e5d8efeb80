"""Commands that ask: they change nothing."""

from collections.abc import Callable
from typing import Any, final

from msgspec import Struct

from ambermq.engine.model.state import State
from ambermq.log.buffer import Buffer

__all__ = ["ExplainRoute", "Inspect"]


@final
class Inspect(Struct):
    """Answer with the result of `read` on the state, when that state is durable."""

    key: Any
    read: Callable[[State], Any]


@final
class ExplainRoute(Struct):
    """Answer with the result of `read` on the route of a message (engine/decide/explain_route.py); publish nothing."""

    key: Any
    address: str
    """The address; empty: the address in the message's `to`."""
    body: Buffer
    """The message; only the fields that matching reads are needed."""
    read: Callable[[State, Any], Any]
    """A function from the state and the Explained to the answer."""
