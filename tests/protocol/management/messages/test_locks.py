"""RENEW-LOCK over the management node, in memory: which deliveries a request may name."""

import pytest

from ambermq.engine.commands import DeclareQueue
from ambermq.engine.settings.queue_settings import Settings
from ambermq.protocol.amqp10.performatives.classes import Attach, Source, Transfer
from ambermq.protocol.auth.access import Action
from ambermq.protocol.auth.identity import Identity
from ambermq.protocol.auth.rules import Accounts, Effect, Rule, RuleSet
from tests.protocol.gateway.nodes.test_management_node import Managing, request

_RECEIVER = 5


def renew(managing: Managing, tag: bytes) -> tuple[int, str]:
    """Return status and condition of the answer to a RENEW-LOCK."""
    asked = request("RENEW-LOCK", type="org.ambermq.queue", name="locked", body={"delivery_tags": [tag]})
    (answer,) = managing.ask(asked)
    properties = answer.application_properties or {}
    return int(properties["statusCode"]), str(properties.get("errorCondition", ""))


@pytest.mark.parametrize("may_manage", [False, True])
def test_a_request_renews_what_its_connection_holds(*, may_manage: bool) -> None:
    """Only a user that may manage the queue renews what others hold; else that is as if it were not held."""
    managing = Managing()
    rig = managing.rig
    rig.do(DeclareQueue("key", "locked", Settings().with_values({"lock_ms": 1000})))
    stranger = rig.consumer("locked", credit=1)
    rig.do(rig.publish(rig.producer("locked"), b"a", b"b"))
    (word,) = rig.queue("locked").held_by(stranger)
    managing.say(Attach(name="r", handle=_RECEIVER, role=True, source=Source(address="locked")))
    (own,) = [said for said, _ in managing.flow(1, handle=_RECEIVER) if isinstance(said, Transfer)]
    actions = (Action.RECEIVE, Action.MANAGE) if may_manage else (Action.RECEIVE,)
    managing.peer.identity = Identity("u")
    accounts = Accounts(users=frozenset(("u",)), log_readers=frozenset(), has_users=True)
    managing.gateway.access = RuleSet([Rule(Effect.ALLOW, "u", actions, "locked", "*")], accounts)
    assert renew(managing, bytes(own.delivery_tag or b""))[0] == 200
    expected = (200, "") if may_manage else (409, "amqp:precondition-failed")
    assert renew(managing, bytes(8) + word.to_bytes(8)) == expected
