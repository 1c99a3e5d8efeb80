"""Rules decide by words of addresses; the file of them never opens the door when it is damaged."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ambermq.engine.errors import EngineError
from ambermq.protocol.auth.access import Action
from ambermq.protocol.auth.address_words import address_words, pattern_words, rule_words
from ambermq.protocol.auth.identity import Identity, ManagementScope
from ambermq.protocol.auth.roles import ROLES
from ambermq.protocol.auth.rule_document import RulesDamaged, decode_rules, encode_rules
from ambermq.protocol.auth.rules import Accounts, Effect, Rule, RuleSet, actions_named

ALICE = Identity("alice")
NAMES = Accounts(has_users=True)


def rule(text: str) -> Rule:
    """Return the rule of `EFFECT SUBJECT ACTIONS PATTERN [VHOST]`, or of `grant USER ROLE [VHOST]`."""
    effect, subject, *rest = text.split()
    actions = () if effect == "grant" else actions_named(rest.pop(0))
    return Rule(Effect(effect), subject, actions, *rest)


def rules(*texts: str, accounts: Accounts = NAMES) -> RuleSet:
    """Return a set of rules."""
    return RuleSet(map(rule, texts), accounts)


def allows(found: RuleSet, action: str, address: str, *, user: str = "alice", vhost: str = "default") -> bool:
    """Return whether a user may do something."""
    return found.decide(Identity(user), vhost, Action(action), address).is_allowed


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("a.b", "/queues/a.b"),
        ("/queues/a%2Eb", "a.b"),
        ("/queues/a%2Fb", "a/b"),
        ("/muxers/QUEUE/a.b", "a.b"),
        ("/muxers/TOPIC/news.eu", "/topics/news.eu"),
        ("/muxers/$temporary.7", "/topics/$temporary.7"),
    ],
)
def test_two_addresses_of_one_node_have_the_same_words(one: str, other: str) -> None:
    """A rule cannot be passed by another spelling of an address."""
    assert address_words(one) == address_words(other)


def test_a_pattern_may_have_scheme_and_host() -> None:
    """The pattern of a person is an address as clients write it."""
    assert rule_words("amqps://broker:5671/queues/a.#") == rule_words("a.#") == ("queues", "a", "#")


def test_the_name_of_a_request_is_no_address_with_a_host() -> None:
    """The queue named amqp://x/orders is another one than the queue orders."""
    assert pattern_words("amqp://x/orders") == ("queues", "amqp://x/orders")
    assert not rules("allow alice send orders").sees(ALICE, "default", "amqp://x/orders")


def test_every_deny_touches_an_address_that_is_too_long_to_compare() -> None:
    """A long destination passes no deny: a rule cannot compare it, and the topic may be a denied one."""
    found = rules("allow alice send /#", "deny alice send /topics/secret.#", "allow bob send /#")
    address = f"/muxers/TOPIC/secret.{'x' * 5000}"
    assert not allows(found, "send", address)
    assert not allows(found, "send", address.replace("TOPIC", "QUEUE"))
    assert allows(found, "send", address, user="bob")


def test_a_pattern_with_control_characters_is_refused() -> None:
    """A listing of rules shows patterns on a terminal."""
    for pattern in ("$x\x1b[2J", "/muxers/m/\u202ea"):
        with pytest.raises(EngineError, match="printable"):
            Rule(Effect.ALLOW, "alice", (Action.SEND,), pattern)


def test_what_is_denied_altogether_is_not_shown() -> None:
    """QUERY and READ show only what an action is left on."""
    found = rules("allow alice all #", "deny alice all secret.#", "deny alice receive half", "grant monitor monitor *")
    shown = {"open": True, "half": True, "secret.x": False}
    assert {name: found.sees(ALICE, "default", name) for name in shown} == shown
    assert not found.sees(ALICE, "default", "/queues/#")
    two = rules("allow alice send,receive #", "deny alice send a", "deny alice receive a")
    assert not two.sees(ALICE, "default", "a")
    watcher = rules("grant alice monitor", "deny alice receive a", "deny alice all b")
    assert [watcher.sees(ALICE, "default", name) for name in "abc"] == [True, False, True]
    assert not watcher.sees_all(ALICE, "default")


