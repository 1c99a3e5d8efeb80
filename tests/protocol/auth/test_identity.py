"""A connection with a scope asks about a few management types of one virtual host, and does nothing else."""

from typing import Any

import pytest

from ambermq.protocol.amqp10.connection.connection import Connection
from ambermq.protocol.amqp10.connection.connection_role import ConnectionRole
from ambermq.protocol.amqp10.connection.sasl import SaslServer
from ambermq.protocol.amqp10.framing.frames import AMQP_HEADER, SASL_FRAME, SASL_HEADER, encode_frame
from ambermq.protocol.amqp10.limits import ConnectionLimits
from ambermq.protocol.amqp10.performatives.classes import (
    Attach,
    Close,
    Coordinator,
    Detach,
    Open,
    SaslInit,
    SaslOutcome,
    Source,
    Target,
)
from ambermq.protocol.amqp10.types.values import Symbol
from ambermq.protocol.auth.identity import Identity, ManagementScope
from ambermq.protocol.gateway.connection_gateway import ConnectionGateway
from ambermq.protocol.management.compactions import COMPACTION_TYPE
from ambermq.protocol.management.snapshots import SNAPSHOT_TYPE
from tests.engine.rig import Rig
from tests.protocol.authenticators import AnyPeer
from tests.protocol.gateway.nodes.test_management_node import Managing, request
from tests.protocol.gateways import gateway_of
from tests.protocol.peers import Wire, cut
from tests.protocol.watching import Watching

_SCOPE = ManagementScope("default", frozenset({SNAPSHOT_TYPE, COMPACTION_TYPE}))
_QUEUE = Source(address="q")


@pytest.fixture
def bound() -> Managing:
    """A peer that may ask about snapshots and compactions alone."""
    managing = Managing()
    managing.rig.producer()
    managing.peer.identity = Identity(scope=_SCOPE)
    return managing


def refused(peer: Managing, **fields: Any) -> str:
    """Attach a link that is refused; returns the condition."""
    role = "source" in fields
    terms = {"source": Source(), "target": Target(), **fields}
    attach = Attach(name="l", handle=9, role=role, initial_delivery_count=None if role else 0, **terms)
    said = peer.say(attach)
    (condition,) = [str(each.error.condition) for each in said if isinstance(each, Detach) and each.error]
    peer.say(Detach(handle=9, closed=True))
    return condition


@pytest.mark.parametrize(
    "source",
    [
        _QUEUE,
        Source(address="q", distribution_mode="copy"),
        Source(address="/queues/q"),
        Source(address="/topics/t"),
        Source(address="/log"),
        Source(address="$cbs"),
        Source(address="$management/"),
        Source(dynamic=True),
        Source(address="$management", dynamic=True, capabilities=(Symbol("temporary-queue"),)),
        None,
    ],
)
def test_it_receives_from_the_management_node_alone(bound: Managing, source: Source | None) -> None:
    """No queue, no copy of one, no topic, no subscription by its link's name, no node that is made for it."""
    assert refused(bound, source=source) == "amqp:unauthorized-access"
    assert not bound.rig.loop.state.consumers


@pytest.mark.parametrize(
    "target",
    [
        Target(address="q"),
        Target(),
        Target(address="$cbs"),
        Target(address="/muxers/m"),
        Target(dynamic=True),
        Target(address="$management", dynamic=True),
    ],
)
def test_it_sends_to_the_management_node_alone(bound: Managing, target: Target) -> None:
    """No queue, no muxer, no anonymous terminus, and no node that is made for it."""
    assert refused(bound, target=target) in {"amqp:unauthorized-access", "amqp:invalid-field"}
    assert len(bound.rig.loop.state.producers) == 1
    assert refused(bound, target=Coordinator()) == "amqp:unauthorized-access"


def test_it_attaches_to_the_management_node(bound: Managing) -> None:
    """As any other connection does."""
    assert bound.attach("$management", 5).target is not None
    bound.attach_replies("other", 6, second=False)


