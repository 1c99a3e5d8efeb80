"""The decision: a command and a state give events and effects. It validates and routes, and changes nothing.

`next_offset` is the offset of the first event of the decision, so each event has its offset when it is created.
"""

from collections.abc import Callable
from typing import Any, Final

from ambermq.engine.commands import (
    Command,
    EndLinks,
    GiveUp,
    Inspect,
    MakeDue,
    NoteBrowser,
    Publish,
    PurgeQueue,
    RecordCompaction,
    ReportDamage,
    ResetHost,
    Settle,
    SignedCommand,
)
from ambermq.engine.decide.attach_link import LINK_DECISIONS
from ambermq.engine.decide.context import Decision, DecisionContext, signed
from ambermq.engine.decide.delete_subscription import SUBSCRIPTION_DECISIONS
from ambermq.engine.decide.end_nodes import (
    END_DECISIONS,
    context_after,
    end_links,
    end_nodes_at_start,
    with_queue_end,
)
from ambermq.engine.decide.explain_route import EXPLAIN_DECISIONS
from ambermq.engine.decide.messages.dead_letters import give_up
from ambermq.engine.decide.messages.deferred import DEFERRED_DECISIONS
from ambermq.engine.decide.messages.delays import make_due
from ambermq.engine.decide.messages.edits import EDIT_DECISIONS
from ambermq.engine.decide.messages.moves import MOVE_DECISIONS
from ambermq.engine.decide.messages.publish import publish
from ambermq.engine.decide.messages.scheduled import SCHEDULE_DECISIONS
from ambermq.engine.decide.messages.transactions import TRANSACTION_DECISIONS
from ambermq.engine.decide.messages.uploads import UPLOAD_DECISIONS
from ambermq.engine.decide.outcome_room import limit_outcomes
from ambermq.engine.decide.suspend_link import kept_at_start
from ambermq.engine.decide.update import UPDATE_DECISIONS
from ambermq.engine.decide.wiring import WIRING_DECISIONS, existing_queue, predeclared
from ambermq.engine.effects import (
    Answered,
    Effect,
    OutcomeApplied,
    RefusedCommand,
    Unfinished,
)
from ambermq.engine.entries.entry_word import WORD_BYTES, pack_words
from ambermq.engine.entries.outcome import OutcomeKind
from ambermq.engine.errors import Refused
from ambermq.engine.events import (
    Compacted,
    Damaged,
    Event,
    Purged,
    Reset,
    Settled,
    Started,
)
from ambermq.engine.fold.apply import fold
from ambermq.engine.model.lifetime import Lifetime
from ambermq.engine.model.state import EMPTY_STATE, State
from ambermq.snapshot.persistent_queue import EMPTY_QUEUE

__all__ = ["DECIDE", "Decision", "DecisionContext", "decide", "refused", "started"]


def decide(state: State, command: Command, context: DecisionContext) -> Decision:
    """Return the events and effects of a command. A refusal is an effect too; only a defect of AmberMQ raises."""
    try:
        return DECIDE[type(command)](state, command, context)
    except Refused as refusal:
        return refused(command, refusal)


def refused(command: Command, refusal: Refused) -> Decision:
    """Return the decision that refuses a command."""
    key = command.key  # type: ignore[union-attr]  # only commands with a key are refused this way
    return [], [RefusedCommand(key, refusal.condition, refusal.description)]


def started(state: State, context: DecisionContext) -> list[Event]:
    """Return the events of a start of the broker: the new epoch, the end of nodes, the missing predeclared wiring.

    Nodes that need a link end, and queues with `auto_delete` that had a consumer. The predeclared wiring is missing at
    the first start, and if a repair of the log lost it: then the queues are attached to it again. Before the first
    start `state` has the requested mode.
    """
    kept = kept_at_start(state, context)
    events: list[Event] = [Started(context.next_offset, context.now_us, state.epoch + 1, state.mode, kept)]
    left = [queue.id for queue in state.queues.values() if queue.consumers]
    state = fold(state, events)
    events += end_nodes_at_start(state, context_after(context, events), left=left)
    state = fold(state, events[1:])
    return events + predeclared(state, context_after(context, events))


