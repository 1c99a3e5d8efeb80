"""A link is attached once: the last attach has it, from whatever connection (transport, 2.6.1)."""

from typing import Any, TypeGuard

import pytest

from ambermq.engine.model.subscription import Subscription
from ambermq.protocol.amqp10.performatives.base import Composite
from ambermq.protocol.amqp10.performatives.classes import Attach, Detach, Source, Target, Transfer
from ambermq.protocol.amqp10.types.values import Described, Symbol, ULong
from ambermq.protocol.gateway.links.source_filters import NO_LOCAL_CODE
from ambermq.protocol.server_limits import ServerLimits
from tests.engine.rig import Rig
from tests.protocol.watching import Watching


def pair(first: str = "me", second: str = "me", limits: ServerLimits | None = None) -> tuple[Watching, Watching]:
    """Two connections to one broker, by their container ids."""
    one = Watching(Rig(), container=first, limits=limits)
    return one, Watching(one.rig, container=second, gateway=one.gateway)


def attach(peer: Watching, name: str = "l", *, sends: bool = False, **fields: Any) -> list[Composite | None]:
    """Attach a link at the queue `q`, or at what `source` says; returns all that comes."""
    terms: dict[str, Any] = {"source": Source(address="q"), "target": Target(address="q"), "handle": 0, **fields}
    return peer.say(Attach(name=name, role=not sends, initial_delivery_count=0 if sends else None, **terms))


def heard(peer: Watching) -> list[str]:
    """The conditions of the detaches that have come to a peer."""
    performatives = [performative for performative, _ in peer.settle()]
    return [str(each.error.condition) for each in performatives if isinstance(each, Detach) and each.error]


@pytest.mark.parametrize("mode", ["send", "receive", "copy"])
def test_the_newest_has_it(mode: str) -> None:
    """Senders, receivers and browsers; the one before is closed as stolen, and the engine knows of one."""
    one, two = pair()
    one.rig.producer()
    source = Source(address="q", distribution_mode="copy" if mode == "copy" else None)
    for peer in (one, two):
        said = attach(peer, sends=mode == "send", source=source)
        assert not [each for each in said if isinstance(each, Detach)]
    assert heard(one) == ["amqp:link:stolen"]
    assert heard(two) == []
    state = one.rig.loop.state
    assert len(state.consumers) == (mode == "receive")
    assert len(state.producers) == 1 + (mode == "send")
    assert len(one.gateway.links) == 1


@pytest.mark.parametrize(("containers", "names"), [(("me", "you"), "ll"), (("me", "me"), "lk"), (("", ""), "ll")])
def test_other_names_are_other_links(containers: tuple[str, str], names: str) -> None:
    """Another container or name; connections without a container id share no names."""
    one, two = pair(*containers)
    for peer, name in zip((one, two), names, strict=True):
        attach(peer, name)
    assert heard(one) == []
    assert len(one.rig.loop.state.consumers) == 2


def test_a_link_has_two_directions() -> None:
    """To send and to receive by one name are two links."""
    one, two = pair()
    attach(one, sends=True)
    attach(two)
    assert heard(one) == []


def test_what_was_held_is_the_new_ones() -> None:
    """What had been sent comes again, counted; nothing more goes to the old one."""
    one, two = pair()
    producer = one.rig.producer()
    one.rig.do(one.rig.publish(producer, b"\x00\x53\x77\xa1\x01x"))
    attach(one)
    assert [type(each) for each, _ in one.flow(5)].count(Transfer) == 1
    attach(two)
    (transfer,) = [payload for each, payload in two.flow(5) if isinstance(each, Transfer)]
    assert transfer != b"\x00\x53\x77\xa1\x01x"
    assert heard(one) == ["amqp:link:stolen"]


def test_the_old_one_that_says_goodbye_ends_nothing() -> None:
    """A durable subscription that was stolen is the new link's, whatever the old one says of it later."""
    one, two = pair()
    source = Source(address="/topics/t", durable=2, expiry_policy="never")
    attach(one, source=source)
    attach(two, source=source)
    one.say(Detach(handle=0, closed=True))
    assert [*one.rig.loop.state.subscriptions.values()] == [Subscription("t", "l", "me")]
    assert heard(two) == []


def test_the_nameless_have_no_durable_subscriptions_to_steal() -> None:
    """Of each other, by a link of the same name: it is refused, and a global one is everybody's."""
    one, two = pair("", "")
    source = Source(address="/topics/t", durable=2, expiry_policy="never")
    for peer in (one, two):
        said = attach(peer, source=source)
        assert [str(each.error.condition) for each in said if _ends(each) and each.error] == ["amqp:invalid-field"]
    assert not one.rig.loop.state.subscriptions
    shared = Source(address="/topics/t", durable=2, expiry_policy="never", capabilities=("shared", "global"))
    for peer in (one, two):
        assert not [each for each in attach(peer, handle=1, source=shared) if _ends(each)]
    (queue,) = one.rig.loop.state.subscriptions
    assert one.rig.loop.state.queues[queue].consumers == 2


def test_no_local_is_applied_and_told_by_containers_with_a_name() -> None:
    """Nameless peers hear each other, and see in the answer that the filter does not hold."""
    no_local = {Symbol("n"): Described(ULong(NO_LOCAL_CODE), "NoLocalFilter{}")}
    for name, filters, depth in (("me", no_local, 0), ("", None, 1)):
        one, two = pair(name, name)
        said = attach(one, source=Source(address="/topics/t", filter=no_local))
        assert [each.source.filter for each in said if isinstance(each, Attach) and each.source] == [filters]
        attach(two, "s", sends=True, target=Target(address="/topics/t"))
        (producer,) = one.rig.loop.state.producers
        one.rig.do(one.rig.publish(producer, b"\x00\x53\x77\xa1\x01x"))
        (queue,) = one.rig.loop.state.subscriptions
        assert one.rig.loop.state.queues[queue].depth == depth


@pytest.mark.parametrize("mode", ["send", "receive", "manage"])
def test_a_name_is_bounded(mode: str) -> None:
    """In bytes: the longest is attached; a longer one is refused, and neither the log nor the broker keeps it."""
    one, two = pair(limits=ServerLimits(link_name_bytes_max=4))
    node = "$management" if mode == "manage" else "q"
    terms = {"source": Source(address=node), "target": Target(address=node), "sends": mode != "receive"}
    assert not [each for each in attach(one, "\u00fc\u00fc", **terms) if _ends(each)]
    before = one.rig.loop.log.log_end
    (error,) = [each.error for each in attach(two, "\u00fc\u00fca", **terms) if _ends(each)]
    assert error is not None
    assert error.condition == "amqp:invalid-field"
    assert "5 bytes, at most 4 (link_name_bytes_max)" in str(error.description)
    assert one.rig.loop.log.log_end == before
    assert len(one.gateway.links) == (mode != "manage")


def _ends(said: Composite | None) -> TypeGuard[Detach]:
    return isinstance(said, Detach) and said.error is not None


def test_no_name_is_kept_of_what_is_gone() -> None:
    """Detached, refused, or with its connection; whether it was answered or not."""
    one, two = pair("me", "you")
    attach(one)
    one.say(Detach(handle=0, closed=False))
    attach(one, source=Source(address="$none"), handle=1)
    assert not one.gateway.links
    attach(two, "a")
    attach(two, "b", sends=True, handle=1)
    assert len(one.gateway.links) == 2
    two.peer.lost()
    two.settle()
    assert not one.gateway.links
    assert not one.rig.loop.state.consumers
