"""The decisions on the wiring: queues, muxers and attachments.

Rule 1. A command is checked completely before the first event, so it is never half done.
Rule 2. A repeated declaration changes nothing. A declaration of the same name with other properties is refused.
Rule 3. Muxers have no cycle: an attachment that would close one is refused, and the refusal names the path.
Rule 4. A deleted node loses its attachments in both directions, each by an event of its own (end_nodes.py).
"""

from bisect import bisect_right
from collections.abc import Callable
from functools import partial
from typing import Any

from ambermq.engine.address import MUXER_MEMBER, NodeKind, parse_address, queue_name
from ambermq.engine.commands import AttachMember, DeclareMuxer, DeclareQueue, DeleteMuxer, DeleteQueue, DetachMember
from ambermq.engine.config import EngineConfig
from ambermq.engine.decide.attachment_arguments import check_argument, check_argument_name, check_names
from ambermq.engine.decide.context import Decision, DecisionContext, too_many
from ambermq.engine.decide.end_nodes import context_after, end_nodes
from ambermq.engine.decide.node_names import ADVANCED_MODE, check_name_allowed, muxer_id, topic_muxer
from ambermq.engine.effects import Answered
from ambermq.engine.errors import EngineError, PatternError, Refused, counted
from ambermq.engine.events import Attached, Detached, Event, MuxerDeclared, QueueConfigured, QueueDeclared
from ambermq.engine.fold.apply import fold
from ambermq.engine.model.attachment import Argument
from ambermq.engine.model.condition_text import argument_text
from ambermq.engine.model.lifetime import Lifetime
from ambermq.engine.model.muxer import QUEUE_MUXER, TOPIC_MUXER, Muxer, MuxerKind, Options
from ambermq.engine.model.queue import Queue
from ambermq.engine.model.state import State
from ambermq.engine.model.vhost_mode import VhostMode
from ambermq.engine.patterns.pattern import check_separator
from ambermq.engine.routing.chain_length import chain_length
from ambermq.engine.settings.queue_settings import NEW_QUEUES, Settings
from ambermq.engine.settings.setting_conflicts import check_combination
from ambermq.engine.settings.setting_table import SETTINGS, changed_settings, value_text, values_of_settings

__all__ = [
    "WIRING_DECISIONS",
    "check_creatable",
    "check_options",
    "check_room",
    "check_settings",
    "create_queue",
    "existing_muxer",
    "existing_queue",
    "member_id",
    "missing_target",
    "new_queue",
    "not_creatable",
    "predeclared",
]

_PREDECLARED = ((QUEUE_MUXER, MuxerKind.DESTINATION), (TOPIC_MUXER, MuxerKind.WILD_DESTINATION))


def predeclared(state: State, context: DecisionContext) -> list[Event]:
    """Return the events that create missing predeclared muxers, and attach older queues to QUEUE by their names.

    In advanced mode there are none.
    """
    events: list[Event] = []
    if state.mode is VhostMode.ADVANCED:
        return events
    for name, kind in _PREDECLARED:
        muxer = state.muxer_names.get(name)
        if muxer is None:
            muxer = context.next_offset + len(events)
            events.append(MuxerDeclared(muxer, context.now_us, name, kind))
        if name == QUEUE_MUXER:
            events += [
                Attached(context.next_offset + index, context.now_us, muxer, queue_id, state.queues[queue_id].name)
                for index, queue_id in enumerate(_unattached(state, muxer), len(events))
            ]
    return events


def _unattached(state: State, muxer: int) -> list[int]:
    """Return the queues that a start must attach to QUEUE by their names: they are older than the muxer.

    A start attaches them in order of age. If a crash cut it short, the youngest ones are missing. So a gap between
    attached queues is a later detach, and stays.
    """
    older = sorted(one for one in state.queues if one < muxer and one not in state.subscriptions)
    known = state.muxers.get(muxer)
    if known is None or not older:
        return older
    attached = [
        one.member
        for one in known.attachments.values()
        if one.member < muxer and (queue := state.queues.get(one.member)) is not None and one.argument == queue.name
    ]
    return older[bisect_right(older, max(attached, default=-1)) :]


