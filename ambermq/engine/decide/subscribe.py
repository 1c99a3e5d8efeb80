"""The decision on a subscription of a receiver: find it, create it, or replace it if the request has changed.

Rule 1. A subscription that is not shared has one link at a time. A new link steals it, and the old link is ended.
Rule 2. A request with the same key and another topic, selector or no-local replaces the subscription: the old one ends
        with its messages (JMS 2.0, 8.3.3). For a shared subscription with receivers this is refused.
Rule 3. A durable name is either shared or not shared. A temporary topic has no durable subscriptions.
Rule 4. Containers with an empty id are different ones, so such a container cannot be found again. It may only have
        subscriptions of one link and global ones; durable or shared ones are refused, and no-local has no effect.
Rule 5. A durable or shared subscription belongs to the user that made it. One without an owner, from an older log,
        gets the first user that attaches.
"""

from typing import NamedTuple

from msgspec.structs import replace

from ambermq.engine.commands import AttachConsumer
from ambermq.engine.decide.attachment_arguments import check_argument
from ambermq.engine.decide.context import DecisionContext, check_size, too_many
from ambermq.engine.decide.end_nodes import context_after
from ambermq.engine.decide.node_names import subscription_name, topic_muxer
from ambermq.engine.decide.release_parts import release_part
from ambermq.engine.decide.teardown import Teardown
from ambermq.engine.decide.wiring import check_room, new_queue, not_creatable
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
    """The queue of a consumer, and the decision that provides it."""

    queue: int
    events: list[Event]
    effects: list[Effect]
    subscription: Subscription | None = None
    address: str = ""
    """The address of a dynamic node that the decision creates."""
    owns: int = 0
    """The id of that node, 0 for none."""
    is_unfinished: bool = False
    """The end of the old link or subscription takes more than one decision, so the command must be decided again."""
    created: str = ""
    """The queue that the decision creates for an address, empty if it exists."""


def subscribe(state: State, topic: str, command: AttachConsumer, context: DecisionContext) -> SubscriptionPlace:
    """Return the subscription that a receiver requests. Raises Refused."""
    _check_owner(command.user, context)
    wanted = _wanted(topic, command)
    _check_container(wanted)
    _check(state, wanted, command, context)
    found = None if wanted.key is None else state.subscription_queues.get(wanted.key)
    events: list[Event] = []
    effects: list[Effect] = []
    is_ended = True
    if found is not None:
        known = _authorized(state, found, command)
        is_same = replace(known, owner=wanted.owner) == wanted
        if command.must_exist and not is_same:
            raise Refused("amqp:not-found", f"subscription {wanted.name!r:.80} has another topic, selector or no-local")
        if wanted.is_shared:
            _check_unused(state, found, "another topic or selector", is_fine=is_same)
        else:
            events, effects, is_ended = _stolen(state, found, context)
        if is_same:
            events += _claim(known, found, wanted.owner, context_after(context, events)) if is_ended else []
            return SubscriptionPlace(found, events, effects, wanted, is_unfinished=not is_ended)
        if not is_ended:
            _creation(fold(state, events), wanted, context_after(context, events))
            return SubscriptionPlace(found, events, effects, wanted, is_unfinished=True)
        part = Teardown(fold(state, events), context_after(context, events), context.config.tick_changes_max)
        is_gone = part.remove(found)
        events, effects = events + part.events, effects + part.effects
        if not is_gone:
            # This call raises a refusal of the new subscription now, before anything has changed.
            _creation(part.state, wanted, context_after(context, events))
            return SubscriptionPlace(found, events, effects, wanted, is_unfinished=True)
        state = part.state
    queue = context.next_offset + len(events)
    return SubscriptionPlace(queue, events + _creation(state, wanted, context_after(context, events)), effects, wanted)


def recall(state: State, command: AttachConsumer, context: DecisionContext) -> SubscriptionPlace:
    """Return the durable subscription of a receiver that gives only its name, without a source. Raises Refused."""
    _check_owner(command.user, context)
    request = command.subscription_request
    container, name = None if request.is_global else command.container, request.name or command.link
    if container == "":
        raise Refused("amqp:not-found", f"no durable subscription {name!r:.80}: the container's id is empty")
    for is_shared in (False, True):
        found = state.subscription_queues.get((container, name, is_shared, False))
        if found is not None:
            known = _authorized(state, found, command)
            events, effects, is_ended = list[Event](), list[Effect](), True
            if is_shared:
                _check_unused(state, found, "a receiver without a source")
            else:
                events, effects, is_ended = _stolen(state, found, context)
            events += _claim(known, found, command.user, context_after(context, events)) if is_ended else []
            return SubscriptionPlace(found, events, effects, known, is_unfinished=not is_ended)
    whose = "a global one" if container is None else f"one of container {container!r:.80}"
    raise Refused("amqp:not-found", f"no durable subscription {name!r:.80}, as {whose}")


