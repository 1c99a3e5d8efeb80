"""The first-acquirer of a header with proton over TCP: true only for the first link that acquires a message."""

from proton import Delivery, Message
from proton.reactor import Copy, Selector

from tests.interop.conftest import Connect, StartBroker
from tests.interop.proton_peer import Manager


def test_it_is_true_once(start_broker: StartBroker, connect: Connect) -> None:
    """A release makes it false for every later link: a browser, a selecting one, and one after a kill."""
    broker = start_broker()
    peer = connect(broker.url)
    peer.sender("q").send(*[Message(body, durable=True, first_acquirer=True) for body in ("kept", "released")])
    receiver = peer.receiver("q", credit=2)
    firsts = receiver.wait(2)
    assert [one.message.first_acquirer for one in firsts] == [True, True]
    firsts[1].settle(Delivery.RELEASED)
    again = receiver.next()
    assert (again.message.body, again.message.first_acquirer, again.delivery_count) == ("released", False, 0)
    again.settle(Delivery.RELEASED)
    peer.sender("elsewhere").send()
    (browsed,) = connect(broker.url).receiver("q", credit=1, options=Copy()).wait(1)
    assert (browsed.message.body, browsed.message.first_acquirer) == ("released", False)
    selecting = connect(broker.url).receiver("q", options=Selector("amqp.first_acquirer = TRUE"))
    selecting.drain(1)
    assert selecting.got == []
    Manager(connect(broker.url)).ask("CREATE", "before", type="org.ambermq.snapshot")
    broker.kill()
    broker.start()
    came = connect(broker.url).receiver("q", credit=2).wait(2)
    known = [(one.message.body, one.message.first_acquirer, one.delivery_count) for one in came]
    assert known == [("kept", False, 1), ("released", False, 0)]
