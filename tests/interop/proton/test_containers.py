"""A container that wants to be connected once is: Qpid JMS takes that for the uniqueness of client ids."""

from typing import Any

import proton
import pytest
from proton.utils import ConnectionClosed

from ambermq.tools.broker.child_broker import ChildBroker
from tests.interop.proton_peer import ProtonPeer

SOLE = proton.symbol("sole-connection-for-container")


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A broker with the virtual host `other`."""
    child = ChildBroker(tmp_path_factory.mktemp("broker") / "data")
    child.start()
    yield child
    child.kill()


def connect(broker: ChildBroker, container: str, *, is_sole: bool = True, **options: Any) -> ProtonPeer:
    """Connect, and desire to be the sole connection."""
    desired = {"desired_capabilities": [SOLE]} if is_sole else {}
    return ProtonPeer(broker.url, container_id=container, **desired, **options)


def test_a_second_connection_is_refused(broker: ChildBroker) -> None:
    """By an open that says so and a close with amqp:invalid-field, container-id named; the first one goes on."""
    first = connect(broker, "me")
    assert SOLE in list(first.connection.remote_offered_capabilities)
    with pytest.raises(ConnectionClosed) as refused:
        connect(broker, "me")
    assert refused.value.condition == "amqp:invalid-field"
    first.sender("q").send("x")
    first.blocking.close()


def test_it_may_come_again_when_it_has_gone(broker: ChildBroker) -> None:
    """A connection that is closed no longer has the container id."""
    for _ in range(3):
        peer = connect(broker, "again")
        peer.sender("q").send("x")
        peer.blocking.close()


def test_others_come_in(broker: ChildBroker) -> None:
    """Another container may connect, and so may the same one without the desired capability."""
    peers = [connect(broker, "one"), connect(broker, "two"), connect(broker, "one", is_sole=False)]
    for peer in peers:
        peer.sender("q").send("x")
        peer.blocking.close()
