"""The events of a command name its user: those of the first part, and those of every later one."""

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
    DetachConsumer,
    DetachMember,
    DetachProducer,
    PurgeQueue,
    ResetHost,
    UpdateQueue,
)
from ambermq.engine.config import EngineConfig
from ambermq.engine.decide.context import DecisionContext
from ambermq.engine.decide.decide import decide
from ambermq.engine.effects import Unfinished
from ambermq.engine.events import Detached, Event, MuxerDeleted
from ambermq.engine.fold.apply import fold
from ambermq.engine.model.muxer import MuxerKind
from ambermq.engine.model.state import EMPTY_STATE, State
from ambermq.engine.routing.router import Router
from ambermq.engine.settings.queue_settings import Settings


def context(config: EngineConfig) -> DecisionContext:
    """Return a context at an offset that no event has."""
    return DecisionContext(1, 1000, 1 << 30, config, Router())


def after(state: State, *commands: Command) -> State:
    """Return the state after commands without a user."""
    offset = 1
    for command in commands:
        events, _ = decide(state, command, DecisionContext(1, offset, 1 << 30, EngineConfig(), Router()))
        state, offset = fold(state, events), offset + len(events)
    return state


@pytest.fixture
def state() -> State:
    """A queue with links, attached to a muxer."""
    return after(
        EMPTY_STATE,
        DeclareMuxer("key", "QUEUE", MuxerKind.DESTINATION),
        DeclareMuxer("key", "all", MuxerKind.SIMPLE),
        DeclareQueue("key", "orders", Settings()),
        AttachMember("key", "all", "orders"),
        AttachProducer("key", "/queues/orders", "shop", "out"),
        AttachConsumer("key", "/queues/orders", "store", "in"),
    )


def users(events: list[Event]) -> set[str]:
    """Return the users that events name."""
    return {str(getattr(event, "by", "") or getattr(event, "user", "")) for event in events}


def test_each_event_of_a_command_names_its_user(state: State) -> None:
    """Changes, and the links with what they create."""
    commands: list[Command] = [
        DeclareQueue("key", "new", Settings(), by="alice"),
        DeclareMuxer("key", "new", MuxerKind.SIMPLE, by="alice"),
        UpdateQueue("key", "orders", lambda _state: {}, {"messages_max": 7}, by="alice"),
        AttachMember("key", "all", "muxer:QUEUE", by="alice"),
        DetachMember("key", "all", "orders", by="alice"),
        DeleteQueue("key", "orders", by="alice"),
        DeleteMuxer("key", "all", by="alice"),
        AttachProducer("key", "/queues/later", "c", "l", by="alice"),
        AttachConsumer("key", "/queues/later", "c", "l", by="alice"),
        DetachProducer(max(state.producers), by="alice"),
        DetachConsumer(max(state.consumers), by="alice"),
        ResetHost("key", by="alice"),
    ]
    for command in commands:
        events, _ = decide(state, command, context(EngineConfig()))
        assert events, command
        assert users(events) == {"alice"}, command


def test_no_user_is_none(state: State) -> None:
    """A command without one leaves its events without one."""
    events, _ = decide(state, DeleteQueue("key", "orders"), context(EngineConfig()))
    assert users(events) == {""}


def test_a_purge_of_nothing_has_no_event(state: State) -> None:
    """So nothing names its user."""
    assert decide(state, PurgeQueue("key", "orders", by="alice"), context(EngineConfig()))[0] == []


def test_every_part_of_a_long_command_names_the_user(state: State) -> None:
    """A deletion with more changes than a tick takes goes on in commands that the engine makes."""
    for number in range(9):
        name = f"q{number}"
        state = after_offset(state, DeclareQueue("key", name, Settings()), AttachMember("key", "all", name))
    config, command, events = EngineConfig(tick_changes_max=2), None, list[Event]()
    rest: Command | None = DeleteMuxer("key", "all", by="alice")
    parts = 0
    while rest is not None:
        at = DecisionContext(1, 5000 + len(events), 1 << 30, config, Router())
        made, effects = decide(state, rest, at)
        state, events, parts = fold(state, made), events + made, parts + 1
        command = effects[-1] if effects else None
        rest = command.command if isinstance(command, Unfinished) else None  # type: ignore[assignment]
    assert parts > 3
    assert {type(event) for event in events} == {Detached, MuxerDeleted}
    assert users(events) == {"alice"}


def after_offset(state: State, *commands: Command) -> State:
    """Return the state after commands, at offsets after all that it has."""
    offset = max([*state.queues.keys(), *state.muxers.keys(), *state.consumers.keys()]) + 10
    for command in commands:
        events, _ = decide(state, command, DecisionContext(1, offset, 1 << 30, EngineConfig(), Router()))
        state, offset = fold(state, events), offset + len(events)
    return state