def _settle(state: State, command: Settle, context: DecisionContext) -> Decision:
    effects: list[Effect] = []
    if command.reply is not None:
        effects.append(OutcomeApplied(command.reply, consumer=command.consumer if command.outcome.returns else 0))
    # Locks expire of suspended links, too.
    consumer = state.consumers.get(command.consumer) or state.suspended.get(command.consumer)
    queue = None if consumer is None else state.queues.get(consumer.queue)
    if queue is None:
        return [], effects
    held, taken = queue.acquired.get(command.consumer, EMPTY_QUEUE), command.words
    if not held.starts_with(taken):
        taken, _ = held.remove(taken)
    if not taken:
        return [], effects
    event = Settled(context.next_offset, context.now_us, queue.id, command.consumer, command.outcome, taken)
    if command.outcome.kind is not OutcomeKind.ACCEPTED:
        limit_outcomes(state, [event], context.config)
    is_last = queue.lifetime >= Lifetime.NO_MESSAGES and queue.depth * WORD_BYTES == len(taken)
    if is_last and not (queue.settings.dead_letter and command.outcome.kind is OutcomeKind.REJECTED):
        return with_queue_end(state, [event], queue, context, effects)
    return [event], effects


def _purge_queue(state: State, command: PurgeQueue, context: DecisionContext) -> Decision:
    queue = existing_queue(state, command.name, context.config)
    count = queue.waiting if command.scheduled else queue.waiting - queue.scheduled.count
    if not count:
        return [], [Answered(command.key, {"messages": 0})]
    event = Purged(context.next_offset, context.now_us, queue.id, context.next_offset, int(command.scheduled))
    return with_queue_end(state, [event], queue, context, [Answered(command.key, {"messages": count})])


def _reset_host(state: State, command: ResetHost, context: DecisionContext) -> Decision:
    events: list[Event] = [Reset(context.next_offset, context.now_us)]
    events += predeclared(EMPTY_STATE.with_fields(mode=state.mode), context_after(context, events))
    messages = sum(queue.depth for queue in state.queues.values())
    answer = Answered(command.key, {"queues": len(state.queues), "messages": messages})
    why = ("amqp:resource-deleted", "the virtual host was reset")
    links = EndLinks(tuple(state.consumers), tuple(state.producers), why, (answer,))
    return events, end_links(links, context)


def _record_compaction(_state: State, command: RecordCompaction, context: DecisionContext) -> Decision:
    event = Compacted(
        context.next_offset, context.now_us, command.horizon, *command.segments, *command.records, *command.sizes
    )
    answer = {"offset": event.offset, "horizon": event.horizon}
    for name, (before, after) in (
        ("segments", command.segments),
        ("records", command.records),
        ("bytes", command.sizes),
    ):
        answer |= {f"{name}_before": before, f"{name}_after": after}
    return [event], [Answered(command.key, answer)]


def _report_damage(state: State, command: ReportDamage, context: DecisionContext) -> Decision:
    queue = state.queues.get(command.queue)
    if queue is None:
        return [], []
    event = Damaged(context.next_offset, context.now_us, queue.id, pack_words([command.word]))
    return with_queue_end(state, [event], queue, context, [])


def _inspect(state: State, command: Inspect, _context: DecisionContext) -> Decision:
    return [], [Answered(command.key, command.read(state))]


def _note_browser(_state: State, _command: NoteBrowser, _context: DecisionContext) -> Decision:
    return [], []


_Decide = Callable[[State, Any, DecisionContext], Decision]


def _with_user(decide_command: _Decide) -> _Decide:
    """Return the decision on a command whose events name its user, also those of its later parts."""

    def decide_signed(state: State, command: SignedCommand, context: DecisionContext) -> Decision:
        events, effects = decide_command(state, command, context)
        if command.by and effects and type(effects[-1]) is Unfinished:
            rest = effects[-1].command
            if isinstance(rest, SignedCommand):
                rest.by = command.by
        return signed(events, command.by), effects

    return decide_signed


_DECISIONS: Final[dict[type, _Decide]] = {
    Publish: publish,
    Settle: _settle,
    GiveUp: give_up,
    MakeDue: make_due,
    PurgeQueue: _purge_queue,
    ResetHost: _reset_host,
    ReportDamage: _report_damage,
    RecordCompaction: _record_compaction,
    Inspect: _inspect,
    NoteBrowser: _note_browser,
    **LINK_DECISIONS,
    **WIRING_DECISIONS,
    **END_DECISIONS,
    **EXPLAIN_DECISIONS,
    **SUBSCRIPTION_DECISIONS,
    **UPDATE_DECISIONS,
    **EDIT_DECISIONS,
    **MOVE_DECISIONS,
    **DEFERRED_DECISIONS,
    **SCHEDULE_DECISIONS,
    **TRANSACTION_DECISIONS,
    **UPLOAD_DECISIONS,
}

DECIDE: Final[dict[type, _Decide]] = {
    kind: _with_user(one) if issubclass(kind, SignedCommand) else one for kind, one in _DECISIONS.items()
}
"""The decision on each class of commands."""
