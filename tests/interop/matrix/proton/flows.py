"""Credit, drain, and a connection that comes back."""

import sys
from collections.abc import Callable
from typing import Any, Final

from proton import Message
from proton.handlers import MessagingHandler
from proton.reactor import Backoff, Container

from tests.interop.matrix.driver import RESTART
from tests.interop.matrix.proton.peer import check, connected, drained, left, send

__all__ = ["BEHAVIOURS"]

_COUNT = 100


def _credit(url: str, name: str) -> str:
    texts = [str(number) for number in range(10)]
    with connected(url) as peer:
        send(peer, name, *texts)
        receiver = peer.receiver(name)
        receiver.link.flow(3)
        check(texts[:3], [got.message.body for got in receiver.wait(3)], "what credit for three brings")
        # Another receiver takes the rest: nothing was on its way beyond the credit.
        check(texts[3:], left(url, name), "what is left")
        send(peer, name, "later")
        check("later", receiver.next().message.body, "what more credit brings")
    return ""


def _drain(url: str, name: str) -> str:
    with connected(url) as peer:
        receiver = peer.receiver(name)
        check([], drained(receiver, 5), "what an empty queue has")
        send(peer, name, "a", "b", "c")
        check(["a", "b"], drained(receiver, 2), "what there is credit for")
        check(["c"], drained(receiver, 50), "what is there")
        send(peer, name, "d")
        check(["d"], drained(receiver, 1), "what comes after a drain")
    return ""


class _Sending(MessagingHandler):
    """Sends, has the broker restarted half way, and sends what was not accepted when proton is back."""

    def __init__(self, url: str, address: str) -> None:
        super().__init__()
        self._url = url
        self._address = address
        self._unsent = list(range(_COUNT))
        self._under_way: dict[Any, int] = {}
        self._accepted = 0

    def on_start(self, event: Any) -> None:
        """Connect, again whenever that ends."""
        connection = event.container.connect(self._url, reconnect=Backoff(), allowed_mechs="ANONYMOUS")
        event.container.create_sender(connection, self._address)

    def on_sendable(self, event: Any) -> None:
        """Send half of them before the restart, the rest after it."""
        keep = 0 if self._accepted >= _COUNT // 2 else _COUNT // 2
        while event.sender.credit and len(self._unsent) > keep:
            number = self._unsent.pop(0)
            self._under_way[event.sender.send(Message(f"message {number}", durable=True))] = number

    def on_accepted(self, event: Any) -> None:
        """Count; the broker is restarted when nothing is under way."""
        del self._under_way[event.delivery]
        self._accepted += 1
        if self._accepted == _COUNT // 2:
            print(RESTART, flush=True)
            sys.stdin.readline()
        if self._accepted == _COUNT:
            event.connection.close()

    def on_disconnected(self, event: Any) -> None:
        """Have what was under way sent again."""
        self._unsent = [*self._under_way.values(), *self._unsent]
        self._under_way.clear()


def _reconnect(url: str, name: str) -> str:
    Container(_Sending(url, name)).run()
    check([f"message {number}" for number in range(_COUNT)], left(url, name), "what comes")
    return "by itself: the container reconnects"


BEHAVIOURS: Final[dict[str, Callable[[str, str], str]]] = {
    "credit": _credit,
    "drain": _drain,
    "reconnect": _reconnect,
}
