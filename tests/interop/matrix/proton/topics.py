"""Topics, temporary ones, and subscriptions."""

from collections.abc import Callable
from typing import Final

from proton.reactor import DurableSubscription, Selector

from tests.interop.matrix.proton.peer import check, coloured, connected, drained, send
from tests.interop.proton_options import Capable, Dynamic

__all__ = ["BEHAVIOURS"]


def _topic(url: str, name: str) -> str:
    address = f"/topics/{name}"
    with connected(url) as peer:
        one, two = peer.receiver(address, name="one"), peer.receiver(address, name="two")
        send(peer, address, "news")
        check(["news"], drained(one), "what the first gets")
        check(["news"], drained(two), "what the second gets")
    return ""


def _temporary_topic(url: str, name: str) -> str:
    with connected(url) as peer, connected(url) as other:
        made = peer.sender(None, options=Dynamic(None, "temporary-topic"))
        address = made.link.remote_target.address
        one, two = peer.receiver(address, name="one"), peer.receiver(address, name="two")
        send(other, address, name)
        check([name], drained(one), "what the first gets")
        check([name], drained(two), "what the second gets")
    return "by a dynamic target with the capability temporary-topic"


def _durable_subscription(url: str, name: str) -> str:
    address, options = f"/topics/{name}", [DurableSubscription(), Selector("colour = 'red'")]
    with connected(url) as sender:
        with connected(url, name) as peer:
            peer.receiver(address, name="mine", options=options)
        send(sender, address, coloured("rose", "red"), coloured("brick", "red"))
        with connected(url, name) as peer:
            again = peer.receiver(address, name="mine", options=options)
            check(["rose", "brick"], drained(again), "what has waited")
            send(sender, address, coloured("left behind", "red"))
            again.close()
            fresh = peer.receiver(address, name="mine", options=options)
            check([], drained(fresh), "what an ended subscription has kept")
            fresh.close()
    return "with a selector; closing the connection leaves it, closing the link ends it"


def _shared_subscription(url: str, name: str) -> str:
    for is_durable in (False, True):
        _share(url, f"/topics/{name}.{is_durable}", is_durable=is_durable)
    return "volatile and durable, by the capabilities shared and global"


def _share(url: str, address: str, *, is_durable: bool) -> None:
    options = [Capable("topic", "shared", "global"), *([DurableSubscription()] if is_durable else [])]
    sent = [f"message {number}" for number in range(10)]
    with connected(url) as first, connected(url) as second:
        one = first.receiver(address, name="ours", options=options)
        two = second.receiver(address, name="ours", options=options)
        send(first, address, *sent)
        got = drained(one, 5)
        check(5, len(got), "how many the first has")
        check(sent, sorted(got + drained(two)), "what both have, each message once")
        two.close()
        one.close()


BEHAVIOURS: Final[dict[str, Callable[[str, str], str]]] = {
    "topic": _topic,
    "temporary-topic": _temporary_topic,
    "durable-subscription": _durable_subscription,
    "shared-subscription": _shared_subscription,
}
