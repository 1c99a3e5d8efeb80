"""Queues made from templates: which one, with what, attached to what."""

import pytest

from ambermq.engine.commands import AttachConsumer, AttachProducer, DeclareMuxer, DeclareQueue
from ambermq.engine.config import EngineConfig
from ambermq.engine.effects import Answered, RefusedCommand
from ambermq.engine.events import Attached, QueueDeclared
from ambermq.engine.fold.apply import fold
from ambermq.engine.model.attachment import Condition
from ambermq.engine.model.muxer import QUEUE_MUXER, MuxerKind
from ambermq.engine.model.queue_template import PREDEFINED, QueueTemplate, QueueTemplates, TemplateAttachment
from ambermq.engine.model.state import EMPTY_STATE
from ambermq.engine.settings.queue_settings import Settings
from tests.engine.world import World

_URGENT = (Condition("urgent"),)
_TEMPLATES = QueueTemplates(
    (
        QueueTemplate(
            Settings("orders", messages_max=7),
            "orders.#",
            (TemplateAttachment("all"), TemplateAttachment("some", _URGENT, "conditions")),
        ),
        QueueTemplate(Settings("later", messages_max=8), "*.eu"),
        QueueTemplate(Settings("asked", messages_max=9)),
        QueueTemplate(Settings("broken"), "broken", (TemplateAttachment("missing"),)),
        QueueTemplate(Settings("wrong"), "wrong", (TemplateAttachment("all", "x", "destination"),)),
    )
).with_defaults()


def wired() -> World:
    """A broker with templates, and the muxers of one of them."""
    world = World(EngineConfig(templates=_TEMPLATES))
    world.do(DeclareMuxer("key", "all", MuxerKind.SIMPLE))
    world.do(DeclareMuxer("key", "some", MuxerKind.PROPERTY))
    return world


@pytest.mark.parametrize(
    ("name", "template"),
    [
        ("orders", "orders"),
        ("orders.eu", "orders"),
        ("bills.eu", "later"),
        ("bills", "normal"),
        ("x.y.eu", "normal"),
        (".".join(["orders"] * 200), "normal"),
    ],
)
def test_the_first_pattern_that_takes_the_name_is_it(name: str, template: str) -> None:
    """`normal` takes what is left, also what no pattern takes."""
    assert _TEMPLATES.for_queue(name).name == template


def test_the_predefined_ones_are_there_unless_replaced() -> None:
    """By their names; a file's own come first."""
    assert [one.name for one in PREDEFINED.ordered] == ["normal", "temporary", "subscription"]
    normal = QueueTemplate(Settings("normal", messages_max=1), "#")
    templates = QueueTemplates((normal,)).with_defaults()
    assert [one.name for one in templates.ordered] == ["normal", "temporary", "subscription"]
    assert templates.for_queue("any") is normal


@pytest.mark.parametrize("kind", [AttachProducer, AttachConsumer])
def test_an_address_makes_its_queue_from_the_template_of_its_name(kind: type) -> None:
    """With its properties, attached to QUEUE by its name and to the template's muxers."""
    world = wired()
    before = len(world.events)
    world.do(kind("key", "orders.eu", "container", "link"))
    declared = [event for event in world.events[before:] if type(event) is QueueDeclared]
    assert [(event.name, event.settings) for event in declared] == [("orders.eu", Settings("orders", messages_max=7))]
    attached = [event for event in world.events[before:] if type(event) is Attached]
    assert [(world.state.muxers[event.muxer].name, event.argument) for event in attached] == [
        (QUEUE_MUXER, "orders.eu"),
        ("all", None),
        ("some", _URGENT),
    ]
    assert fold(EMPTY_STATE, world.events) == world.state


def test_a_declared_queue_names_its_template() -> None:
    """Its attachments come along; what was said besides goes before the template's own."""
    world = wired()
    assert world.do(DeclareQueue("key", "q", Settings("orders", messages_max=3))) == [
        Answered("key", {"created": True})
    ]
    assert world.queue("q").settings == Settings("orders", messages_max=3)
    assert len(world.router.attachments_of(world.state, world.queue("q").id)) == 3


def test_attachments_that_look_alike_are_several() -> None:
    """A property called `a=1` is not the property `a` that is 1, nor is that true."""
    alike = (Condition("a=1"), Condition("a", True, 1), Condition("a", True, True))
    attach = tuple(TemplateAttachment("some", (condition,)) for condition in alike)
    world = World(
        EngineConfig(templates=QueueTemplates((QueueTemplate(Settings("t"), "t.#", attach),)).with_defaults())
    )
    world.do(DeclareMuxer("key", "some", MuxerKind.PROPERTY))
    world.do(DeclareQueue("key", "t.x", Settings("t")))
    found = world.router.attachments_of(world.state, world.queue("t.x").id)
    assert [one.argument for _, one in found[1:]] == [(condition,) for condition in alike]


@pytest.mark.parametrize(
    ("name", "template", "condition", "words"),
    [
        ("q", "none", "amqp:not-found", "no template 'none': there are orders, later, asked, broken, wrong, normal,"),
        ("q", "broken", "amqp:not-found", "template 'broken' attaches to muxer 'missing', which does not exist"),
        ("q", "wrong", "amqp:invalid-field", "muxer 'all' of class simple matches every message"),
    ],
)
def test_what_a_template_cannot_do_makes_no_queue(name: str, template: str, condition: str, words: str) -> None:
    """Nothing happens, and one message says why."""
    world = wired()
    before = len(world.events)
    (refused,) = world.do(DeclareQueue("key", name, Settings(template)))
    assert type(refused) is RefusedCommand
    assert (refused.condition, refused.description.startswith(words)) == (condition, True), refused.description
    assert len(world.events) == before