@pytest.mark.parametrize(
    ("pattern", "address", "expected"),
    [
        ("orders.#", "orders.eu.de", True),
        ("orders.#", "orders", True),
        ("orders.*", "orders.eu.de", False),
        ("#", "/queues/$subscription.3", False),
        ("#", "/topics/news", False),
        ("/#", "/queues/$subscription.3", True),
        ("/#", "/log", True),
        ("/queues/$temporary.#", "/queues/$temporary.3", True),
        ("/muxers/m", "/muxers/m/x.y", True),
        ("/muxers/m/x.#", "/muxers/m/x.y", True),
        ("/muxers/m/x.#", "/muxers/m", False),
        ("/muxers/#", "/muxers/m/x", True),
        ("/muxers/#/x", "/muxers/a/b./.x", False),
        ("/log", "/log", True),
    ],
)
def test_a_pattern_matches_by_words(pattern: str, address: str, expected: bool) -> None:
    """`*` is one word, `#` any number; the kinds of nodes are apart."""
    assert allows(rules(f"allow alice send {pattern}"), "send", address) is expected


def test_what_no_rule_allows_is_refused_and_a_deny_goes_first() -> None:
    """The order of rules says nothing."""
    found = rules("allow alice all #", "deny alice receive secret.#")
    assert allows(found, "receive", "open")
    assert not allows(found, "receive", "secret.x")
    assert allows(found, "send", "secret.x")
    assert not allows(found, "send", "open", user="bob")
    assert found.decide(ALICE, "default", Action.RECEIVE, "secret.x").reason == ("rule 2: deny alice receive secret.#")


def test_a_subscription_lies_wholly_inside_an_allowed_pattern() -> None:
    """A pattern of a peer that reaches further, or touches a denied one, is refused."""
    found = rules("allow alice receive /topics/news.#", "deny alice receive /topics/news.secret.#")
    asked = {"news.eu": True, "news.eu.*": True, "#": False, "*.x": False, "news.#": False, "news.*": False}
    for topic, expected in asked.items():
        assert found.decide_all(ALICE, "default", Action.RECEIVE, f"/topics/{topic}").is_allowed is expected


def test_rules_are_of_one_virtual_host() -> None:
    """`*` is every virtual host; a user without a rule of one cannot open a connection to it."""
    found = rules("allow alice send a", "allow alice send b other", "allow alice send c *")
    assert [allows(found, "send", name) for name in "abc"] == [True, False, True]
    assert [allows(found, "send", name, vhost="other") for name in "abc"] == [False, True, True]
    assert rules("allow alice send a").can_use(ALICE, "default").is_allowed
    assert not rules("allow alice send a").can_use(ALICE, "other").is_allowed
    assert not rules("deny alice send a").can_use(ALICE, "default").is_allowed


def test_affairs_of_the_server_need_a_rule_that_names_them() -> None:
    """An administrator of one virtual host does not create users."""
    found = rules("grant alice administrator default", "grant bob administrator *", "allow carl manage $users")
    assert [allows(found, "manage", "$users", user=user) for user in ("alice", "bob", "carl")] == [False, True, True]
    assert allows(found, "manage", "$snapshots")
    known = Accounts(has_users=True, roles={"alice": (), "bob": ()})
    assert RuleSet(found.rules, known).administrators() == {"bob"}, "carl is no user of the broker"


def test_roles() -> None:
    """An operator has no bodies, a monitor sees and does nothing, an application has temporary nodes."""
    found = rules(*(f"grant {name} {name} *" for name in ROLES))
    assert [allows(found, action, "q", user="operator") for action in ("create", "delete", "manage")] == [True] * 3
    assert not any(allows(found, one, "q", user="operator") for one in ("send", "receive", "browse", "replay"))
    assert not allows(found, "manage", "$users", user="operator")
    assert not any(allows(found, action, "q", user="monitor") for action in Action)
    assert found.sees_all(Identity("monitor"), "default")
    assert not found.sees(Identity("application"), "default", "q")
    assert allows(found, "send", "/queues/$temporary.4", user="application")
    assert not allows(found, "receive", "/queues/$temporary.4", user="application")


