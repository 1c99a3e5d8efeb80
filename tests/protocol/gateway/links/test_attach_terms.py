"""What a peer asks for by its termini, and what it is told that it gets."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ambermq.engine.config import EngineConfig
from ambermq.engine.effects import ConsumerReady, ProducerReady
from ambermq.engine.model.lifetime import Dynamic, Lifetime
from ambermq.engine.model.publish_options import Unroutable
from ambermq.engine.model.subscription import Subscription, SubscriptionRequest
from ambermq.protocol.amqp10.performatives.classes import Attach, DeleteOnNoLinks, Source, Target
from ambermq.protocol.amqp10.types.values import Described, Map, Symbol, ULong
from ambermq.protocol.gateway.links.attach_terms import Refusal, consuming_terms, producing_terms
from ambermq.protocol.gateway.links.source_filters import NO_LOCAL_CODE, SELECTOR_CODE

SELECTOR = Described(ULong(SELECTOR_CODE), "a = 1")
NO_LOCAL = Described(ULong(NO_LOCAL_CODE), "NoLocalFilter{}")


def receiving(name: str = "link", desired: tuple[str, ...] = (), **source: Any) -> Attach:
    """A receiver's attach."""
    return Attach(
        name=name,
        handle=0,
        role=True,
        source=Source(**source) if source else None,
        target=Target(),
        desired_capabilities=desired,
    )


def sending(**target: Any) -> Attach:
    """A sender's attach."""
    return Attach(name="link", handle=0, role=False, source=Source(), target=Target(**target))


@pytest.mark.parametrize(
    ("link", "name"),
    [
        ("s", "s"),
        ("s|2", "s"),
        ("s|global", "s"),
        ("s|global12", "s"),
        ("s|volatile1", "s"),
        ("s|global-volatile1", "s"),
        ("a|b|2", "a|b"),
        ("s|volatile", "s|volatile"),
        ("s|2 ", "s|2 "),
        ("s|x", "s|x"),
    ],
)
def test_a_shared_subscription_is_named_before_the_suffix(link: str, name: str) -> None:
    """As Qpid JMS writes it; the name of one that is not shared is the link's, whatever it looks like."""
    shared = receiving(link, address="/topics/t", capabilities=("shared",))
    assert consuming_terms(shared).subscription_request.name == name
    assert consuming_terms(receiving(link, address="/topics/t")).subscription_request.name == link


@pytest.mark.parametrize(
    ("durable", "expiry", "is_durable"),
    [(0, "never", False), (2, "session-end", False), (1, "never", True), (2, "never", True)],
)
def test_durable_is_what_is_durable_and_never_expires(durable: int, expiry: str, is_durable: bool) -> None:
    """And is told as it is; a queue's source is what is asked for, and no subscription."""
    terms = consuming_terms(receiving(address="/topics/t", durable=durable, expiry_policy=expiry))
    assert terms.subscription_request.is_durable is is_durable
    assert (terms.source.durable, terms.source.expiry_policy) == ((2, "never") if is_durable else (0, "link-detach"))
    queue = consuming_terms(receiving(address="q", durable=durable, expiry_policy=expiry))
    assert (queue.source.durable, queue.subscription_request) == (durable, SubscriptionRequest())


def test_copies_of_a_topic_are_a_subscription() -> None:
    """Qpid JMS asks for them; a queue is browsed."""
    assert not consuming_terms(receiving(address="/topics/t", distribution_mode="copy")).is_copy
    assert not consuming_terms(receiving(address="t", distribution_mode="copy", capabilities=("topic",))).is_copy
    assert consuming_terms(receiving(address="t", distribution_mode="copy")).is_copy