def create_queue(state: State, name: str, context: DecisionContext) -> list[Event]:
    """Return the events that create the queue of an address by its template. Raises Refused if this is switched off."""
    check_creatable(state, name, context)
    return new_queue(state, name, context.config.templates.for_queue(name).settings, context)


def check_creatable(state: State, name: str, context: DecisionContext) -> None:
    """Raise Refused with amqp:not-found if an address must not create this queue."""
    check_name_allowed(name)
    if state.mode is VhostMode.ADVANCED:
        raise Refused("amqp:not-found", f"no queue {name!r:.80}: {ADVANCED_MODE}; declare it")
    if not context.config.auto_create:
        raise Refused("amqp:not-found", f"no queue {name!r}; addresses are not created on this broker (auto_create)")


def not_creatable(what: str) -> Refused:
    """Return the refusal of a user that may not create something; it names the missing action."""
    return Refused("amqp:unauthorized-access", f"no {what}, and no rule allows the user to create it")


def existing_queue(state: State, address: str, config: EngineConfig) -> Queue:
    """Return the queue that an address names. Raises Refused."""
    name = queue_name(address, name_bytes_max=config.name_bytes_max)
    queue = state.queue_named(name)
    if queue is None:
        raise Refused("amqp:not-found", f"no queue {name!r}")
    return queue


def new_queue(
    state: State,
    name: str,
    settings: Settings,
    context: DecisionContext,
    *,
    lifetime: Lifetime = Lifetime.PERMANENT,
    is_private: bool = False,
) -> list[Event]:
    """Return the events that create a queue and its attachments: to QUEUE by its name, and those of its template.

    A private queue is not attached to QUEUE, so no producer can send to it by its name.

    Raises Refused: amqp:resource-limit-exceeded, and the refusals of its settings and of its template's attachments.
    """
    check_settings(settings)
    settings = _without_itself(name, settings, context)
    if len(state.queues) >= context.config.queues_max:
        raise too_many("queues", context.config.queues_max)
    offset, now_us = context.next_offset, context.now_us
    declared = settings.for_first_release
    events: list[Event] = [QueueDeclared(offset, now_us, name, declared, lifetime)]
    if not settings.is_first_release:
        events.append(QueueConfigured(offset + 1, now_us, offset, settings))
    muxer = None if is_private else state.muxer_names.get(QUEUE_MUXER)
    wanted: list[tuple[int, Argument]] = [] if muxer is None else [(muxer, name)]
    wanted += _of_template(state, settings.template, context.config)
    # In Python True equals 1, but a condition tells them apart, so the text is part of the key.
    alike = {(muxer, argument, argument_text(argument)): (muxer, argument) for muxer, argument in wanted}
    check_room(state, context, len(alike))
    events += [
        Attached(next_offset, now_us, muxer, offset, argument)
        for next_offset, (muxer, argument) in enumerate(alike.values(), offset + len(events))
    ]
    return events + missing_target(fold(state, events), name, settings, context_after(context, events))


def _without_itself(name: str, settings: Settings, context: DecisionContext) -> Settings:
    """Return the settings without a target of their template that is the queue itself."""
    template = context.config.templates.named(settings.template)
    is_of_template = template is not None and template.settings.dead_letter == settings.dead_letter
    if is_of_template and _names_queue(settings.dead_letter, name, context.config):
        return settings.with_values({"dead_letter": ""})
    return settings


def _names_queue(address: str, name: str, config: EngineConfig) -> bool:
    try:
        return parse_address(address, name_bytes_max=config.name_bytes_max) == (NodeKind.QUEUE, name, None)
    except Refused:
        return False


