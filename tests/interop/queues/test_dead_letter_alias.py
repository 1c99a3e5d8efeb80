"""The alias NAME/$DeadLetterQueue with proton: receive, browse, and where there is none."""

import pytest
from proton import Delivery, Message
from proton.reactor import Copy
from proton.utils import LinkDetached

from tests.interop.conftest import Connect
from tests.interop.proton_peer import Manager


def test_it_is_the_dead_letter_queue(connect: Connect, queue: str) -> None:
    """A rejected message is browsed and received there, by both forms of the address."""
    manager, peer = Manager(connect()), connect()
    manager.ask("CREATE", queue, {"dead_letter": f"{queue}-dead"})
    peer.sender(queue).send("one")
    rejecting = peer.receiver(queue, credit=1)
    rejecting.next().settle(Delivery.REJECTED)
    rejecting.close()
    browser = connect().receiver(f"{queue}/$DeadLetterQueue", credit=1, options=Copy())
    assert browser.next().message.body == "one"
    assert browser.link.remote_source.address == f"{queue}/$DeadLetterQueue"
    receiver = connect().receiver(f"/queues/{queue}/$DeadLetterQueue", credit=1)
    got = receiver.next()
    assert got.message.body == "one"
    got.settle(Delivery.ACCEPTED)


def test_its_node_peeks_dead_letters(connect: Connect, queue: str) -> None:
    """A large one too, of which it shows the beginning; all stay where they are."""
    manager, peer = Manager(connect()), connect()
    manager.ask("CREATE", queue, {"dead_letter": f"{queue}-dead"})
    node, body = f"{queue}/$DeadLetterQueue/$management", bytes(range(256)) * (12 << 10)
    peer.sender(f"{queue}-dead").send("small", Message(body, durable=True, inferred=True))
    requests, answers = peer.sender(node), peer.receiver(node, credit=10)
    asked = {"from-sequence-number": 0, "message-count": 10}
    requests.send(Message(asked, reply_to=node, id="1", properties={"operation": "com.microsoft:peek-message"}))
    answer = answers.next().message
    assert (answer.properties["statusCode"], answer.correlation_id) == (200, "1")
    assert isinstance(answer.body, dict)
    small, large = [Message() for _ in answer.body["messages"]]
    for shown, row in zip((small, large), answer.body["messages"], strict=True):
        shown.decode(bytes(row["message"]))
    assert small.body == "small"
    assert large.body == body[: 64 << 10]
    assert large.annotations["x-opt-message-size"] >= len(body)
    assert manager.queue(f"{queue}-dead")["available"] == 2


@pytest.mark.parametrize(
    ("target", "why"),
    [
        ("", "has no dead-letter queue"),
        ("/topics/dead", "the dead-letter target '/topics/dead' of queue .* is no queue"),
        ("gone", "the dead-letter queue .* of queue .* does not exist"),
        ("missing", "no queue"),
    ],
)
def test_there_is_none(connect: Connect, queue: str, target: str, why: str) -> None:
    """Without a target, with one that is no queue or is gone, and without the queue; nothing is created."""
    manager, name = Manager(connect()), f"{queue}-{target.replace('/', '-')}"
    if target != "missing":
        manager.ask("CREATE", name, {"dead_letter": f"{name}-gone" if target == "gone" else target})
    if target == "gone":
        manager.ask("DELETE", f"{name}-gone")
    for options in (None, Copy()):
        with pytest.raises(LinkDetached, match=why):
            connect().receiver(f"{name}/$DeadLetterQueue", options=options)
    assert int(manager.ask("READ", f"{name}-gone").properties["statusCode"]) == 404
    assert int(manager.ask("READ", name).properties["statusCode"]) == (404 if target == "missing" else 200)


def test_none_sends_to_it(connect: Connect, queue: str) -> None:
    """It is no address of a target."""
    Manager(connect()).ask("CREATE", queue, {"dead_letter": f"{queue}-dead"})
    with pytest.raises(LinkDetached, match="amqp:not-found"):
        connect().sender(f"{queue}/$DeadLetterQueue")
