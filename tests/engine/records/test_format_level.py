"""The first event that an earlier release cannot read is told once, and the manifest notes it."""

from ambermq.engine.events.registry import NEWER_TYPES, least_release, release_order
from ambermq.engine.loop.format_level import FormatRaised
from ambermq.log.manifest.manifest import decode, encode, load
from tests.engine.rig import Rig
from tests.log.lives import DIRECTORY

_SECOND = 1_000_000
_RAISED = FormatRaised(("clock-stepped",), "0.1.0", "0.2.0")


def step_clock(rig: Rig) -> None:
    now_us = rig.now_us + rig.loop.correction_us
    rig.loop.correct_clock(rig.loop.correction_us + _SECOND, (now_us, now_us + _SECOND))
    rig.step()


def noted(rig: Rig) -> str | None:
    manifest = load(rig.storage, DIRECTORY)
    assert manifest is not None
    assert decode(encode(manifest), file="MANIFEST") == manifest
    assert (b"least_release" in encode(manifest)) is (manifest.least_release is not None)
    return manifest.least_release


def test_the_first_event_of_a_newer_type_raises_the_format_once() -> None:
    """In this life and in the next; a log without one stays as the first release reads it."""
    rig = Rig()
    rig.producer("a")
    assert rig.loop.format.take_raised() is None
    assert noted(rig) is None
    step_clock(rig)
    assert rig.loop.format.take_raised() == _RAISED
    rig.producer("b")
    assert noted(rig) == "0.2.0"
    step_clock(rig)
    assert rig.loop.format.take_raised() is None
    rig.kill()
    second = Rig(rig.storage)
    step_clock(second)
    assert second.loop.format.take_raised() is None


def test_a_kill_before_the_edit_makes_the_next_event_tell_it() -> None:
    """The event is in the log, and the manifest does not know it."""
    rig = Rig()
    step_clock(rig)
    rig.loop.sync_or_mark(rig.now_us + 10 * _SECOND)
    rig.kill()
    second = Rig(rig.storage)
    assert noted(second) is None
    step_clock(second)
    assert second.loop.format.take_raised() == _RAISED


def test_releases_are_in_order() -> None:
    """By their numbers: 0.10 comes after 0.9."""
    assert release_order("0.10.0") > release_order("0.9.1")
    assert least_release(()) == "0.1.0"
    assert least_release((1, 2, *NEWER_TYPES)) == max(NEWER_TYPES.values(), key=release_order)
