"""A message for more queues than a tick takes: it is in all of them or in none, and holds the loop a tick at a time."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ambermq.engine.commands import AttachMember, DeclareMuxer, DeclareQueue, Inspect
from ambermq.engine.config import EngineConfig
from ambermq.engine.decide.messages.room import admission
from ambermq.engine.effects import Answered, Deliver, PublishDone
from ambermq.engine.entries.outcome import OutcomeKind
from ambermq.engine.events import Published, QueueDeclared
from ambermq.engine.fold import apply
from ambermq.engine.fold import wide_fanout as spreading
from ambermq.engine.fold.apply import fold
from ambermq.engine.loop.schedule import SOON
from ambermq.engine.model.muxer import MuxerKind
from ambermq.engine.model.state import EMPTY_STATE, State
from ambermq.engine.settings.queue_settings import DROP_HEAD, REJECT, Settings
from ambermq.log.config import LogConfig
from tests.engine.rig import Rig, delivered

_QUEUES = 50
_CHANGES_MAX = 20


def _fanning(rig: Rig) -> int:
    """Attach queues to a muxer for everything; return a producer to it."""
    rig.do(DeclareMuxer("key", "all", MuxerKind.SIMPLE))
    for number in range(_QUEUES):
        rig.do(DeclareQueue("key", f"q{number}", Settings()), AttachMember("key", "all", f"q{number}"))
    return rig.producer("/muxers/all/x")


def _rig(**limits: int) -> Rig:
    return Rig(config=EngineConfig(tick_changes_max=_CHANGES_MAX, **limits))


def _depths(state: State) -> set[int]:
    return {queue.depth for queue in state.queues.values()}


def _killed(rig: Rig) -> State:
    """Return what the next life finds after a SIGKILL."""
    rig.kill()
    return Rig(rig.storage).recovered


def test_a_tick_reaches_no_more_queues_than_it_takes_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted where queues get their messages, at once or in parts."""
    rig = _rig()
    producer = _fanning(rig)
    counts: list[int] = []
    plain = spreading.spread

    def counted(queues: object, event: Published, reached: tuple[int, ...], now_us: int) -> None:
        counts.append(len(reached))
        plain(queues, event, reached, now_us)  # type: ignore[arg-type]

    for module in (apply, spreading):
        monkeypatch.setattr(module, "spread", counted)
    seen = []
    rig.loop.submit(rig.publish(producer, b"m"))
    while rig.due >= SOON:
        before = len(counts)
        rig.step()
        seen.append(sum(counts[before:]))
    assert sum(seen) == _QUEUES
    assert max(seen) <= _CHANGES_MAX


@given(steps=st.integers(0, 4), is_written=st.booleans())
@settings(deadline=None, max_examples=20)
def test_it_is_in_all_of_its_queues_or_in_none(steps: int, is_written: bool) -> None:
    """At every tick, and after a kill at any; what everybody sees is the fold of what was drafted."""
    rig = _rig()
    producer = _fanning(rig)
    rig.loop.submit(rig.publish(producer, b"m"))
    for _ in range(steps):
        before = rig.loop.state
        rig.step()
        assert len(_depths(rig.loop.state)) == 1
        assert rig.loop.state is before or _depths(rig.loop.state) == {1}
    if is_written and rig.loop.log.draft.record_count:
        rig.loop.log.write(rig.now_us)
    live = rig.loop.state
    found = _killed(rig)
    assert len(_depths(found)) == 1
    assert found == live or not is_written


def test_nothing_is_decided_meanwhile_and_the_sender_hears_of_it_once_it_is_durable() -> None:
    """A later command sees it on all queues."""
    rig = _rig()
    producer = _fanning(rig)
    seen = rig.step(rig.publish(producer, b"m"), Inspect("after", _depths))
    assert not seen
    effects = rig.do()
    (done,) = [one for one in effects if type(one) is PublishDone]
    assert (done.kind, done.count) == (OutcomeKind.ACCEPTED, 1)
    assert [one.value for one in effects if type(one) is Answered] == [{1}]


def test_what_was_decided_before_it_leaves_meanwhile() -> None:
    """Its tick ends as any other does; what there is to be dealt still waits for its turn."""
    rig = _rig(dispatch_messages_max=1)
    producer = _fanning(rig)
    other, consumer = rig.producer("q7"), rig.consumer("q7", credit=10)
    rig.step(rig.publish(other, b"1", b"2"))
    assert rig.loop.demand.dirty
    effects = rig.step(rig.publish(other, b"3"), rig.publish(producer, b"4")) + rig.completed()
    assert [type(one) for one in effects] == [PublishDone, Deliver, PublishDone]
    assert _depths(rig.loop.state) == {0, 3}
    assert [body for _, body in delivered(rig.do())] == [b"2", b"3", b"4"]
    assert rig.queue("q7").held_by(consumer).count == 4


@pytest.mark.parametrize("size", [3, 5000])
@pytest.mark.parametrize("durable", [True, False])
def test_dealing_has_its_turn_between_two_of_them(size: int, durable: bool) -> None:
    """In order; large ones, whose pieces stand before them, and those that need not be durable included."""
    rig = _rig(chunk_bytes=1000)
    producer = _fanning(rig)
    consumer = rig.consumer("q7", credit=10)
    bodies = [bytes([number]) * size for number in range(3)]
    for body in bodies:
        rig.loop.submit(rig.publish(producer, body, durable=durable))
        rig.loop.submit(Inspect("then", _depths))
    effects = []
    while rig.due >= SOON:
        effects += rig.step() + rig.completed()
    assert delivered(effects) == [(consumer, body) for body in bodies]
    order = [type(one) for one in effects if type(one) in (Deliver, PublishDone)]
    assert order.index(Deliver) < len(order) - order[::-1].index(PublishDone) - 1
    live = rig.loop.state
    assert _killed(rig) == live


