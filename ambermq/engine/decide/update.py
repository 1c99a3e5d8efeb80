"""The decision on an update of a queue or muxer: its settings change, never its kind.

Rule 1. The event has all settings, not the difference, so the newest event is enough.
Rule 2. A setting that the command leaves out stays. If nothing changes there is no event, and the answer says so.
Rule 3. Class, separator and template never change. A command may repeat them; another value is refused.
Rule 4. Messages stay on their queues, and a LOSSY muxer continues after its last draw.
"""

from collections.abc import Callable
from typing import Any, Final

from msgspec.structs import replace

from ambermq.engine.commands import UpdateMuxer, UpdateQueue
from ambermq.engine.decide.context import Decision, DecisionContext
from ambermq.engine.decide.end_nodes import context_after
from ambermq.engine.decide.wiring import check_options, existing_muxer, existing_queue, missing_target
from ambermq.engine.effects import Answered
from ambermq.engine.errors import EngineError, Refused
from ambermq.engine.events import Event, MuxerUpdated, QueueConfigured, QueueUpdated
from ambermq.engine.fold.apply import fold
from ambermq.engine.model.muxer import Muxer, Options
from ambermq.engine.model.queue import Queue
from ambermq.engine.model.state import State
from ambermq.engine.settings.queue_settings import Settings
from ambermq.engine.settings.setting_conflicts import check_combination
from ambermq.engine.settings.setting_table import SETTINGS, changed_settings, value_text, values_of_settings

__all__ = ["UPDATE_DECISIONS"]

_MUXER_INSTEAD: Final = "declare another muxer, and move the attachments"


def _update_queue(state: State, command: UpdateQueue, context: DecisionContext) -> Decision:
    queue = existing_queue(state, command.name, context.config)
    template = queue.settings.template
    if command.template not in (None, template):
        made = f"queue {queue.name!r} was created from template {template!r}, which does not change"
        instead = "declare another queue from that one, and move to it"
        raise _unchangeable(made, f"template {command.template!r}", instead)
    settings = _settings(queue, command)
    if settings == queue.settings:
        return _answer(state, [], command)
    is_first_release = settings.is_first_release and queue.settings.is_first_release
    # An older release may ignore priorities and groups, but a change of them has an event of its own.
    is_first_release &= settings.priorities == queue.settings.priorities
    is_first_release &= settings.groups == queue.settings.groups
    is_first_release &= settings.group_rebalance == queue.settings.group_rebalance
    kind = QueueUpdated if is_first_release else QueueConfigured
    events: list[Event] = [kind(context.next_offset, context.now_us, queue.id, settings)]
    if settings.dead_letter != queue.settings.dead_letter:
        events += missing_target(state, queue.name, settings, context_after(context, events))
    return _answer(state, events, command)


def _settings(queue: Queue, command: UpdateQueue) -> Settings:
    """Return the settings of a queue after an update. Raises Refused."""
    try:
        settings = changed_settings(queue.settings, command.changes)
        check_combination(settings)
    except EngineError as error:
        raise Refused("amqp:invalid-field", str(error)) from error
    for name, before in values_of_settings(queue.settings).items():
        if not SETTINGS[name].is_changeable and getattr(settings, name) != before:
            asked = value_text(getattr(settings, name), quoted=True)
            made = f"{name} of queue {queue.name!r} is {value_text(before, quoted=True)}, which does not change"
            raise _unchangeable(made, asked, "declare another queue, and move to it")
    return settings


def _update_muxer(state: State, command: UpdateMuxer, context: DecisionContext) -> Decision:
    muxer = existing_muxer(state, command.name, context.config)
    if command.kind not in (None, muxer.kind):
        made = f"muxer {muxer.name!r} is of class {muxer.kind.text}, which does not change"
        raise _unchangeable(made, f"class {command.kind.text}", _MUXER_INSTEAD)
    options = _options(muxer, command)
    check_options(muxer.kind, options)
    if options.separator != muxer.options.separator:
        made = f"the separator of muxer {muxer.name!r} is {muxer.options.separator!r}, which does not change"
        raise _unchangeable(made, f"separator {options.separator!r}", _MUXER_INSTEAD)
    if options == muxer.options:
        return _answer(state, [], command)
    return _answer(state, [MuxerUpdated(context.next_offset, context.now_us, muxer.id, options)], command)


def _options(muxer: Muxer, command: UpdateMuxer) -> Options:
    changes = {"separator": command.separator, "probability": command.probability, "seed": command.seed}
    return replace(muxer.options, **{name: value for name, value in changes.items() if value is not None})


def _unchangeable(made: str, asked: str, instead: str) -> Refused:
    return Refused("amqp:precondition-failed", f"{made}, but the request asks for {asked}: {instead}")


def _answer(state: State, events: list[Event], command: UpdateQueue | UpdateMuxer) -> Decision:
    return events, [Answered(command.key, {**command.read(fold(state, events)), "updated": bool(events)})]


UPDATE_DECISIONS: Final[dict[type, Callable[[State, Any, DecisionContext], Decision]]] = {
    UpdateQueue: _update_queue,
    UpdateMuxer: _update_muxer,
}
