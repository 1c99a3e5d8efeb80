"""Does what it is asked for with the Service Bus SDK of Azure, and says one line of JSON a behaviour.

It runs in an environment of its own, so it knows nothing of the tests: `python driver.py URL BEHAVIOUR...`.
"""

import json
import sys
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

from azure.servicebus import (
    ServiceBusClient,
    ServiceBusMessage,
    ServiceBusReceivedMessage,
    ServiceBusReceiver,
    ServiceBusSubQueue,
)
from azure.servicebus.amqp import AmqpAnnotatedMessage, AmqpMessageHeader, AmqpMessageProperties

__all__ = ["main"]

_COUNT = 10
_PATIENCE_S = 20
_SILENCE_S = 2
"""How long nothing comes from where nothing is."""
_SHORT = timedelta(seconds=1)
"""The SDK writes whole seconds into the header."""
_DELAY = timedelta(seconds=1)

_WIRED = "get_subscription_receiver receives from the queue TOPIC/Subscriptions/NAME, attached to the muxer TOPIC"
_NOT_OFFERED = {
    "released": "abandon_message modifies; no call releases a message",
    "selector": "the rules of a Service Bus subscription filter messages; receivers have no selectors",
    "temporary-queue": "no dynamic source",
    "temporary-topic": "no dynamic target",
    "anonymous-relay": "each sender needs a queue or a topic",
    "transaction": "no transactions",
    "groups": "groups are the sessions of Service Bus, which the broker does not have",
    "drain": "a receiver withdraws its credit only by closing",
}


def _connect(url: str) -> ServiceBusClient:
    """Connect as to the emulator: no TLS, and the token of a key that the broker does not check."""
    text = f"Endpoint=sb://{urlsplit(url).netloc};SharedAccessKeyName=any;SharedAccessKey=any;"
    return ServiceBusClient.from_connection_string(
        text + "UseDevelopmentEmulator=true;", retry_total=50, retry_mode="fixed", retry_backoff_factor=0.2
    )


def _put(client: ServiceBusClient, name: str, *messages: ServiceBusMessage | str) -> None:
    """Send; each message is accepted when this returns."""
    with client.get_queue_sender(name) as sender:
        for message in messages:
            sender.send_messages(message if isinstance(message, ServiceBusMessage) else ServiceBusMessage(message))


def _next(receiver: ServiceBusReceiver) -> ServiceBusReceivedMessage:
    """Return the next message; raise if none arrives."""
    got = receiver.receive_messages(max_message_count=1, max_wait_time=_PATIENCE_S)
    if not got:
        raise AssertionError(f"nothing came within {_PATIENCE_S} s")
    return got[0]


def _left(client: ServiceBusClient, name: str) -> list[str]:
    """Receive the messages of a queue."""
    with client.get_queue_receiver(name) as receiver:
        return _rest(receiver)


def _rest(receiver: ServiceBusReceiver) -> list[str]:
    """Receive the messages that are ready for a receiver."""
    texts = []
    while got := receiver.receive_messages(max_message_count=100, max_wait_time=_SILENCE_S):
        for message in got:
            receiver.complete_message(message)
            texts.append(str(message))
    return texts


def _check(expected: object, found: object, what: str) -> None:
    if expected != found:
        raise AssertionError(f"{what}: expected {expected!r}, found {found!r}")


def _send(client: ServiceBusClient, name: str) -> str:
    _put(client, name, *(f"message {number}" for number in range(_COUNT)))
    return ""


def _receive(client: ServiceBusClient, name: str) -> str:
    sent = [
        ServiceBusMessage(
            f"message {number}",
            message_id=f"id {number}",
            correlation_id=f"correlation {number}",
            subject="subject",
            application_properties={"number": number},
        )
        for number in range(_COUNT)
    ]
    _put(client, name, *sent)
    with client.get_queue_receiver(name) as receiver:
        for number in range(_COUNT):
            got = _next(receiver)
            _check((f"message {number}", f"id {number}"), (str(got), got.message_id), "body and message-id")
            _check((f"correlation {number}", "subject"), (got.correlation_id, got.subject), "correlation-id, subject")
            _check({b"number": number}, got.application_properties, "application properties")
            receiver.complete_message(got)
    _check([], _left(client, name), "what is left")
    return ""


def _accepted(client: ServiceBusClient, name: str) -> str:
    _put(client, name, "a")
    with client.get_queue_receiver(name) as receiver:
        receiver.complete_message(_next(receiver))
    _check([], _left(client, name), "what is left")
    return "by complete_message"