def test_a_rule_of_a_role_holds_for_its_users() -> None:
    """`role:NAME` is a subject."""
    found = rules("grant alice clerk", "allow role:clerk send orders.#", "deny role:clerk send orders.big")
    assert allows(found, "send", "orders.eu")
    assert not allows(found, "send", "orders.big")
    assert not allows(found, "send", "orders.eu", user="bob")


def test_a_user_of_the_configuration_is_an_administrator_until_a_rule_names_it() -> None:
    """`/log` needs [permissions], as before there were rules; that holds for a user whom a rule names, too."""
    accounts = Accounts(frozenset(("alice", "bob")), frozenset(("bob",)), has_users=True)
    found = rules(accounts=accounts)
    assert allows(found, "manage", "$users")
    assert not allows(found, "replay", "/log")
    assert allows(found, "replay", "/log", user="bob")
    found = rules("allow bob send a", accounts=accounts)
    assert allows(found, "replay", "/log", user="bob")
    assert not allows(found, "replay", "q", user="bob")
    found = rules("allow alice send a", accounts=accounts)
    assert not allows(found, "replay", "/log")
    assert not allows(found, "send", "b")
    assert not allows(found, "send", "b", user="anonymous")
    assert found.administrators() == {"bob"}


def test_without_users_everything_is_allowed() -> None:
    """Also without a rule. A child process of the broker and the user `local` need no rule either."""
    found = rules(accounts=Accounts())
    assert found.decide(Identity(), "default", Action.MANAGE, "$users").is_allowed
    none = rules(accounts=NAMES)
    assert not none.decide(Identity(), "default", Action.SEND, "a").is_allowed
    scope = ManagementScope("default", frozenset())
    for identity in (Identity(is_local=True), Identity(scope=scope)):
        assert none.decide(identity, "default", Action.MANAGE, "$compaction").is_allowed


PARTS = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1, max_size=9)
RULES = st.builds(
    Rule,
    st.sampled_from([Effect.ALLOW, Effect.DENY]),
    PARTS.filter(lambda text: text != "role:"),
    st.sets(st.sampled_from(list(Action)), min_size=1).map(lambda found: tuple(sorted(found))),
    st.sampled_from(["a.b", "#", "/topics/x.*", "/queues/a%20b", "/muxers/m/a b", "$users", "/log"]),
    PARTS,
)


@given(st.lists(RULES, max_size=4))
def test_the_file_holds_what_was_written(found: list[Rule]) -> None:
    """Decoding gives the rules that were encoded, each once."""
    assert decode_rules(encode_rules(found), file="rules") == tuple(sorted(set(found)))


@given(st.data())
def test_a_damaged_file_is_refused_with_its_line(data: st.DataObject) -> None:
    """Every change of a byte, and every cut, is an error that names the file and a line."""
    whole = encode_rules([rule("allow alice send,receive orders.#"), rule("grant bob operator *")])
    place = data.draw(st.integers(0, len(whole) - 1))
    flipped = bytes([whole[place] ^ data.draw(st.integers(1, 255))])
    for damaged in (whole[:place], whole[:place] + flipped + whole[place + 1 :]):
        with pytest.raises(RulesDamaged, match=r"rules, line [0-9]"):
            decode_rules(damaged, file="rules")


def test_a_bad_line_is_named() -> None:
    """Also where the sum is right: a person may write the file."""
    text = encode_rules([]).partition(b"\n")[0] + b"\nallow alice fly orders.# default\n"
    with pytest.raises(RulesDamaged, match=r"rules, line 2: unknown action 'fly'"):
        decode_rules(text, file="rules")


@pytest.mark.parametrize("text", ["allow role: send a", "grant role:x operator", "allow a send b*", "allow a fly b"])
def test_a_bad_rule_is_refused(text: str) -> None:
    """The parts that a person writes are checked."""
    with pytest.raises(EngineError):
        rule(text)
