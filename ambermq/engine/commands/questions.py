"""Commands that ask: they change nothing."""

from collections.abc import Callable
from typing import Any, final

from msgspec import Struct

from ambermq.engine.model.state import State
from ambermq.log.buffer import Buffer

__all__ = ["ExplainRoute", "Inspect", "NoteBrowser"]


@final
class Inspect(Struct):
    """Answer with the result of `read` on the state, when that state is durable."""

    key: Any
    read: Callable[[State], Any]
    queue: str = ""
    """The name of the queue that it reads, which is a use of that queue; empty for none."""


@final
class NoteBrowser(Struct):
    """Note that a link begins or ends to browse a queue. It has no answer."""

    queue: int
    count: int
    """1: a link begins; -1: a link ends."""


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
