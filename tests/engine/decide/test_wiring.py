"""Deciding about muxers and attachments: what is made, what is refused, and what goes along with what."""

import pytest

from ambermq.engine.commands import (
    AttachConsumer,
    AttachMember,
    AttachProducer,
    Command,
    DeclareMuxer,
    DeclareQueue,
    DeleteMuxer,
    DeleteQueue,
    DetachMember,
    UpdateQueue,
)
from ambermq.engine.config import EngineConfig
from ambermq.engine.effects import Answered, ConsumerReady, ProducerReady, ProducersEnded, RefusedCommand
from ambermq.engine.events import Attached, Detached, MuxerDeclared, MuxerDeleted, QueueDeleted
from ambermq.engine.fold.apply import fold
from ambermq.engine.model.attachment import Argument, Condition
from ambermq.engine.model.muxer import MuxerKind, Options
from ambermq.engine.model.queue_template import QueueTemplate, QueueTemplates, TemplateAttachment
from ambermq.engine.model.state import EMPTY_STATE
from ambermq.engine.settings.queue_settings import Settings
from tests.engine.world import World

_RED = (Condition("colour", True, "red"),)
_BOGUS = Condition("properties.subjekt", True, "red")


def wired() -> World:
    """A muxer of each class, named by it, and two queues."""
    world = World(EngineConfig(conditions_max=2, argument_bytes_max=64))
    for kind in MuxerKind:
        options = Options(probability=0.5) if kind is MuxerKind.LOSSY else Options()
        world.do(DeclareMuxer("key", kind.text, kind, options))
    for name in ("q", "r"):
        world.do(DeclareQueue("key", name, Settings()))
    return world


def test_what_there_is_already_changes_nothing() -> None:
    """Muxers and attachments alike are declared once; a muxer with other properties is refused."""
    world = wired()
    assert world.do(AttachMember("key", "property", "q", _RED)) == [Answered("key", {"created": True})]
    count = len(world.events)
    assert world.do(AttachMember("key", "property", "q", _RED)) == [Answered("key", {"created": False})]
    assert world.do(DeclareMuxer("key", "simple", MuxerKind.SIMPLE)) == [Answered("key", {"created": False})]
    (refused,) = world.do(DeclareMuxer("key", "simple", MuxerKind.DESTINATION))
    assert type(refused) is RefusedCommand
    assert (refused.condition, refused.description) == (
        "amqp:precondition-failed",
        "muxer 'simple' exists as simple, but the request asks for destination",
    )
    assert len(world.events) == count


@pytest.mark.parametrize(
    ("command", "says"),
    [
        (DeclareQueue("key", "q", Settings(messages_max=9)), True),
        (DeclareQueue("key", "q", Settings(template="other")), False),
        (DeclareQueue("key", "q", Settings(messages_max=9, durable=False)), False),
        (DeclareMuxer("key", "lossy", MuxerKind.LOSSY, Options(probability=0.25)), True),
        (DeclareMuxer("key", "lossy", MuxerKind.SIMPLE), False),
    ],
)
def test_a_refused_declaration_names_a_possible_update(command: DeclareQueue | DeclareMuxer, says: bool) -> None:
    """Where it could not, as where the class is another, nothing is said of one."""
    (refused,) = wired().do(command)
    assert type(refused) is RefusedCommand
    assert (refused.condition, refused.description.endswith(": update it")) == ("amqp:precondition-failed", says)