def missing_target(state: State, name: str, settings: Settings, context: DecisionContext) -> list[Event]:
    """Return the events that create the dead-letter queue of the queue `name`, if it is missing.

    Such a queue has the settings of its template, without a target of its own. Raises Refused if it cannot be created,
    or if the target is another address without a node, or the queue itself.
    """
    if not settings.dead_letter:
        return []
    try:
        address = parse_address(settings.dead_letter, name_bytes_max=context.config.name_bytes_max)
    except Refused as refused:
        raise Refused(refused.condition, f"dead_letter: {refused.description}") from refused
    if address.kind is NodeKind.MUXER:
        muxer_id(state, address.name)
        return []
    if address.kind is NodeKind.TOPIC:
        topic_muxer(state, address.name)
        return []
    if address.name == name:
        raise Refused(
            "amqp:invalid-field",
            f"dead_letter: queue {name!r} cannot be its own dead-letter queue: name another address",
        )
    if address.name in state.queue_names:
        return []
    check_creatable(state, address.name, context)
    made = context.config.templates.for_queue(address.name).settings.with_values({"dead_letter": ""})
    return new_queue(state, address.name, made, context)


def check_room(state: State, context: DecisionContext, count: int) -> None:
    """Raise Refused if `count` more attachments exceed the limit."""
    if context.router.attachment_count(state) + count > context.config.attachments_max:
        raise too_many("attachments", context.config.attachments_max)


def _of_template(state: State, name: str, config: EngineConfig) -> list[tuple[int, Argument]]:
    """Return the muxers and arguments of a template's attachments. Raises Refused."""
    template = config.templates.named(name)
    if template is None:
        known = ", ".join(one.name for one in config.templates.ordered)
        raise Refused("amqp:not-found", f"no template {name!r}: there are {known}")
    found = []
    for one in template.attach:
        muxer = state.muxer_named(one.muxer)
        if muxer is None:
            raise Refused("amqp:not-found", f"template {name!r} attaches to muxer {one.muxer!r}, which does not exist")
        check_argument_name(muxer, one.argument_name)
        check_argument(muxer, one.argument, config)
        check_names(muxer, one.argument)
        found.append((muxer.id, one.argument))
    return found


def _declare_queue(state: State, command: DeclareQueue, context: DecisionContext) -> Decision:
    name = queue_name(command.name, name_bytes_max=context.config.name_bytes_max)
    check_settings(command.settings)
    queue = state.queue_named(name)
    if queue is None:
        check_name_allowed(name)
        return new_queue(state, name, command.settings, context), [Answered(command.key, {"created": True})]
    if not queue.settings.is_as_asked(command.settings):
        raise Refused("amqp:precondition-failed", _difference(queue, command.settings))
    return [], [Answered(command.key, {"created": False})]


def _difference(queue: Queue, asked: Settings) -> str:
    """Return how a queue differs from the one that a request asks for, and what to do if that may change."""
    has, wants = ({**values_of_settings(one), "template": one.template} for one in (queue.settings, asked))
    # A queue of an older log may lack the settings that new queues have.
    differing = [name for name in has if has[name] != wants[name] and (has[name] or name not in NEW_QUEUES)]
    is_fixed = any(name == "template" or not SETTINGS[name].is_changeable for name in differing)
    found, expected = (", ".join(f"{name} {value_text(one[name])}" for name in differing) for one in (has, wants))
    instead = "declare another queue, and move to it" if is_fixed else "update it"
    return f"queue {queue.name!r} exists with {found}, but the request asks for {expected}: {instead}"


def _delete_queue(state: State, command: DeleteQueue, context: DecisionContext) -> Decision:
    queue = existing_queue(state, command.name, context.config)
    if command.if_unused and queue.consumers:
        raise Refused("amqp:precondition-failed", f"queue {queue.name!r} has {counted(queue.consumers, 'consumer')}")
    if command.if_empty and queue.depth:
        raise Refused("amqp:precondition-failed", f"queue {queue.name!r} holds {counted(queue.depth, 'message')}")
    answer = Answered(command.key, {"messages": queue.depth})
    return end_nodes(state, (queue.id,), context, deleted=(queue.id,), then=(answer,))


