"""When a message is delivered: its priority, its time to live, its delivery delay."""

import time
from collections.abc import Callable
from typing import Final

from proton import Delivery, Message, symbol

from tests.interop.matrix.proton.peer import check, connected, drained, left, send

__all__ = ["BEHAVIOURS"]

_LEVELS: Final = range(10)
_SHORT_SECONDS: Final = 0.3
_DELAY_MS: Final = 1000


def _priority(url: str, name: str) -> str:
    with connected(url) as peer:
        send(peer, name, *(Message(f"level {level}", durable=True, priority=level) for level in _LEVELS))
        check([f"level {level}" for level in reversed(_LEVELS)], drained(peer.receiver(name)), "the order")
    return ""


def _expiry(url: str, name: str) -> str:
    with connected(url) as peer:
        send(peer, name, Message("short", durable=True, ttl=_SHORT_SECONDS), "long")
        time.sleep(2 * _SHORT_SECONDS)
    check(["long"], left(url, name), "what is left")
    return ""


def _delivery_delay(url: str, name: str) -> str:
    with connected(url) as peer:
        receiver = peer.receiver(name, credit=2)
        began = time.monotonic()
        send(peer, name, Message("late", durable=True, annotations={symbol("x-opt-delivery-delay"): _DELAY_MS}))
        send(peer, name, "at once")
        got = receiver.wait(2)
        check(["at once", "late"], [one.message.body for one in got], "what comes")
        check(True, time.monotonic() - began >= _DELAY_MS / 1000, "it comes after its delay")
        for one in got:
            one.settle(Delivery.ACCEPTED)
    return "by x-opt-delivery-delay"


BEHAVIOURS: Final[dict[str, Callable[[str, str], str]]] = {
    "priority": _priority,
    "expiry": _expiry,
    "delivery-delay": _delivery_delay,
}
