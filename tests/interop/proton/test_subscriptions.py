"""Topics and subscriptions with proton: volatile, durable, shared, with selectors, and across a kill."""

from typing import Any
from uuid import uuid4

import pytest
from proton import Delivery, Endpoint, Message
from proton.reactor import Container, DurableSubscription, Selector
from proton.utils import LinkDetached

from tests.interop.conftest import Connect, StartBroker
from tests.interop.proton_options import NO_LOCAL, Capable, NoSource
from tests.interop.proton_peer import Manager, ProtonPeer, Receiving


def called(name: str) -> dict[str, Any]:
    """Options of a connection whose container has a name."""
    container = Container()
    container.container_id = name
    return {"container": container}


def texts(receiver: Receiving) -> list[object]:
    """Drain, accept, and return what came."""
    receiver.drain(100)
    said = receiver.bodies
    for got in receiver.got:
        got.settle(Delivery.ACCEPTED)
    receiver.got.clear()
    heard(receiver.peer)
    return said


def send(peer: ProtonPeer, address: str, *bodies: Message | str) -> list[Delivery]:
    """Send on a link of its own: proton names links by their addresses."""
    return peer.sender(address, name=str(uuid4())).send(*bodies)


def heard(peer: ProtonPeer) -> None:
    """Wait until the broker has heard all that was said: it answers another attach."""
    peer.sender(None, name=str(uuid4()))


def suspend(receiver: Receiving) -> None:
    """Detach, not for good."""
    receiver.link.detach()
    heard(receiver.peer)


def test_each_subscriber_gets_what_its_pattern_takes(peer: ProtonPeer, queue: str) -> None:
    """A message is on every queue whose pattern takes it; what was sent before the subscription does not come."""
    send(peer, f"/topics/{queue}.eu", "before")
    one = peer.receiver(f"/topics/{queue}.*", name="one")
    two = peer.receiver(f"/topics/{queue}.#", name="two")
    send(peer, f"/topics/{queue}.eu", "eu")
    send(peer, f"/topics/{queue}.eu.de", "de")
    assert (texts(one), texts(two)) == (["eu"], ["eu", "de"])


def test_a_plain_name_is_a_topic_where_capabilities_say_so(peer: ProtonPeer, queue: str) -> None:
    """JMS clients write the capability `topic`; a message to such a topic is accepted even without a subscription."""
    sender = peer.sender(queue, options=Capable("topic"))
    assert sender.send("unheard")[0].remote_state == Delivery.ACCEPTED
    receiver = peer.receiver(queue, options=Capable("topic"))
    sender.send("x")
    assert texts(receiver) == ["x"]


def test_a_volatile_subscription_ends_with_its_link(peer: ProtonPeer, queue: str) -> None:
    """The subscription and its queue are gone; a later message reaches no queue and is released."""
    manager, receiver = Manager(peer), peer.receiver(f"/topics/{queue}")
    assert receiver.link.remote_source.durability == 0
    before = manager.ask("QUERY", entityType="org.ambermq.queue").body["total"]
    receiver.close()
    (sent,) = send(peer, f"/topics/{queue}", "x")
    assert sent.remote_state == Delivery.RELEASED
    assert manager.ask("QUERY", entityType="org.ambermq.queue").body["total"] == before - 1


def test_a_durable_subscription_outlives_link_connection_and_kill(start_broker: StartBroker, connect: Connect) -> None:
    """Container and link name have it again with what came meanwhile, until it is closed for good."""
    broker = start_broker()
    durable = {"name": "mine", "options": [DurableSubscription(), Selector("colour = 'red'")]}

    def publish(*bodies: str) -> None:
        messages = [Message(body, durable=True, properties={"colour": "red"}) for body in bodies]
        send(connect(broker.url), "/topics/news", *messages, "no")

    receiver = connect(broker.url, **called("me")).receiver("/topics/news", **durable)
    assert receiver.link.remote_source.durability == 2
    suspend(receiver)
    publish("1", "2")
    broker.kill()
    broker.start()
    publish("3")
    receiver = connect(broker.url, **called("me")).receiver("/topics/news", **durable)
    assert texts(receiver) == ["1", "2", "3"]
    receiver.peer.drop()
    publish("4")
    other = connect(broker.url, **called("you")).receiver("/topics/news", **durable)
    assert texts(other) == []
    receiver = connect(broker.url, **called("me")).receiver("/topics/news", **durable)
    assert texts(receiver) == ["4"]
    receiver.close()
    publish("5")
    assert texts(connect(broker.url, **called("me")).receiver("/topics/news", **durable)) == []