def test_filters_that_apply_are_told() -> None:
    """A selector applies except on the log, no-local on topics of one container; no other filter applies."""
    filters = {Symbol("a"): SELECTOR, Symbol("b"): NO_LOCAL, Symbol("c"): Described(Symbol("x"), 1), Symbol("d"): "e"}
    selector, both = {Symbol("a"): SELECTOR}, {Symbol("a"): SELECTOR, Symbol("b"): NO_LOCAL}
    for address, capabilities, applied in (
        ("q", (), selector),
        ("/topics/t", (), both),
        ("/topics/t", ("shared", "global"), selector),
        ("/log", (), None),
    ):
        terms = consuming_terms(receiving(address=address, capabilities=capabilities, filter=filters))
        assert terms.source.filter == applied
        assert terms.subscription_request.is_no_local is (applied is both)
    assert consuming_terms(receiving(address="q", filter=Map(((1, SELECTOR), ([], NO_LOCAL))))).source.filter == Map(
        ((1, SELECTOR),)
    )


def test_a_nameless_container_is_told_that_no_local_does_not_apply() -> None:
    """It has no messages of its own; a selector beside it applies."""
    filters = {Symbol("a"): SELECTOR, Symbol("b"): NO_LOCAL}
    terms = consuming_terms(receiving(address="/topics/t", filter=filters), is_nameless=True)
    assert (terms.source.filter, terms.subscription_request.is_no_local) == ({Symbol("a"): SELECTOR}, False)


@pytest.mark.parametrize(
    ("values", "selector"),
    [
        (["a = 1"], "a = 1"),
        (["a = 1", "b = 2"], "(a = 1) AND (b = 2)"),
        (["  "], ""),
        (["  ", "b = 2"], "b = 2"),
    ],
)
def test_all_selectors_must_hold(values: list[str], selector: str) -> None:
    """A blank one selects nothing, as JMS has it."""
    described = {Symbol(f"k{number}"): Described(ULong(SELECTOR_CODE), value) for number, value in enumerate(values)}
    assert consuming_terms(receiving(address="q", filter=described)).selector == selector


@pytest.mark.parametrize(("address", "mode"), [("q", None), ("q", "copy"), ("/topics/t", None)])
@pytest.mark.parametrize(
    "values", [["a = 1) OR (b = 2", "c = 3"], ["c = 3", "a = 1) OR (b = 2"], ["a", "b = '", "' = c"]]
)
def test_each_of_several_selectors_is_one(values: list[str], address: str, mode: str | None) -> None:
    """Joined, these texts would parse as another selector: the error names the text that is no selector."""
    described = {Symbol(f"k{number}"): Described(ULong(SELECTOR_CODE), value) for number, value in enumerate(values)}
    with pytest.raises(Refusal, match=r"amqp:invalid-field: the selector .* at character"):
        consuming_terms(receiving(address=address, filter=described, distribution_mode=mode))


def test_selectors_that_are_too_long_together_are_not_read_by_themselves() -> None:
    """Who compiles them refuses them, by the same bound."""
    described = {Symbol(f"k{number}"): Described(ULong(SELECTOR_CODE), "a = = 1") for number in range(2)}
    terms = consuming_terms(receiving(address="q", filter=described), config=EngineConfig(argument_bytes_max=8))
    assert terms.selector == "(a = = 1) AND (a = = 1)"


@pytest.mark.parametrize("value", [None, 1, b"a = 1", Symbol("a"), ["a"]])
def test_a_selector_is_a_string(value: Any) -> None:
    """Anything else is refused; it is not left out."""
    with pytest.raises(Refusal, match="amqp:invalid-field"):
        consuming_terms(receiving(address="q", filter={Symbol("s"): Described(ULong(SELECTOR_CODE), value)}))


def test_capabilities_that_are_honoured_are_told() -> None:
    """Of a target: what becomes of the unroutable, and what the node is; of a source: what it is, and who shares it."""
    terms = producing_terms(sending(address="q", capabilities=("queue", "IMMEDIATE", "REJECT_UNROUTABLE", "x")))
    assert terms.target.capabilities == ("queue", "IMMEDIATE", "REJECT_UNROUTABLE")
    assert (terms.is_immediate, terms.unroutable) == (True, Unroutable.REJECT)
    assert producing_terms(sending(address="t", capabilities=("topic",))).unroutable is Unroutable.DISCARD
    source = consuming_terms(receiving(address="/topics/t", capabilities=("topic", "shared", "x"))).source
    assert source.capabilities == ("topic", "shared")
    for address in ("q", "/log"):
        source = consuming_terms(receiving(address=address, capabilities=("queue", "shared", "x"))).source
        assert source.capabilities == ("queue",)


