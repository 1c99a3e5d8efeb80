"""A subscription is found, made, or made anew where what is asked of its key has changed.

Rule 1. What is not shared has one link at a time: the newest has it, the one before is ended as stolen.
Rule 2. Asking for another topic, selector or no-local by the same key ends the subscription that there was, with its
        messages, and makes another (JMS 2.0, 8.3.3). While others use a shared one that is refused.
Rule 3. One name is not durable both shared and unshared; nothing at a temporary topic is durable.
Rule 4. A container without an id is nobody in particular: it has what its links have, and what is global. What others
        could find by its name, durable or shared, is refused, and it has no messages of its own to be left out.
"""

from typing import NamedTuple

from msgspec.structs import replace

from ambermq.engine.commands import AttachConsumer
from ambermq.engine.decide.attachment_arguments import check_argument
from ambermq.engine.decide.context import Decision, DecisionContext, too_many
from ambermq.engine.decide.end_nodes import context_after
from ambermq.engine.decide.node_names import subscription_name, topic_muxer
from ambermq.engine.decide.teardown import Teardown
from ambermq.engine.decide.wiring import check_room, new_queue
from ambermq.engine.effects import ConsumerEnded, Effect
from ambermq.engine.errors import Refused, SelectorError
from ambermq.engine.events import Attached, ConsumerDetached, Event, MuxerDeclared, Subscribed
from ambermq.engine.fold.apply import fold
from ambermq.engine.model.lifetime import Lifetime
from ambermq.engine.model.muxer import TOPIC_MUXER, MuxerKind
from ambermq.engine.model.queue_template import SUBSCRIPTION
from ambermq.engine.model.state import State
from ambermq.engine.model.subscription import Subscription
from ambermq.engine.selectors.selector import Selector, parse_selector

__all__ = ["SubscriptionPlace", "compiled", "recall", "subscribe"]


class SubscriptionPlace(NamedTuple):
    """Where a consumer gets its messages, and what makes it be there."""

    queue: int
    events: list[Event]
    effects: list[Effect]
    subscription: Subscription | None = None
    address: str = ""
    """Of a node that was made for it."""
    owns: int = 0
    """That node."""
    is_unfinished: bool = False
    """What was there has to go first, and is more than one decision takes: the command is to be decided again."""


def subscribe(state: State, topic: str, command: AttachConsumer, context: DecisionContext) -> SubscriptionPlace:
    """Return the subscription that a receiver asks for. Raises Refused."""
    wanted = _wanted(topic, command)
    _check_container(wanted)
    _check(state, wanted, context)
    found = None if wanted.key is None else state.subscription_queues.get(wanted.key)
    events: list[Event] = []
    effects: list[Effect] = []
    if found is not None:
        is_same = state.subscriptions[found] == wanted
        if wanted.is_shared:
            _check_unused(state, found, "another topic or selector", is_fine=is_same)
        else:
            events, effects = _robbed(state, found, context)
        if is_same:
            return SubscriptionPlace(found, events, effects, wanted)
        part = Teardown(fold(state, events), context_after(context, events), context.config.tick_changes_max)
        is_gone = part.take(found)
        events, effects = events + part.events, effects + part.effects
        if not is_gone:
            # What would be refused in the end is refused now, while nothing has changed.
            _made(part.state, wanted, context_after(context, events))
            return SubscriptionPlace(found, events, effects, wanted, is_unfinished=True)
        state = part.state
    queue = context.next_offset + len(events)
    return SubscriptionPlace(queue, events + _made(state, wanted, context_after(context, events)), effects, wanted)


def recall(state: State, command: AttachConsumer, context: DecisionContext) -> SubscriptionPlace:
    """Return a durable subscription that a receiver names without saying what it is. Raises Refused."""
    asked = command.subscription_request
    container, name = None if asked.is_global else command.container, asked.name or command.link
    if container == "":
        raise Refused("amqp:not-found", f"no durable subscription {name!r:.80}: the container's id is empty")
    for is_shared in (False, True):
        found = state.subscription_queues.get((container, name, is_shared, False))
        if found is not None:
            events, effects = _robbed(state, found, context) if not is_shared else ([], [])
            if is_shared:
                _check_unused(state, found, "whoever asks for it without a source")
            return SubscriptionPlace(found, events, effects, state.subscriptions[found])
    whose = "a global one" if container is None else f"one of container {container!r:.80}"
    raise Refused("amqp:not-found", f"no durable subscription {name!r:.80}, as {whose}")


