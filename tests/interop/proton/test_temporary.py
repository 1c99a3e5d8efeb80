"""Temporary queues and topics with proton: who may use them, and when they end."""

import pytest
from proton import Delivery, Endpoint, Message
from proton.utils import LinkDetached

from tests.interop.conftest import Connect, StartBroker
from tests.interop.proton_options import Capable, Dynamic
from tests.interop.proton_peer import Manager, ProtonPeer

POLICIES = (0x2B, 0x2C, 0x2D, 0x2E)


def is_there(manager: Manager, address: str) -> bool:
    """Whether a queue is there."""
    return int(manager.ask("READ", address).properties["statusCode"]) == 200


def test_requests_are_answered_on_a_temporary_queue(connect: Connect, queue: str) -> None:
    """Any peer can answer to the address of a dynamic source, by a link or by the anonymous terminus."""
    server = connect()
    requests = server.receiver(queue, credit=2)
    client = connect()
    answers = client.receiver(None, dynamic=True, credit=2)
    address = answers.link.remote_source.address
    client.sender(queue).send(Message("question", reply_to=address), Message("another", reply_to=address))
    for got, answering in zip(requests.wait(2), (server.sender(address), server.sender(None)), strict=True):
        answering.send(Message(f"{got.message.body}!", address=got.message.reply_to))
    assert [got.message.body for got in answers.wait(2)] == ["question!", "another!"]


@pytest.mark.parametrize("sends", [True, False])
def test_what_is_made_is_told(peer: ProtonPeer, connect: Connect, sends: bool) -> None:
    """The reply has dynamic, the address, and the policy that holds; delete-on-close where nothing is said."""
    manager = Manager(connect())
    for policy in (None, *POLICIES):
        options = Dynamic(policy, "temporary-queue")
        link = (peer.sender(None, options=options) if sends else peer.receiver(None, options=options)).link
        terminus = link.remote_target if sends else link.remote_source
        assert terminus.dynamic
        assert terminus.address.startswith("/queues/$temporary.")
        terminus.properties.rewind()
        terminus.properties.next()
        (told,) = terminus.properties.get_dict().values()
        assert told.descriptor == (policy or 0x2B)
        assert is_there(manager, terminus.address)
        link.close()


def test_an_unknown_policy_is_refused(peer: ProtonPeer) -> None:
    """It cannot be given, and nothing else is meant."""
    with pytest.raises(LinkDetached, match="amqp:invalid-field"):
        peer.receiver(None, options=Dynamic(0x2F))


def test_a_queue_ends_with_the_link_that_had_it_made(connect: Connect) -> None:
    """The broker detaches other links to it, refuses messages to it, and creates no queue of that name again."""
    owner, other = connect(), connect()
    made = owner.sender(None, options=Dynamic(0x2B, "temporary-queue"))
    address = made.link.remote_target.address
    left = other.receiver(address)
    owner.drop()
    other.wait(lambda: left.link.state & Endpoint.REMOTE_CLOSED, "the detach")
    assert left.link.remote_condition.name == "amqp:resource-deleted"
    with pytest.raises(LinkDetached) as caught:
        other.sender(address)
    assert caught.value.condition == "amqp:not-found"
    (late,) = other.sender(None).send(Message("late", address=address))
    assert late.remote_state == Delivery.REJECTED
    assert late.remote.condition.name == "amqp:not-found"


def test_a_temporary_topic(connect: Connect) -> None:
    """Its address is a topic: each receiver gets each message of any sender, until the link that made it ends."""
    owner, other = connect(), connect()
    made = owner.sender(None, options=Dynamic(0x2B, "temporary-topic"))
    address = made.link.remote_target.address
    assert address.startswith("/topics/$temporary.")
    links = ((owner, "a"), (other, "b"), (other, "c"))
    receivers = [each.receiver(address, name=name, credit=2) for each, name in links]
    made.send("1")
    other.sender(address, options=Capable("temporary-topic")).send("2")
    for receiver in receivers:
        assert [got.message.body for got in receiver.wait(2)] == ["1", "2"]
    owner.drop()
    # Its sender is told last.
    with pytest.raises(LinkDetached, match="amqp:resource-deleted"):
        other.wait(lambda: False, "the detaches")
    assert all(one.link.state & Endpoint.REMOTE_CLOSED for one in receivers[1:])


@pytest.mark.parametrize("policy", POLICIES)
def test_a_kill_ends_what_lived_by_links(start_broker: StartBroker, connect: Connect, policy: int) -> None:
    """What lives by its messages and has some stays; what was accepted on it is there."""
    broker = start_broker()
    peer = connect(broker.url)
    made = peer.sender(None, options=Dynamic(policy, "temporary-queue"))
    address = made.link.remote_target.address
    made.send("x")
    broker.kill()
    broker.start()
    again = connect(broker.url)
    assert is_there(Manager(connect(broker.url)), address) is (policy in (0x2D, 0x2E))
    if policy in (0x2D, 0x2E):
        receiver = again.receiver(address)
        receiver.next().settle(Delivery.ACCEPTED)
        receiver.close()
        assert not is_there(Manager(connect(broker.url)), address)


@pytest.mark.parametrize("reply_to", ["", "/queues/{}", "{}", "/topics/{}"])
def test_management_answers_to_any_address_of_ours(connect: Connect, reply_to: str) -> None:
    """A temporary queue that was there before the requests, a queue by path or name, a topic; of another connection."""
    address = reply_to.format("answers")
    receiver = connect().receiver(address or None, dynamic=not address, credit=2)
    peer = connect()
    asked = {"operation": "QUERY", "entityType": "org.ambermq.queue"}
    to = receiver.link.remote_source.address
    requests = peer.sender("$management")
    requests.send(*[Message(None, id=number, reply_to=to, properties=asked) for number in ("a", "b")])
    assert [got.message.correlation_id for got in receiver.wait(2)] == ["a", "b"]


def test_management_makes_no_queue_to_answer_to(connect: Connect, queue: str) -> None:
    """A plain name that is neither a link's nor a queue's gets nothing."""
    peer = connect()
    peer.sender("$management").send(Message(None, reply_to=queue, properties={"operation": "QUERY"}))
    assert not is_there(Manager(connect()), queue)