@pytest.mark.parametrize(
    ("command", "condition", "words"),
    [
        (AttachMember("key", "none", "q"), "amqp:not-found", "no muxer 'none'"),
        (AttachMember("key", "simple", "none"), "amqp:not-found", "no queue 'none'"),
        (AttachMember("key", "simple", "muxer:none"), "amqp:not-found", "no muxer 'none'"),
        (AttachMember("key", "simple", "muxer:simple"), "amqp:not-allowed", "messages would loop: simple -> simple"),
        (AttachMember("key", "simple", "q", "x"), "amqp:invalid-field", "its attachments have no argument"),
        (AttachMember("key", "destination", "q"), "amqp:invalid-field", "needs a destination"),
        (AttachMember("key", "wild-destination", "q", "a*"), "amqp:invalid-field", "pattern"),
        (AttachMember("key", "selector", "q", "colour ="), "amqp:invalid-field", "character 8"),
        (AttachMember("key", "property", "q", ()), "amqp:invalid-field", "conditions"),
        (AttachMember("key", "property", "q", "x"), "amqp:invalid-field", "conditions"),
        (AttachMember("key", "property", "q", (*_RED, *_RED, *_RED)), "amqp:invalid-field", "conditions_max"),
        (AttachMember("key", "property", "q", (Condition(""),)), "amqp:invalid-field", "found '': it is empty"),
        (
            AttachMember("key", "property", "q", (Condition("annotations."),)),
            "amqp:invalid-field",
            "without a field",
        ),
        (
            AttachMember("key", "property", "q", (*_RED, _BOGUS)),
            "amqp:invalid-field",
            "properties has message-id",
        ),
        (
            AttachMember("key", "wild-property", "q", (Condition("header.bogus", True, "#"),)),
            "amqp:invalid-field",
            "found 'header.bogus': the section header has durable, priority, ttl, first-acquirer, delivery-count",
        ),
        (AttachMember("key", "wild-property", "q", (Condition("n", True, 1),)), "amqp:invalid-field", "patterns"),
        (AttachMember("key", "destination", "q", "x" * 65), "amqp:invalid-field", "argument_bytes_max"),
        (AttachMember("key", "destination", "q", "\ud800"), "amqp:invalid-field", "text of Unicode"),
        (AttachMember("key", "property", "q", (Condition("n", True, "\udfff"),)), "amqp:invalid-field", "of Unicode"),
        (
            DeclareQueue("key", "new", Settings(messages_max=1 << 63)),
            "amqp:invalid-field",
            "messages_max: expected a whole number from 0 to",
        ),
        (
            UpdateQueue("key", "q", str, {"messages_max": 1 << 63}),
            "amqp:invalid-field",
            "messages_max: expected a whole number from 0 to",
        ),
        (DetachMember("key", "simple", "q"), "amqp:not-found", "not attached"),
        (DeclareMuxer("key", "a/b", MuxerKind.SIMPLE), "amqp:invalid-field", "no '/'"),
        (DeclareMuxer("key", "", MuxerKind.SIMPLE), "amqp:invalid-field", "1 to 255 bytes"),
        (DeclareMuxer("key", "x" * 256, MuxerKind.SIMPLE), "amqp:invalid-field", "1 to 255 bytes"),
        (DeclareMuxer("key", "n", MuxerKind.LOSSY, Options(probability=1.5)), "amqp:invalid-field", "from 0 to 1"),
        (
            DeclareMuxer("key", "n", MuxerKind.SIMPLE, Options(seed=1)),
            "amqp:invalid-field",
            "has no probability and no seed",
        ),
        (DeclareMuxer("key", "n", MuxerKind.SIMPLE, Options(separator="/")), "amqp:invalid-field", "has no separator"),
        (DeclareMuxer("key", "n", MuxerKind.WILD_PROPERTY, Options(separator="")), "amqp:invalid-field", "separator"),
        (DeleteMuxer("key", "QUEUE"), "amqp:not-allowed", "predeclared"),
        (DeleteMuxer("key", "none"), "amqp:not-found", "no muxer"),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_happens(command: Command, condition: str, words: str) -> None:
    """With the condition that fits, and one message that says what."""
    world = wired()
    count = len(world.events)
    (refused,) = world.do(command)
    assert type(refused) is RefusedCommand
    assert (refused.condition, words in refused.description) == (condition, True), refused.description
    assert len(world.events) == count


@pytest.mark.parametrize("name", ["header.priority", "properties.message-id", "annotations.any", "other.any", "header"])
def test_names_that_messages_may_have_are_taken(name: str) -> None:
    """Annotations and application properties have any name; dots mean nothing in those of no section."""
    assert wired().do(AttachMember("key", "property", "q", (Condition(name),))) == [Answered("key", {"created": True})]


def test_what_an_older_log_holds_stays_until_it_is_detached() -> None:
    """By a field that no message has, it was let be once: it is folded, found again, and goes like any other."""
    world = wired()
    muxer, queue = world.state.muxer_named("property"), world.state.queue_named("q")
    assert muxer is not None
    assert queue is not None
    world.happened(Attached(world.next_offset, 0, muxer.id, queue.id, (_BOGUS,)))
    assert world.do(AttachMember("key", "property", "q", (_BOGUS,))) == [Answered("key", {"created": False})]
    assert world.do(DetachMember("key", "property", "q", (_BOGUS,))) == [Answered("key", {"deleted": True})]


def test_a_template_attaches_by_what_messages_have() -> None:
    """Else no queue is made of it."""
    template = QueueTemplate(Settings("odd"), "odd.#", (TemplateAttachment("property", (_BOGUS,), "conditions"),))
    world = World(EngineConfig(templates=QueueTemplates((template,)).with_defaults()))
    world.do(DeclareMuxer("key", "property", MuxerKind.PROPERTY))
    count = len(world.events)
    (refused,) = world.do(DeclareQueue("key", "odd.one", Settings("odd")))
    assert type(refused) is RefusedCommand
    assert (refused.condition, len(world.events)) == ("amqp:invalid-field", count)


def test_a_circle_is_refused_with_its_way() -> None:
    """However long it is."""
    world = wired()
    for muxer, member, argument in (("simple", "destination", None), ("destination", "lossy", "x")):
        assert type(world.do(AttachMember("key", muxer, f"muxer:{member}", argument))[0]) is Answered
    (refused,) = world.do(AttachMember("key", "lossy", "muxer:simple"))
    assert type(refused) is RefusedCommand
    assert refused.description == "messages would loop: lossy -> simple -> destination -> lossy"


def test_a_queue_takes_its_attachments_along() -> None:
    """All of them, each by an event, before it goes."""
    world = wired()
    arguments: tuple[tuple[str, Argument], ...] = (("simple", None), ("property", _RED), ("destination", "x"))
    for muxer, argument in arguments:
        world.do(AttachMember("key", muxer, "q", argument))
    world.do(AttachMember("key", "simple", "r"))
    before = len(world.events)
    world.do(DeleteQueue("key", "q"))
    assert [type(event) for event in world.events[before:]] == [*[Detached] * 4, QueueDeleted]
    assert [len(muxer.attachments) for _, muxer in sorted(world.state.muxers.items())] == [1, 0, 1, 0, 0, 0, 0, 0, 0]
    assert fold(EMPTY_STATE, world.events) == world.state


def test_a_muxer_goes_with_what_leads_to_it_and_from_it() -> None:
    """Its producers are ended; `if_unused` and `if_empty` refuse if it is used or not empty."""
    world = wired()
    world.do(AttachMember("key", "simple", "muxer:destination"))
    world.do(AttachMember("key", "destination", "q", "x"))
    world.do(AttachProducer("key", "/muxers/destination/x", "container", "link"))
    for flag in ({"if_unused": True}, {"if_empty": True}):
        (refused,) = world.do(DeleteMuxer("key", "destination", **flag))
        assert type(refused) is RefusedCommand
        assert refused.condition == "amqp:precondition-failed"
    before = len(world.events)
    ended, answered = world.do(DeleteMuxer("key", "destination"))
    assert type(ended) is ProducersEnded
    assert answered == Answered("key", {"attachments": 1})
    assert [type(event) for event in world.events[before:]] == [Detached, Detached, MuxerDeleted]
    assert not world.state.muxers[world.state.muxer_names["simple"]].attachments
    assert world.do(DeclareMuxer("key", "destination", MuxerKind.SIMPLE)) == [Answered("key", {"created": True})]
    assert type(world.events[-1]) is MuxerDeclared


def test_detaching_lets_go_of_one_attachment() -> None:
    """A queue that is attached several times stays by the others."""
    world = wired()
    for text in ("a", "b"):
        world.do(AttachMember("key", "destination", "q", text))
    attached = [event for event in world.events if type(event) is Attached][-2]
    assert world.do(DetachMember("key", "destination", "q", "a")) == [Answered("key", {"deleted": True})]
    assert world.events[-1] == Detached(
        attached.offset + 2, 1_000, attached.muxer, attached.member, attached.offset, "a"
    )
    muxer = world.state.muxer_names["destination"]
    assert world.router.plain_route(world.state, muxer, "a") == ()
    assert world.router.plain_route(world.state, muxer, "b") == (attached.member,)


def test_attachments_that_come_with_a_queue_or_a_subscription_count() -> None:
    """What its name and its template attach it by: it is refused as a whole where one of them is too many."""
    template = QueueTemplate(Settings(template="wired"), attach=(TemplateAttachment("m"), TemplateAttachment("n")))
    world = World(EngineConfig(attachments_max=4, templates=QueueTemplates((template,)).with_defaults()))
    for name in "mn":
        world.do(DeclareMuxer("key", name, MuxerKind.SIMPLE))
    assert type(world.do(DeclareQueue("key", "q", Settings(template="wired")))[-1]) is Answered
    before = world.state
    for command in (
        DeclareQueue("key", "r", Settings(template="wired")),
        AttachConsumer("key", "/topics/t", "container", "link", selector="a = 1"),
    ):
        (refused,) = world.do(command)
        assert type(refused) is RefusedCommand
        assert refused.description == "at most 4 attachments (attachments_max)"
    assert world.state == before
    assert type(world.do(AttachConsumer("key", "/topics/t", "container", "link"))[-1]) is ConsumerReady


@pytest.mark.parametrize("limit", ["muxers_max", "attachments_max"])
def test_limits_have_names(limit: str) -> None:
    """One more than a limit allows is refused, and the limit is named."""
    world = World(EngineConfig(**{limit: 3}))
    world.do(DeclareMuxer("key", "m", MuxerKind.DESTINATION))
    world.do(DeclareQueue("key", "q", Settings()))
    effects = []
    for number in range(3):
        effects += world.do(DeclareMuxer("key", f"m{number}", MuxerKind.SIMPLE))
        effects += world.do(AttachMember("key", "m", "q", f"{number}"))
    refused = [effect for effect in effects if type(effect) is RefusedCommand]
    assert refused
    assert all(limit in effect.description for effect in refused)


def test_a_sender_names_no_longer_destination_than_an_attachment() -> None:
    """It stands in the log and in State."""
    world = wired()
    assert type(world.do(AttachProducer("key", "/muxers/simple/" + "x" * 64, "c", "l"))[-1]) is ProducerReady
    (refused,) = world.do(AttachProducer("key", "/muxers/simple/" + "x" * 65, "c", "l"))
    assert type(refused) is RefusedCommand
    assert (refused.condition, "argument_bytes_max" in refused.description) == ("amqp:invalid-field", True)