def _authorized(state: State, queue: int, command: AttachConsumer) -> Subscription:
    """Return a subscription that exists. Raises Refused if the receiver may not attach to it."""
    known = state.subscriptions[queue]
    if command.authorize is not None:
        command.authorize(known)
    return known


def _claim(known: Subscription, queue: int, user: str, context: DecisionContext) -> list[Event]:
    """Return the event that gives a subscription without an owner, from before there were any, to its receiver."""
    if known.owner or not user:
        return []
    return [Subscribed(context.next_offset, context.now_us, queue, replace(known, owner=user))]


def compiled(text: str, context: DecisionContext) -> Selector | None:
    """Return the compiled selector of a receiver, None for a blank text. Raises Refused with position and token."""
    if not text.strip():
        return None
    try:
        config = context.config
        return parse_selector(text, bytes_max=config.argument_bytes_max, tokens_max=config.selector_tokens_max)
    except SelectorError as error:
        raise Refused("amqp:invalid-field", f"the selector {text!r:.80}: {error}") from error


def _wanted(topic: str, command: AttachConsumer) -> Subscription:
    request = command.subscription_request
    has_owner = request.is_durable or request.is_shared
    return Subscription(
        topic,
        request.name or command.link,
        None if request.is_global else command.container,
        request.is_shared,
        not request.is_durable,
        command.selector if command.selector.strip() else "",
        # A global subscription belongs to no container.
        request.is_no_local and not request.is_global and command.container != "",
        command.user if has_owner else "",
    )


def _check_container(wanted: Subscription) -> None:
    """Raise Refused if containers with an empty id would share the subscription."""
    if wanted.container == "" and wanted.key is not None:
        what = f"subscription {wanted.name!r:.80} would be found by its container's id, which is empty"
        raise Refused("amqp:invalid-field", f"{what}: open with a container-id, or request a global one")


def _check_owner(user: str, context: DecisionContext) -> None:
    """Raise Refused for a user whose name is too long for a record."""
    check_size(user, "the user's name", bytes_max=context.config.name_bytes_max, limit="name_bytes_max")


def _check_durable(wanted: Subscription, command: AttachConsumer, context: DecisionContext) -> None:
    """Raise Refused if the broker has no durable subscriptions, or if the user may not create one."""
    name = f"durable subscription {wanted.name!r:.80}"
    if command.must_exist:
        raise Refused("amqp:not-found", f"no {name}")
    if not context.config.durable_subscriptions:
        raise Refused("amqp:not-allowed", f"no {name}, and this broker creates none (durable_subscriptions)")
    if not command.may_create:
        raise not_creatable(name)


def _check(state: State, wanted: Subscription, command: AttachConsumer, context: DecisionContext) -> None:
    """Raise Refused if no message can reach the subscription, or if it exists as another kind."""
    muxer = state.muxers[topic_muxer(state, wanted.topic)]
    if muxer.name == TOPIC_MUXER:
        check_argument(muxer, wanted.topic, context.config)
    elif not wanted.is_volatile:
        raise Refused("amqp:not-allowed", f"topic {wanted.topic!r} is temporary: it has no durable subscriptions")
    found = None if wanted.key is None else state.subscription_queues.get(wanted.key)
    if found is None and not wanted.is_volatile:
        _check_durable(wanted, command, context)
    if found is None or state.subscriptions[found].selector != wanted.selector:
        # One that exists was accepted before, perhaps under other limits.
        compiled(wanted.selector, context)
    other = replace(wanted, is_shared=not wanted.is_shared).key
    if not wanted.is_volatile and other is not None and other in state.subscription_queues:
        kind = "not shared" if wanted.is_shared else "shared"
        raise Refused("amqp:not-allowed", f"the durable subscription {wanted.name!r:.80} exists and is {kind}")


def _check_unused(state: State, queue: int, why: str, *, is_fine: bool = False) -> None:
    count = state.queues[queue].consumers
    if count and not is_fine:
        name = state.subscriptions[queue].name
        raise Refused("amqp:resource-locked", f"subscription {name!r:.80} has {count} receivers: refused for {why}")


def _stolen(state: State, queue: int, context: DecisionContext) -> tuple[list[Event], list[Effect], bool]:
    """Return the decision that ends the links of a subscription, and whether they end with it.

    If not, it returns a part of what one of them holds, and must be decided again.
    """
    if not state.queues[queue].consumers:
        return [], [], True
    left = sorted(state.receivers[queue])
    why = f"another link receives from the subscription {state.subscriptions[queue].name!r:.80}"
    events: list[Event] = [
        ConsumerDetached(context.next_offset + index, context.now_us, one) for index, one in enumerate(left)
    ]
    effects: list[Effect] = [ConsumerEnded(one, "amqp:link:stolen", why) for one in left]
    part = next((part for one in left if (part := release_part(state, one, context))), None)
    return (events, effects, True) if part is None else (part, effects, False)


def _creation(state: State, wanted: Subscription, context: DecisionContext) -> list[Event]:
    """Return the events that create a subscription's queue and attach it."""
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