def _declare_muxer(state: State, command: DeclareMuxer, context: DecisionContext) -> Decision:
    name = _muxer_name(command.name, context.config)
    if state.mode is VhostMode.ADVANCED and name in (QUEUE_MUXER, TOPIC_MUXER):
        why = f"{name!r} is the name of a predeclared muxer: {ADVANCED_MODE}; take another name"
        raise Refused("amqp:not-allowed", why)
    check_options(command.kind, command.options)
    muxer_id = state.muxer_names.get(name)
    if muxer_id is not None:
        muxer = state.muxers[muxer_id]
        if (muxer.kind, muxer.options) != (command.kind, command.options):
            found, asked = _muxer_text(muxer.kind, muxer.options), _muxer_text(command.kind, command.options)
            instead = ": update it" if muxer.kind is command.kind is MuxerKind.LOSSY else ""
            why = f"muxer {name!r} exists as {found}, but the request asks for {asked}{instead}"
            raise Refused("amqp:precondition-failed", why)
        return [], [Answered(command.key, {"created": False})]
    if len(state.muxers) >= context.config.muxers_max:
        raise too_many("muxers", context.config.muxers_max)
    event = MuxerDeclared(context.next_offset, context.now_us, name, command.kind, command.options)
    return [event], [Answered(command.key, {"created": True})]


def _delete_muxer(state: State, command: DeleteMuxer, context: DecisionContext) -> Decision:
    muxer = existing_muxer(state, command.name, context.config)
    if muxer.name in (QUEUE_MUXER, TOPIC_MUXER):
        raise Refused("amqp:not-allowed", f"muxer {muxer.name!r} is predeclared: addresses need it")
    producers = len(state.links.get(muxer.id, ()))
    if command.if_unused and (producers or context.router.upstream_muxers(state, muxer.id)):
        before = len(context.router.upstream_muxers(state, muxer.id))
        senders = f"{counted(producers, 'producer')} and {counted(before, 'muxer')}"
        raise Refused("amqp:precondition-failed", f"muxer {muxer.name!r} is in use: {senders} can send to it")
    if command.if_empty and muxer.attachments:
        count = counted(len(muxer.attachments), "attachment")
        raise Refused("amqp:precondition-failed", f"muxer {muxer.name!r} has {count}")
    answer = Answered(command.key, {"attachments": len(muxer.attachments)})
    return end_nodes(state, (muxer.id,), context, deleted=(muxer.id,), then=(answer,))


def _attach_member(state: State, command: AttachMember, context: DecisionContext) -> Decision:
    muxer, member = (
        existing_muxer(state, command.muxer, context.config),
        member_id(state, command.member, context.config),
    )
    check_argument_name(muxer, command.argument_name)
    if context.router.find(state, muxer.id, member, command.argument) is not None:
        # Declared before, perhaps under other limits.
        return [], [Answered(command.key, {"created": False})]
    check_argument(muxer, command.argument, context.config)
    check_names(muxer, command.argument)
    check_room(state, context, 1)
    if member in state.muxers:
        path = context.router.path(state, member, muxer.id)
        if path:
            names = " -> ".join(state.muxers[one].name for one in (muxer.id, *path))
            raise Refused("amqp:not-allowed", f"messages would loop: {names}")
        _check_chain(state, muxer, member, context)
    event = Attached(context.next_offset, context.now_us, muxer.id, member, command.argument)
    return [event], [Answered(command.key, {"created": True})]


def _check_chain(state: State, muxer: Muxer, member: int, context: DecisionContext) -> None:
    """Raise Refused if an attachment makes a chain of too many muxers."""
    router, length_max = context.router, context.config.chain_muxers_max
    before = chain_length(muxer.id, partial(router.upstream_muxers, state))
    length = before + chain_length(member, partial(router.downstream_muxers, state))
    if length > length_max:
        why = f"messages would pass {length} muxers one after the other, {before} of them up to {muxer.name!r}"
        raise Refused("amqp:resource-limit-exceeded", f"{why}: at most {length_max} (chain_muxers_max)")