def test_volatile_subscriptions_do_not_outlive_a_kill(start_broker: StartBroker, connect: Connect) -> None:
    """They end at the start, as their links have ended."""
    broker = start_broker()
    peer = connect(broker.url)
    peer.receiver("/topics/news")
    broker.kill()
    broker.start()
    assert Manager(connect(broker.url)).ask("QUERY", entityType="org.ambermq.queue").body["total"] == 0


def test_unsubscribing_is_attaching_without_a_source(connect: Connect, queue: str) -> None:
    """The answer says what the subscription is; closing that link ends it. Then there is none to be named."""
    options = {"name": queue, "options": [DurableSubscription(), Capable("topic"), Selector("a = 1")]}
    suspend(connect(**called("me")).receiver(f"/topics/{queue}", **options))
    peer = connect(**called("me"))
    known = peer.receiver(None, name=queue, options=NoSource())
    source = known.link.remote_source
    assert (source.address, source.durability, source.expiry_policy) == (f"/topics/{queue}", 2, 3)
    source.filter.rewind()
    source.filter.next()
    assert [described.value for described in source.filter.get_dict().values()] == ["a = 1"]
    known.close()
    with pytest.raises(LinkDetached) as caught:
        peer.receiver(None, name=queue, options=NoSource())
    assert caught.value.condition == "amqp:not-found"


def test_another_selector_is_another_subscription(connect: Connect, queue: str) -> None:
    """The old one goes, with its messages."""
    peer = connect(**called("me"))
    receiver = peer.receiver(f"/topics/{queue}", name=queue, options=DurableSubscription())
    suspend(receiver)
    send(peer, f"/topics/{queue}", "old")
    again = connect(**called("me"))
    options = [DurableSubscription(), Selector("colour IS NULL")]
    receiver = again.receiver(f"/topics/{queue}", name=queue, options=options)
    send(again, f"/topics/{queue}", "new")
    assert texts(receiver) == ["new"]


def test_a_second_attach_of_a_link_steals_it(connect: Connect, queue: str) -> None:
    """The link of the other connection is ended with amqp:link:stolen; what it held is the new one's."""
    old = connect(**called("me")).receiver(f"/topics/{queue}", credit=1, name=queue, options=DurableSubscription())
    send(connect(), f"/topics/{queue}", "x")
    old.wait(1)
    new = connect(**called("me")).receiver(f"/topics/{queue}", name=queue, options=DurableSubscription())
    old.peer.wait(lambda: old.link.state & Endpoint.REMOTE_CLOSED, "the detach")
    assert old.link.remote_condition.name == "amqp:link:stolen"
    assert new.next().delivery_count == 1


@pytest.mark.parametrize(
    ("names", "capabilities", "containers"),
    [
        (("s", "s|2"), ("topic", "shared"), ("me", "me")),
        (("s|global", "s|global2"), ("topic", "shared", "global"), ("me", "you")),
        (("s|volatile1", "s|volatile2"), ("topic", "shared"), ("me", "me")),
        (("s|global-volatile1", "s|global-volatile1"), ("topic", "shared", "global"), ("me", "you")),
    ],
)
def test_shared_subscriptions_as_qpid_jms_names_them(
    start_broker: StartBroker,
    connect: Connect,
    names: tuple[str, str],
    capabilities: tuple[str, ...],
    containers: tuple[str, str],
) -> None:
    """Two links share the messages; those of one container, or of any where they are global."""
    broker = start_broker()
    options = [Capable(*capabilities), *([] if "volatile" in names[0] else [DurableSubscription()])]
    one, two = (
        connect(broker.url, **called(container)).receiver("/topics/t", credit=2, name=name, options=options)
        for name, container in zip(names, containers, strict=True)
    )
    send(connect(broker.url), "/topics/t", "1", "2", "3", "4")
    assert sorted(got.message.body for got in one.wait(2) + two.wait(2)) == ["1", "2", "3", "4"]


def test_no_local(connect: Connect, queue: str) -> None:
    """What the own container sends does not come; what is applied is told."""
    mine = connect(**called("me"))
    receiver = mine.receiver(f"/topics/{queue}", options=NO_LOCAL)
    source = receiver.link.remote_source
    source.filter.rewind()
    assert source.filter.next()
    send(mine, f"/topics/{queue}", "mine")
    send(connect(**called("you")), f"/topics/{queue}", "yours")
    assert texts(receiver) == ["yours"]


def test_a_bad_selector_or_pattern_is_refused(peer: ProtonPeer, queue: str) -> None:
    """Named are position and token."""
    for address, options, said in (
        (f"/topics/{queue}", Selector("colour = = 1"), "'='"),
        (f"/topics/{queue}.a*", None, "a*"),
    ):
        with pytest.raises(LinkDetached, match="amqp:invalid-field") as caught:
            peer.receiver(address, options=options)
        assert said in str(caught.value)