def test_parts_come_to_what_a_fold_comes_to() -> None:
    """Whatever their size."""
    made = [QueueDeclared(number, 1, f"q{number}", Settings()) for number in range(5)]
    before = fold(EMPTY_STATE, made)
    event = Published(7, 2, (0, 1, 2, 6, 3, 4), 0, bytes(8), 8, durable=True)
    for changes_max in range(1, 7):
        on_its_way = spreading.WideFanout(None, event, [], [])
        after = None
        while after is None:
            after = on_its_way.go_on(before, changes_max)
        assert after == apply.apply(before, event)


def test_a_dispatch_looks_at_no_more_queues_than_it_deals_messages() -> None:
    """This holds without credit too: the other queues have their turn in the ticks that follow.

    Each queue has two consumers, since a single one without credit needs no dispatch.
    """
    rig = Rig(config=EngineConfig(dispatch_messages_max=10))
    producer = _fanning(rig)
    for number in range(_QUEUES):
        rig.consumer(f"q{number}")
        rig.consumer(f"q{number}")
    rig.step(rig.publish(producer, b"m"))
    assert len(rig.loop.demand.dirty) == _QUEUES - 10
    rig.do()
    assert not rig.loop.demand.dirty


@pytest.mark.parametrize("kind", [MuxerKind.SIMPLE, MuxerKind.SELECTOR])
@pytest.mark.parametrize("size", [3, 5000])
def test_a_queue_without_room_rejects_a_message_that_is_checked_in_parts(
    monkeypatch: pytest.MonkeyPatch, kind: MuxerKind, size: int
) -> None:
    """On none of the queues, wherever the full one is; the messages before and after it are on all of theirs."""
    monkeypatch.setattr(admission, "_CHECKED_MAX", 10)
    for full in (0, _QUEUES // 2, _QUEUES - 1):
        rig = _rig(chunk_bytes=1000)
        argument = "1 = 1" if kind is MuxerKind.SELECTOR else None
        rig.do(DeclareMuxer("key", "all", kind))
        for number in range(_QUEUES):
            messages_max = 3 if number == full else 0
            rig.do(DeclareQueue("key", f"q{number}", Settings(messages_max=messages_max)))
            rig.do(AttachMember("key", "all", f"q{number}", argument))
        producer, other = rig.producer("/muxers/all/x"), rig.producer(f"q{full}")
        bodies = [bytes([number]) * size for number in range(5)]
        effects = rig.do(
            rig.publish(producer, *bodies[:2]), rig.publish(other, b"3"), rig.publish(producer, *bodies[2:])
        )
        done = [(one.kind, one.count) for one in effects if type(one) is PublishDone]
        assert sum(count for outcome, count in done if outcome is OutcomeKind.ACCEPTED) == 3
        assert sum(count for outcome, count in done if outcome is OutcomeKind.REJECTED) == 3
        refused = [one for one in effects if type(one) is PublishDone and one.kind is OutcomeKind.REJECTED]
        assert {one.description for one in refused} == {
            f"queue 'q{full}' is full: it holds 3 messages, at most 3 (messages_max)"
        }
        assert {queue.depth for queue in rig.loop.state.queues.values()} == {2, 3}
        live = rig.loop.state
        assert _killed(rig) == live


@pytest.mark.parametrize("overflow", [REJECT, DROP_HEAD])
def test_the_maximum_of_bytes_holds_for_a_message_that_is_checked_in_parts(
    monkeypatch: pytest.MonkeyPatch, overflow: str
) -> None:
    """Whatever its policy is, a full queue refuses a message for so many: none may look at all of them."""
    monkeypatch.setattr(admission, "_CHECKED_MAX", 10)
    rig = _rig(chunk_bytes=1000)
    rig.do(DeclareMuxer("key", "all", MuxerKind.SIMPLE))
    for number in range(_QUEUES):
        limit = Settings(bytes_max=200, overflow=overflow) if number == 5 else Settings()
        rig.do(DeclareQueue("key", f"q{number}", limit))
        rig.do(AttachMember("key", "all", f"q{number}"))
    effects = rig.do(rig.publish(rig.producer("/muxers/all/x"), *[bytes(100)] * 4))
    done = [(one.kind, one.count) for one in effects if type(one) is PublishDone]
    assert sum(count for outcome, count in done if outcome is OutcomeKind.ACCEPTED) == 2
    assert {queue.depth for queue in rig.loop.state.queues.values()} == {2}
    live = rig.loop.state
    assert _killed(rig) == live


def test_the_queues_of_a_state_that_a_wide_message_has_replaced_are_freed_in_parts() -> None:
    """At once it would take 40 ms for 100,000."""
    rig = Rig(config=EngineConfig(tick_changes_max=1000), log_config=LogConfig(ballast_bytes=0))
    rig.do(DeclareMuxer("key", "all", MuxerKind.SIMPLE))
    for number in range(2500):
        rig.do(DeclareQueue("key", f"q{number}", Settings()), AttachMember("key", "all", f"q{number}"))
    rig.loop.submit(rig.publish(rig.producer("/muxers/all/x"), b"m"))
    for _ in range(3):
        assert not rig.loop.is_late
        rig.step()
    assert _depths(rig.loop.state) == {1}
    assert rig.loop.is_late
    parts = 0
    while rig.loop.is_late:
        rig.completed()
        parts += 1
    assert parts >= 2