def _rejected(client: ServiceBusClient, name: str) -> str:
    _create(client, {"type": "org.ambermq.queue", "name": name}, {"dead_letter": f"{name}-dead"})
    _put(client, name, "a", "b")
    with client.get_queue_receiver(name) as receiver:
        receiver.dead_letter_message(_next(receiver), reason="bad", error_description="not this one")
        second = _next(receiver)
        _check("b", str(second), "what comes next")
        receiver.complete_message(second)
    _check([], _left(client, name), "what is left")
    with client.get_queue_receiver(name, sub_queue=ServiceBusSubQueue.DEAD_LETTER) as dead:
        _check(["a"], [str(one) for one in dead.peek_messages(max_message_count=9)], "what the dead letters are")
        _check(["a"], _rest(dead), "what the dead-letter queue has")
    return "by dead_letter_message; sub_queue peeks and receives it"


def _modified(client: ServiceBusClient, name: str) -> str:
    _put(client, name, "a")
    with client.get_queue_receiver(name) as receiver:
        receiver.abandon_message(_next(receiver))
        again = _next(receiver)
        _check(1, again.delivery_count, "delivery-count")
        receiver.complete_message(again)
    return "by abandon_message"


def _browse(client: ServiceBusClient, name: str) -> str:
    """Peek, and use what else the node of a queue answers: schedule, cancel, renew, deferred messages."""
    _put(client, name, "a", "b", "c")
    with client.get_queue_sender(name) as sender, client.get_queue_receiver(name) as receiver:
        _check(["a", "b"], [str(one) for one in receiver.peek_messages(max_message_count=2)], "what is shown")
        _check(["c"], [str(one) for one in receiver.peek_messages(max_message_count=9)], "what is shown next")
        later = datetime.now(UTC) + timedelta(hours=1)
        numbers = sender.schedule_messages([ServiceBusMessage("d"), ServiceBusMessage("e")], later)
        shown = receiver.peek_messages(max_message_count=9, sequence_number=numbers[0])
        _check(["d", "e"], [str(one) for one in shown], "what is scheduled")
        sender.cancel_scheduled_messages(numbers)
        _check([], receiver.peek_messages(max_message_count=9, sequence_number=numbers[0]), "what is cancelled")
        deferred = _next(receiver)
        receiver.defer_message(deferred)
        assert deferred.sequence_number is not None
        (again,) = receiver.receive_deferred_messages([deferred.sequence_number])
        _check("a", str(again), "what was deferred")
        receiver.complete_message(again)
    _check(["b", "c"], _left(client, name), "what is left")
    return "by peek_messages; schedule, cancel and deferred messages too"


def _lost_link(client: ServiceBusClient, name: str) -> str:
    _put(client, name, "a")
    with client.get_queue_receiver(name) as receiver:
        _next(receiver)
    with client.get_queue_receiver(name) as receiver:
        again = _next(receiver)
        _check(1, again.delivery_count, "delivery-count")
        receiver.complete_message(again)
    return ""


def _topic(client: ServiceBusClient, name: str) -> str:
    address = f"/topics/{name}"
    with client.get_queue_receiver(address) as one, client.get_queue_receiver(address) as two:
        _put(client, address, "news")
        _check((["news"], ["news"]), (_rest(one), _rest(two)), "what both get")
    return "by the address /topics/NAME as the name of a queue"


def _create(client: ServiceBusClient, asked: dict[str | bytes, Any], body: dict[str, str]) -> None:
    """Have the management node make something; the answer comes to a queue."""
    request = AmqpAnnotatedMessage(
        value_body=body,
        properties=AmqpMessageProperties(message_id="request", reply_to="answers"),
        application_properties={"operation": "CREATE", **asked},
    )
    with client.get_queue_receiver("answers") as receiver, client.get_queue_sender("$management") as sender:
        sender.send_messages(request)
        answer = _next(receiver)
        receiver.complete_message(answer)
        _check(201, (answer.application_properties or {}).get(b"statusCode"), "status of the answer")


def _subscribed(client: ServiceBusClient, topic: str, name: str) -> None:
    """Make a subscription: a queue of the name that its receivers ask for, attached to the topic."""
    member = f"{topic}/Subscriptions/{name}"
    _create(client, {"type": "org.ambermq.queue", "name": member}, {})
    _create(client, {"type": "org.ambermq.attachment"}, {"muxer": "TOPIC", "member": member, "pattern": topic})


def _durable_subscription(client: ServiceBusClient, name: str) -> str:
    _subscribed(client, name, "mine")
    with client.get_subscription_receiver(name, "mine") as receiver:
        _put(client, f"/topics/{name}", "while it is there")
        receiver.complete_message(_next(receiver))
    _put(client, f"/topics/{name}", "rose", "brick")
    with client.get_subscription_receiver(name, "mine") as receiver:
        _check(["rose", "brick"], _rest(receiver), "what has waited")
    return _WIRED