@given(st.sampled_from(list(Lifetime)[1:]), st.sampled_from(["temporary-queue", "temporary-topic", ""]), st.booleans())
def test_a_dynamic_node_is_told_as_it_is(lifetime: Lifetime, capability: str, is_named: bool) -> None:
    """Dynamic, with its address and policy, for senders and receivers alike; the code or the symbol says which."""
    names = ("on-close", "on-no-links", "on-no-messages", "on-no-links-or-messages")
    code: Any = Symbol(f"amqp:delete-{names[lifetime - 1]}:list") if is_named else ULong(0x2A + lifetime)
    asked: dict[str, Any] = {
        "dynamic": True,
        "capabilities": (capability,) if capability else (),
        "dynamic_node_properties": {Symbol("lifetime-policy"): Described(code, []), Symbol("other"): 1},
    }
    expected = Dynamic(lifetime, capability == "temporary-topic")
    sender, receiver = producing_terms(sending(**asked)), consuming_terms(receiving(**asked))
    assert sender.dynamic == receiver.dynamic == expected
    target = sender.target_of(ProducerReady("key", 1, address="/queues/x"))
    source = receiver.source_of(ConsumerReady("key", 1, address="/queues/x"))
    for given_ in (target, source):
        assert (given_.dynamic, given_.address) == (True, "/queues/x")
        (policy,) = (given_.dynamic_node_properties or {}).values()
        assert 0x2A + lifetime == policy.CODE


@pytest.mark.parametrize("policy", [1, Described(ULong(0x2F), []), Described(Symbol("x"), []), DeleteOnNoLinks])
def test_a_policy_is_one_of_four(policy: Any) -> None:
    """What is none is refused, and an encoded one is one."""
    asked = sending(dynamic=True, dynamic_node_properties={Symbol("lifetime-policy"): policy})
    if policy is DeleteOnNoLinks:
        assert producing_terms(asked).dynamic == Dynamic(Lifetime.NO_LINKS)
    else:
        with pytest.raises(Refusal, match="amqp:invalid-field"):
            producing_terms(asked)


def test_no_source_asks_for_what_has_the_name() -> None:
    """By desired capabilities it is shared or global; the answer says what it is."""
    terms = consuming_terms(receiving("s|global", ("shared", "global")))
    assert terms.is_recalled
    assert terms.subscription_request == SubscriptionRequest("s", True, True, True)
    known = Subscription("a.#", "s", None, True, False, "a = 1")
    source = terms.source_of(ConsumerReady("key", 1, subscription=known))
    assert (source.address, source.durable, source.expiry_policy) == ("/topics/a.#", 2, "never")
    assert source.capabilities == ("topic", "shared", "global")
    assert source.filter == {Symbol("jms-selector"): SELECTOR}
    mine = Subscription("a", "s", "me", is_no_local=True)
    source = terms.source_of(ConsumerReady("key", 1, subscription=mine))
    assert (source.filter, source.capabilities) == ({Symbol("no-local"): NO_LOCAL}, ("topic",))


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("amqps://localhost:5672/orders", "orders"),
        ("amqp://h//queues/a%2Fb", "/queues/a%2Fb"),
        ("sb://h/$cbs", "$cbs"),
        ("sb:///orders", "orders"),
        ("sb://orders", "sb://orders"),
        ("http://h/orders", "http://h/orders"),
    ],
)
def test_an_address_may_be_a_url(written: str, meant: str) -> None:
    """As clients of Azure write it: what follows the host is the address; the attach reply says what was written."""
    producing, consuming = producing_terms(sending(address=written)), consuming_terms(receiving(address=written))
    assert (producing.address, consuming.address) == (meant, meant)
    assert (producing.target.address, consuming.source.address) == (written, written)