def test_it_asks_about_the_types_of_its_scope(bound: Managing) -> None:
    """Their own operations are carried out."""
    assert bound.status(operation="CREATE", type=SNAPSHOT_TYPE, name="s", body={"wait": False}) == 201
    assert bound.status(operation="QUERY", entityType=SNAPSHOT_TYPE) == 200
    assert bound.status(operation="COMMIT", type=COMPACTION_TYPE, name="no such job") not in {200, 403}


@pytest.mark.parametrize(
    "asked",
    [
        {"operation": "CREATE", "name": "made"},
        {"operation": "CREATE", "type": "org.ambermq.queue", "name": "made"},
        {"operation": "READ", "name": "q"},
        {"operation": "QUERY", "entityType": "org.ambermq.queue"},
        {"operation": "QUERY", "entityType": "org.ambermq.queue", "type": SNAPSHOT_TYPE},
        {"operation": "ROUTE", "type": SNAPSHOT_TYPE, "address": "q"},
        {"operation": "GET-LIMITS", "type": SNAPSHOT_TYPE},
        {"operation": "GET-TYPES"},
        {"operation": "PURGE", "type": COMPACTION_TYPE, "name": "q"},
        {"operation": "DELETE", "type": "org.ambermq.vhost", "vhost": "default"},
        {"operation": "READ", "type": ["list"], "name": "q"},
    ],
)
def test_it_asks_nothing_else(bound: Managing, asked: dict[str, Any]) -> None:
    """403, and nothing is changed."""
    assert bound.status(**asked) == 403
    assert bound.rig.loop.state.queue_named("made") is None


def test_no_answer_becomes_a_message(bound: Managing) -> None:
    """The address in `reply-to` is that of a link of its own, or the answer is dropped."""
    asked = request("QUERY", entityType=SNAPSHOT_TYPE, reply_to="q")
    for identity, producers in ((bound.peer.identity, 1), (Identity(), 2)):
        bound.peer.identity = identity
        assert bound.ask(asked) == []
        # A queue is sent to by a producer of the connection's own, which is attached first.
        bound.gateway.carry_out(bound.rig.do())
        assert len(bound.rig.loop.state.producers) == producers


def test_it_steals_no_link() -> None:
    """Whatever container id and link name it has."""
    one = Watching(Rig(), container="me")
    one.rig.producer()
    one.say(Attach(name="l", handle=0, role=True, source=_QUEUE, target=Target()))
    two = Watching(one.rig, container="me", gateway=one.gateway)
    two.peer.identity = Identity(scope=_SCOPE)
    two.say(Attach(name="l", handle=0, role=True, source=_QUEUE, target=Target()))
    assert not [each for each, _ in one.settle() if isinstance(each, Detach)]
    assert len(one.rig.loop.state.consumers) == 1


@pytest.mark.parametrize(("vhost", "opens"), [("default", True), ("other", False)])
def test_it_opens_one_virtual_host(vhost: str, opens: bool) -> None:
    """Another one closes the connection as unauthorized."""
    gateway = gateway_of(Rig().loop)
    identity = Identity(scope=ManagementScope(vhost, frozenset({SNAPSHOT_TYPE})))
    authenticator = AnyPeer(identity, b"token")
    connection = Connection(
        ConnectionRole.SERVER,
        ConnectionLimits(),
        now_ms=0,
        container_id="broker",
        sasl=SaslServer(("PLAIN",)),
        allow_bare=False,
    )
    peer = ConnectionGateway(gateway, connection, authenticator)
    init = SaslInit(mechanism="AMBERMQ-TOKEN", initial_response=b"token")
    connection.receive(SASL_HEADER + encode_frame(0, init, frame_type=SASL_FRAME), 0)
    peer.handle_events()
    connection.receive(AMQP_HEADER + Wire.frame(Open(container_id="wire")), 0)
    peer.handle_events()
    said = [each for _, each, _ in cut(b"".join(map(bytes, connection.take_output())))]
    assert authenticator.asked == [("AMBERMQ-TOKEN", b"token")]
    assert [each.code for each in said if isinstance(each, SaslOutcome)] == [0]
    closes = [str(each.error.condition) for each in said if isinstance(each, Close) and each.error]
    assert closes == ([] if opens else ["amqp:unauthorized-access"])
    assert peer.identity is identity