def _shared_subscription(client: ServiceBusClient, name: str) -> str:
    _subscribed(client, name, "ours")
    sent = [f"message {number}" for number in range(_COUNT)]
    _put(client, f"/topics/{name}", *sent)
    with client.get_subscription_receiver(name, "ours") as one, client.get_subscription_receiver(name, "ours") as two:
        first = _next(one)
        one.complete_message(first)
        second = _next(two)
        two.complete_message(second)
        rest = [*_rest(one), *_rest(two)]
    _check(sorted(sent), sorted([str(first), str(second), *rest]), "what both have, each message once")
    return _WIRED


def _credit(client: ServiceBusClient, name: str) -> str:
    texts = [str(number) for number in range(10)]
    _put(client, name, *texts)
    with client.get_queue_receiver(name) as receiver:
        got = receiver.receive_messages(max_message_count=3, max_wait_time=_PATIENCE_S)
        _check(True, 1 <= len(got) <= 3, "no more than credit for three")
        for message in got:
            receiver.complete_message(message)
        _check(texts, [str(message) for message in got] + _left(client, name), "what both have")
    return "by max_message_count"


def _priority(client: ServiceBusClient, name: str) -> str:
    texts = [f"level {level}" for level in range(10)]
    with client.get_queue_sender(name) as sender:
        for level, text in enumerate(texts):
            sender.send_messages(AmqpAnnotatedMessage(data_body=text, header=AmqpMessageHeader(priority=level)))
    _check(texts[::-1], _left(client, name), "the order")
    return "by the header of an AmqpAnnotatedMessage"


def _expiry(client: ServiceBusClient, name: str) -> str:
    _put(client, name, ServiceBusMessage("short", time_to_live=_SHORT), "long")
    time.sleep(2 * _SHORT.total_seconds())
    _check(["long"], _left(client, name), "what is left")
    return "by time_to_live"


def _delivery_delay(client: ServiceBusClient, name: str) -> str:
    due = datetime.now(UTC) + _DELAY
    _put(client, name, ServiceBusMessage("late", scheduled_enqueue_time_utc=due), "at once")
    with client.get_queue_receiver(name) as receiver:
        for text in ("at once", "late"):
            got = _next(receiver)
            receiver.complete_message(got)
            _check(text, str(got), "what comes")
    _check(True, datetime.now(UTC) >= due, "it comes after its time")
    return "by scheduled_enqueue_time_utc"


def _large_message(client: ServiceBusClient, name: str) -> str:
    body = bytes(place * 31 >> 3 & 0xFF for place in range(3 << 20))
    _put(client, name, ServiceBusMessage(body))
    with client.get_queue_receiver(name) as receiver:
        got = _next(receiver)
        _check(True, b"".join(got.body) == body, "the same bytes")
        receiver.complete_message(got)
    return ""


def _default_messages(client: ServiceBusClient, _name: str) -> str:
    """Send messages with the defaults of the SDK, those of a kind to the queue of its name."""
    numbers = range(3)
    _put(client, "text", *(ServiceBusMessage(f"text {number}") for number in numbers))
    _put(client, "binary", *(ServiceBusMessage(f"binary {number}".encode()) for number in numbers))
    _put(client, "id-text", *(ServiceBusMessage(f"text {number}", message_id=f"id {number}") for number in numbers))
    return ""


def _reconnect(client: ServiceBusClient, name: str) -> str:
    sent = [f"message {number}" for number in range(20)]
    with client.get_queue_sender(name) as sender:
        for number, text in enumerate(sent):
            if number == 10:
                print("restart", flush=True)
                sys.stdin.readline()
            sender.send_messages(ServiceBusMessage(text))
    _check(sent, _left(client, name), "what comes")
    return "by itself: the sender retries"


_KNOWN: dict[str, Callable[[ServiceBusClient, str], str]] = {
    "send": _send,
    "receive": _receive,
    "accepted": _accepted,
    "rejected": _rejected,
    "modified": _modified,
    "browse": _browse,
    "lost-link": _lost_link,
    "topic": _topic,
    "durable-subscription": _durable_subscription,
    "shared-subscription": _shared_subscription,
    "credit": _credit,
    "priority": _priority,
    "expiry": _expiry,
    "delivery-delay": _delivery_delay,
    "large-message": _large_message,
    "reconnect": _reconnect,
    "default-messages": _default_messages,
}


def _show(url: str, name: str) -> tuple[str, str]:
    if name in _NOT_OFFERED:
        return "not offered", _NOT_OFFERED[name]
    try:
        with _connect(url) as client:
            return "passed", _KNOWN[name](client, name)
    except Exception as wrong:  # noqa: BLE001 - whatever it is, the cell has failed
        return "failed", f"{type(wrong).__name__}: {wrong}"


def main(arguments: Sequence[str]) -> None:
    """Run each behaviour against the broker at the URL that comes first."""
    url, *names = arguments
    for name in names:
        verdict, detail = _show(url, name)
        said: dict[str, Any] = {"behaviour": name, "verdict": verdict, "detail": detail}
        print(json.dumps(said), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
