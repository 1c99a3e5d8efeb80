"""What differs between two states, as rows."""

from ambermq.engine.commands import AttachMember, DeclareMuxer, DeclareQueue
from ambermq.engine.model.attachment import Condition
from ambermq.engine.model.muxer import MuxerKind
from ambermq.engine.model.state import EMPTY_STATE
from ambermq.engine.settings.queue_settings import Settings
from ambermq.tools.history.state_changes import StateFold, member_names, wiring_changes
from tests.engine.world import World


def test_members_and_arguments_are_told_as_they_are_written() -> None:
    """A queue by its name, a muxer behind `muxer:`, a condition as the command that attached it has it."""
    world = World()
    for name, kind in (("news", MuxerKind.PROPERTY), ("net", MuxerKind.LOSSY)):
        world.do(DeclareMuxer("key", name, kind))
    world.do(DeclareQueue("key", "q", Settings()))
    world.do(AttachMember("key", "news", "muxer:net", (Condition("code", True, "3"), Condition("paid", True, True))))
    world.do(AttachMember("key", "net", "q"))
    between = StateFold(EMPTY_STATE)
    between.fold(world.events)
    rows = wiring_changes(between.before, between.after, member_names(between))
    assert [(row["muxer"], row["queue"], row["destination"]) for row in rows if row["change"] == "attached"] == [
        ("news", "muxer:net", 'code="3" and paid=true'),
        ("net", "q", ""),
    ]
