"""Messages with the defaults of Qpid Proton."""

from collections.abc import Callable
from typing import Final

from proton import Message

from tests.interop.matrix.proton.peer import connected

__all__ = ["BEHAVIOURS"]

_COUNT: Final = 3


def _messages() -> dict[str, list[Message]]:
    """Return the messages of each kind; their queue has the name of the kind."""
    numbers = range(_COUNT)
    return {
        "text": [Message(f"text {number}") for number in numbers],
        "binary": [Message(f"binary {number}".encode()) for number in numbers],
        "durable-text": [Message(f"text {number}", durable=True) for number in numbers],
        "durable-binary": [Message(f"binary {number}".encode(), durable=True) for number in numbers],
        "id-text": [Message(f"text {number}", durable=True, id=f"id {number}") for number in numbers],
    }


def _default_messages(url: str, _name: str) -> str:
    with connected(url) as peer:
        for kind, messages in _messages().items():
            sender = peer.blocking.create_sender(kind)
            for message in messages:
                sender.send(message)
    return ""


BEHAVIOURS: Final[dict[str, Callable[[str, str], str]]] = {"default-messages": _default_messages}