def compiled(text: str, context: DecisionContext) -> Selector | None:
    """Return a receiver's selector, None where it selects nothing. Raises Refused: position and token are named."""
    if not text.strip():
        return None
    try:
        return parse_selector(text, bytes_max=context.config.argument_bytes_max)
    except SelectorError as error:
        raise Refused("amqp:invalid-field", f"the selector {text!r:.80}: {error}") from error


def _wanted(topic: str, command: AttachConsumer) -> Subscription:
    asked = command.subscription_request
    return Subscription(
        topic,
        asked.name or command.link,
        None if asked.is_global else command.container,
        asked.is_shared,
        not asked.is_durable,
        command.selector if command.selector.strip() else "",
        # Nobody in particular has a global one.
        asked.is_no_local and not asked.is_global and command.container != "",
    )


def _check_container(wanted: Subscription) -> None:
    """Refuse what nameless containers would have in common, and take from each other."""
    if wanted.container == "" and wanted.key is not None:
        what = f"subscription {wanted.name!r:.80} would be found by its container's id, which is empty"
        raise Refused("amqp:invalid-field", f"{what}: open with a container-id, or ask for a global one")


def _check(state: State, wanted: Subscription, context: DecisionContext) -> None:
    """Refuse what no message could reach, or what is there as another kind."""
    muxer = state.muxers[topic_muxer(state, wanted.topic)]
    if muxer.name == TOPIC_MUXER:
        check_argument(muxer, wanted.topic, context.config)
    elif not wanted.is_volatile:
        raise Refused("amqp:not-allowed", f"topic {wanted.topic!r} is temporary: it has no durable subscriptions")
    compiled(wanted.selector, context)
    other = replace(wanted, is_shared=not wanted.is_shared).key
    if not wanted.is_volatile and other is not None and other in state.subscription_queues:
        kind = "not shared" if wanted.is_shared else "shared"
        raise Refused("amqp:not-allowed", f"the durable subscription {wanted.name!r:.80} exists and is {kind}")


def _check_unused(state: State, queue: int, why: str, *, is_fine: bool = False) -> None:
    count = state.queues[queue].consumers
    if count and not is_fine:
        name = state.subscriptions[queue].name
        raise Refused("amqp:resource-locked", f"subscription {name!r:.80} has {count} receivers: not for {why}")


def _robbed(state: State, queue: int, context: DecisionContext) -> Decision:
    """Return what ends the links that a subscription has."""
    if not state.queues[queue].consumers:
        return [], []
    left = sorted(state.receivers[queue])
    why = f"another link receives from the subscription {state.subscriptions[queue].name!r:.80}"
    events: list[Event] = [
        ConsumerDetached(context.next_offset + index, context.now_us, one) for index, one in enumerate(left)
    ]
    return events, [ConsumerEnded(one, "amqp:link:stolen", why) for one in left]


def _made(state: State, wanted: Subscription, context: DecisionContext) -> list[Event]:
    """Return what makes a subscription's queue and wires it."""
    queue, now_us = context.next_offset, context.now_us
    name = subscription_name(queue)
    lifetime = Lifetime.NO_LINKS if wanted.is_volatile else Lifetime.PERMANENT
    template = context.config.templates.named(SUBSCRIPTION)
    assert template is not None, "it is predefined"
    events = new_queue(state, name, template.settings, context, lifetime=lifetime, is_private=True)
    muxer = state.muxers[topic_muxer(state, wanted.topic)]
    pattern = wanted.topic if muxer.name == TOPIC_MUXER else None
    member = queue
    if wanted.selector:
        if len(state.muxers) >= context.config.muxers_max:
            raise too_many("muxers", context.config.muxers_max)
        member = queue + len(events)
        events.append(MuxerDeclared(member, now_us, name, MuxerKind.SELECTOR))
        events.append(Attached(queue + len(events), now_us, member, queue, wanted.selector))
    events.append(Attached(queue + len(events), now_us, muxer.id, member, pattern))
    check_room(state, context, sum(type(event) is Attached for event in events))
    events.append(Subscribed(queue + len(events), now_us, queue, wanted))
    return events