def _detach_member(state: State, command: DetachMember, context: DecisionContext) -> Decision:
    muxer = existing_muxer(state, command.muxer, context.config)
    if command.attachment:
        found = muxer.attachments.get(command.attachment)
    else:
        member = member_id(state, command.member, context.config)
        check_argument_name(muxer, command.argument_name)
        found = context.router.find(state, muxer.id, member, command.argument)
    if found is None:
        raise Refused("amqp:not-found", f"{command.member!r} is not attached to {muxer.name!r} by that argument")
    event = Detached(context.next_offset, context.now_us, muxer.id, found.member, found.id, found.argument)
    return [event], [Answered(command.key, {"deleted": True})]


def member_id(state: State, named: str, config: EngineConfig) -> int:
    """Return the id of a member: a queue by its address, or a muxer after `muxer:`. Raises Refused."""
    if named.startswith(MUXER_MEMBER):
        return existing_muxer(state, named.removeprefix(MUXER_MEMBER), config).id
    return existing_queue(state, named, config).id


def existing_muxer(state: State, name: str, config: EngineConfig) -> Muxer:
    """Return the muxer of a name. Raises Refused."""
    return state.muxers[muxer_id(state, _muxer_name(name, config))]


def _muxer_name(name: str, config: EngineConfig) -> str:
    size = len(name.encode("utf-8", "surrogatepass"))
    if not 0 < size <= config.name_bytes_max or not name.isprintable():
        expected = f"1 to {config.name_bytes_max} bytes of printable UTF-8"
        raise Refused("amqp:invalid-field", f"a muxer's name has {expected}, found {name!r:.80} of {size}")
    if "/" in name or name.startswith("$"):
        raise Refused(
            "amqp:invalid-field", f"a muxer's name has no '/' and does not begin with '$', found {name!r:.80}"
        )
    return name


def check_options(kind: MuxerKind, options: Options) -> None:
    """Raise Refused for options that the class does not have, or that are out of range."""
    if kind is MuxerKind.LOSSY:
        if not 0.0 <= options.probability <= 1.0:
            raise Refused("amqp:invalid-field", f"a probability is from 0 to 1, found {options.probability}")
        if not -(1 << 63) <= options.seed < 1 << 63:
            raise Refused("amqp:invalid-field", f"a seed is an integer of 64 bits, found {options.seed}")
    elif (options.probability, options.seed) != (1.0, 0):
        raise Refused("amqp:invalid-field", f"a muxer of class {kind.text} has no probability and no seed")
    is_wild = kind in (MuxerKind.WILD_DESTINATION, MuxerKind.WILD_PROPERTY)
    if is_wild:
        try:
            check_separator(options.separator)
        except PatternError as error:
            raise Refused("amqp:invalid-field", str(error)) from error
    elif options.separator != ".":
        raise Refused("amqp:invalid-field", f"a muxer of class {kind.text} has no separator")


def check_settings(settings: Settings) -> None:
    """Raise Refused for settings of a queue that are out of range, or that exclude each other."""
    try:
        changed_settings(settings, values_of_settings(settings))
        check_combination(settings)
    except EngineError as error:
        raise Refused("amqp:invalid-field", str(error)) from error


def _muxer_text(kind: MuxerKind, options: Options) -> str:
    parts = [kind.text]
    if kind is MuxerKind.LOSSY:
        parts += [f"probability {options.probability}", f"seed {options.seed}"]
    elif kind in (MuxerKind.WILD_DESTINATION, MuxerKind.WILD_PROPERTY):
        parts.append(f"separator {options.separator!r}")
    return ", ".join(parts)


WIRING_DECISIONS: dict[type, Callable[[State, Any, DecisionContext], Decision]] = {
    DeclareQueue: _declare_queue,
    DeleteQueue: _delete_queue,
    DeclareMuxer: _declare_muxer,
    DeleteMuxer: _delete_muxer,
    AttachMember: _attach_member,
    DetachMember: _detach_member,
}
