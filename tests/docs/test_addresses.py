"""docs/addresses.md says what an address is, to send to and to receive from: each is attached to."""

import re

import pytest

from ambermq.engine.commands import AttachConsumer, AttachProducer, Command, DeclareMuxer
from ambermq.engine.effects import Effect, RefusedCommand
from ambermq.engine.model.muxer import MuxerKind
from ambermq.protocol.gateway.links.attach_terms import _IMMEDIATE, _UNROUTABLE
from tests.docs.pages import rows, text_of
from tests.engine.world import World

_PAGE = "docs/addresses.md"
_CODE = re.compile(r"`([^`]*)`")
_OTHERS = {"any other `$...`": "$else", "any other `/...`": "/else"}


def _table() -> list[tuple[str, str, str]]:
    """Address, what it is to send to, what it is to receive from."""
    found = []
    for first, sending, receiving in rows(_PAGE, "## Address forms"):
        cell = first.strip("| ")
        address = _OTHERS.get(cell) or cell.strip("`")
        # The others are answered before the engine is asked.
        if not cell.startswith(("none", "`$management", "`$cbs", "`/log")):
            found.append((address, sending, sending if receiving == "the same" else receiving))
    return found


def _attach(command: Command) -> Effect:
    world = World()
    world.do(DeclareMuxer("key", "colours", MuxerKind.SIMPLE))
    (effect,) = world.do(command)
    return effect


@pytest.mark.parametrize(("address", "sending", "receiving"), _table())
def test_an_address_is_what_the_page_says(address: str, sending: str, receiving: str) -> None:
    """Attached where it is a node, refused with the condition of the page where it is none."""
    for said, command in (
        (sending, AttachProducer("key", address, "container", "link")),
        (receiving, AttachConsumer("key", address, "container", "link")),
    ):
        effect = _attach(command)
        condition = next((code for code in _CODE.findall(said) if code.startswith("amqp:")), "")
        found = effect.condition if type(effect) is RefusedCommand else ""
        assert found == condition, (address, said)


def test_every_capability_of_a_target_is_told_of() -> None:
    """Each one that chooses the outcome of an unroutable message."""
    section = text_of(_PAGE).partition("\n## Unroutable messages\n")[2].partition("\n## ")[0]
    assert {*_UNROUTABLE, _IMMEDIATE} <= set(_CODE.findall(section))
