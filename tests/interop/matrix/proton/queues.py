"""Queues: sending, receiving, outcomes, browsing, selectors, temporary ones, the anonymous relay."""

from collections.abc import Callable
from typing import Any, Final

from proton import Delivery, Message, symbol
from proton.reactor import Copy, Selector

from tests.interop.matrix.proton.peer import check, coloured, connected, drained, left, send
from tests.interop.proton_peer import Got

__all__ = ["BEHAVIOURS"]

_COUNT = 10


def _send(url: str, name: str) -> str:
    with connected(url) as peer:
        send(peer, name, *(f"message {number}" for number in range(_COUNT)))
    return ""


def _receive(url: str, name: str) -> str:
    sent = [
        Message(
            f"message {number}",
            durable=True,
            priority=7,
            id=f"id {number}",
            correlation_id=number,
            subject="subject",
            properties={"number": number},
        )
        for number in range(_COUNT)
    ]
    with connected(url) as peer:
        send(peer, name, *sent)
        receiver = peer.receiver(name, credit=_COUNT)
        for expected, got in zip(sent, receiver.wait(_COUNT), strict=True):
            check(_facts(expected), _facts(got.message), "message")
            got.settle(Delivery.ACCEPTED)
        check([], drained(receiver), "what is left")
    return ""


def _facts(message: Message) -> list[Any]:
    named = [message.id, message.correlation_id, message.subject, message.properties]
    return [message.body, message.durable, message.priority, *named]


def _accepted(url: str, name: str) -> str:
    with connected(url) as peer:
        send(peer, name, "a")
        peer.receiver(name).next().settle(Delivery.ACCEPTED)
    check([], left(url, name), "what is left")
    return ""


def _rejected(url: str, name: str) -> str:
    with connected(url) as peer:
        send(peer, name, "a", "b")
        receiver = peer.receiver(name)
        receiver.next().settle(Delivery.REJECTED)
        check("b", receiver.next().message.body, "what comes next")
    check(["b"], left(url, name), "what is left")
    return ""


def _released(url: str, name: str) -> str:
    again = _settled_and_taken_again(url, name, Delivery.RELEASED)
    check(0, again.delivery_count, "delivery-count")
    return ""


def _modified(url: str, name: str) -> str:
    why = {symbol("x-opt-why"): "it failed"}
    again = _settled_and_taken_again(url, name, Delivery.MODIFIED, failed=True, annotations=why)
    check(1, again.delivery_count, "delivery-count")
    check(why, again.message.annotations, "the annotations that came with it")
    return ""


def _settled_and_taken_again(url: str, name: str, outcome: int, **modified: Any) -> Got:
    with connected(url) as peer:
        send(peer, name, "a")
        receiver = peer.receiver(name)
        receiver.next().settle(outcome, **modified)
        again = receiver.next()
        again.settle(Delivery.ACCEPTED)
        return again


def _lost_link(url: str, name: str) -> str:
    with connected(url) as peer, connected(url) as other:
        send(peer, name, "a")
        receiver = peer.receiver(name)
        receiver.next()
        receiver.close()
        again = other.receiver(name).next()
        check(1, again.delivery_count, "delivery-count")
    return ""


def _browse(url: str, name: str) -> str:
    with connected(url) as peer:
        send(peer, name, "a", "b", "c")
        browser = peer.receiver(name, options=Copy())
        browser.drain(100)
        check(["a", "b", "c"], browser.bodies, "what is shown")
    check(["a", "b", "c"], left(url, name), "what is left")
    return ""


def _selector(url: str, name: str) -> str:
    with connected(url) as peer:
        texts = {"sky": "blue", "rose": "red", "sea": "blue", "brick": "red"}
        send(peer, name, *(coloured(text, colour) for text, colour in texts.items()))
        reds = peer.receiver(name, options=Selector("colour = 'red' AND JMSPriority < 9"))
        check(["rose", "brick"], drained(reds), "what is selected")
    check(["sky", "sea"], left(url, name), "what is left")
    return ""


def _temporary_queue(url: str, name: str) -> str:
    with connected(url) as peer, connected(url) as other:
        answers = peer.receiver(None, dynamic=True, credit=1)
        send(other, answers.link.remote_source.address, name)
        check([name], [got.message.body for got in answers.wait(1)], "what comes")
    return ""


def _anonymous_relay(url: str, name: str) -> str:
    addresses = [f"{name}.one", f"{name}.two"]
    with connected(url) as peer:
        for address in addresses:
            peer.sender(address)
        send(peer, None, *(Message(address, address=address, durable=True) for address in addresses))
    for address in addresses:
        check([address], left(url, address), "what the queue has")
    return ""


def _large_message(url: str, name: str) -> str:
    body = bytes(place * 31 >> 3 & 0xFF for place in range(3 << 20))
    with connected(url) as peer:
        send(peer, name, Message(body, durable=True))
        got = peer.receiver(name).next()
        check(True, body == got.message.body, "the same bytes")
        got.settle(Delivery.ACCEPTED)
    return ""


def _groups(url: str, name: str) -> str:
    with connected(url) as peer:
        one, two = (peer.receiver(name, name=each, credit=_COUNT) for each in ("one", "two"))
        for text in ("a1", "b1", "c1", "a2", "b2", "c2", "a3", "a4"):
            sequence = 0xFFFFFFFF if text == "a3" else int(text[1])
            send(peer, name, Message(text, durable=True, group_id=text[0], group_sequence=sequence))
        for receiver, texts in ((one, ["a1", "c1", "a2", "c2", "a3"]), (two, ["b1", "b2", "a4"])):
            got = receiver.wait(len(texts))
            check(texts, [each.message.body for each in got], "what a receiver gets")
            for each in got:
                each.settle(Delivery.ACCEPTED)
    return ""


BEHAVIOURS: Final[dict[str, Callable[[str, str], str]]] = {
    "send": _send,
    "receive": _receive,
    "accepted": _accepted,
    "rejected": _rejected,
    "released": _released,
    "modified": _modified,
    "lost-link": _lost_link,
    "browse": _browse,
    "selector": _selector,
    "temporary-queue": _temporary_queue,
    "anonymous-relay": _anonymous_relay,
    "groups": _groups,
    "large-message": _large_message,
}
