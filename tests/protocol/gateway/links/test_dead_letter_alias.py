"""The alias of a dead-letter queue: what it means, and that it gives no access."""

from types import SimpleNamespace
from typing import Any

import pytest

from ambermq.engine.commands import DeclareQueue, DeleteQueue
from ambermq.engine.config import EngineConfig
from ambermq.engine.settings.queue_settings import Settings
from ambermq.protocol.amqp10.performatives.classes import Attach, Source
from ambermq.protocol.auth.access import Action
from ambermq.protocol.gateway.links.attach_terms import Refusal, consuming_terms
from ambermq.protocol.gateway.links.dead_letter_alias import ALIAS, is_alias, resolved_terms
from tests.engine.rig import Rig


def peer(rig: Rig, *denied: tuple[Action, str]) -> Any:
    """Return a connection whose user may do everything but some actions."""

    def decide(_identity: object, _vhost: str, action: Action, address: str) -> Any:
        return SimpleNamespace(is_allowed=(action, address) not in denied)

    engine = SimpleNamespace(state=rig.loop.state, config=EngineConfig())
    owners, access = SimpleNamespace(is_known=lambda _address: False), SimpleNamespace(decide=decide)
    gateway = SimpleNamespace(engine=engine, owners=owners, access=access, vhost="default")
    return SimpleNamespace(gateway=gateway, identity=SimpleNamespace(username="u"))


def resolved(peer: Any, address: str) -> str:
    """Return the address that an alias means."""
    attach = Attach(name="l", handle=0, role=True, source=Source(address=address + ALIAS))
    terms = resolved_terms(peer, consuming_terms(attach))
    assert terms.source.address == address + ALIAS
    return terms.address


def with_target(target: str) -> Rig:
    """Return a broker with a queue that has a dead-letter target."""
    rig = Rig()
    rig.do(DeclareQueue("key", "a b", Settings(dead_letter=target)))
    return rig


@pytest.mark.parametrize("address", ["a b", "/queues/a%20b"])
def test_it_means_the_target(address: str) -> None:
    """Whatever form the address has."""
    assert is_alias(address + ALIAS)
    assert not is_alias(address)
    assert resolved(peer(with_target("the dead")), address) == "/queues/the%20dead"


@pytest.mark.parametrize("address", ["other", "/muxers/QUEUE", "/topics/t", "", "$management", "/queues/a%zz"])
def test_other_addresses_have_none(address: str) -> None:
    """They are refused, as they are without the alias."""
    with pytest.raises(Refusal):
        resolved(peer(with_target("dead")), address)


@pytest.mark.parametrize("target", ["", "/topics/dead", "/muxers/QUEUE"])
def test_a_target_that_is_no_queue_has_none(target: str) -> None:
    """It is not found."""
    with pytest.raises(Refusal, match="amqp:not-found"):
        resolved(peer(with_target(target)), "a b")


def test_a_target_that_is_gone_has_none() -> None:
    """It is not created again."""
    rig = with_target("dead")
    rig.do(DeleteQueue("key", "dead"))
    with pytest.raises(Refusal, match="amqp:not-found"):
        resolved(peer(rig), "a b")


def test_it_says_nothing_of_a_queue_that_the_user_does_not_see() -> None:
    """The action on the queue itself is needed first."""
    with pytest.raises(Refusal, match="amqp:unauthorized-access"):
        resolved(peer(with_target(""), (Action.RECEIVE, "/queues/a%20b")), "a b")
