"""Transactions: what is sent and accepted in one."""

from collections.abc import Callable
from typing import Final

from proton import Message

from tests.interop.matrix.proton.peer import check, connected, left, send
from tests.interop.proton_transactions import Session, posting, taking

__all__ = ["BEHAVIOURS"]


def _transaction(url: str, name: str) -> str:
    steps = [posting("a", commits=True), posting("x", commits=False), posting("b", commits=True)]
    check(["committed", "aborted", "committed"], Session(url, name, steps).run(), "how transactions ended")
    check(["aborted"], Session(url, name, [taking(commits=False)], takes=1).run(), "how a transaction ended")
    check(["committed"], Session(url, name, [taking(commits=True)], takes=1).run(), "how a transaction ended")
    with connected(url) as peer:
        send(peer, name, Message("end", durable=True))
    check(["b", "end"], left(url, name), "what is left")
    return ""


BEHAVIOURS: Final[dict[str, Callable[[str, str], str]]] = {"transaction": _transaction}
