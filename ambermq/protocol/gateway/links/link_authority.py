"""What the user of a connection may do with links: the checks of an attach, and those of a live link.

    target              send; create, if its queue does not exist         no address: each message (relay_guard.py)
    source that takes   receive; create, if its queue does not exist
    source that copies  browse; replay for `ambermq:at` and /log
    topic as a source   receive on the whole pattern; create for a durable subscription that does not exist
    dynamic node        create on /queues/$temporary.* or /topics/$temporary.*; only its user receives from it

Rule 1. A refusal is amqp:unauthorized-access. It says the action and the address, and no rule of another user.
Rule 2. Only the engine knows what exists when it decides. So `create` and the owner go with the command.
"""

from collections.abc import Callable
from functools import partial
from typing import Final

from ambermq.engine.address import topic_address
from ambermq.engine.errors import Refused
from ambermq.engine.model.lifetime import Dynamic
from ambermq.engine.model.subscription import Subscription
from ambermq.protocol.amqp10.spec import AmqpCondition
from ambermq.protocol.auth.access import Action
from ambermq.protocol.gateway.links.attach_terms import LOG_ADDRESS, ConsumingTerms, ProducingTerms, Refusal
from ambermq.protocol.gateway.links.link_peer import LinkPeer

__all__ = [
    "authorize_deletion",
    "authorizer",
    "check",
    "check_consumer",
    "check_producer",
    "is_allowed",
    "owner_of",
    "refusal_text",
]

_TOPICS: Final = "/topics/"
_TEMPORARY: Final = {False: "/queues/$temporary.*", True: "/topics/$temporary.*"}
_TAKING: Final = (Action.RECEIVE, Action.BROWSE, Action.REPLAY)


def is_allowed(peer: LinkPeer, action: Action, address: str) -> bool:
    """Return whether the user of a connection may do something with an address."""
    gateway, identity = peer.gateway, peer.identity
    if gateway.owners.is_known(address):
        if gateway.owners.is_of(address, identity.username):
            return True
        if action in _TAKING:
            action = Action.MANAGE
    return gateway.access.decide(identity, gateway.vhost, action, address).is_allowed


def check(peer: LinkPeer, action: Action, address: str) -> None:
    """Raise Refusal if the user of a connection may not do something with an address."""
    if not is_allowed(peer, action, address):
        raise Refusal(AmqpCondition.UNAUTHORIZED_ACCESS, refusal_text(peer, action, address))


def refusal_text(peer: LinkPeer, action: str, address: str) -> str:
    """Return the description of a refusal."""
    name = peer.identity.username
    user = "an anonymous client" if name is None else f"user {name!r:.80}"
    return f"no rule allows {user} the action {action} on {address!r:.80}"


def check_producer(peer: LinkPeer, terms: ProducingTerms) -> bool:
    """Return whether a sending link may create the queue at its address. Raises Refusal."""
    if terms.dynamic is not None:
        _check_dynamic(peer, terms.dynamic)
    elif terms.address:
        check(peer, Action.SEND, terms.address)
        return is_allowed(peer, Action.CREATE, terms.address)
    return True


def check_consumer(peer: LinkPeer, terms: ConsumingTerms) -> bool:
    """Return whether a receiving link may create what it attaches to. Raises Refusal.

    A link without a source is checked by the engine, which finds its subscription.
    """
    if terms.is_recalled:
        return False
    if terms.dynamic is not None:
        _check_dynamic(peer, terms.dynamic)
        return True
    if terms.is_copy:
        is_past = terms.at is not None or terms.address == LOG_ADDRESS
        check(peer, Action.REPLAY if is_past else Action.BROWSE, terms.address)
        return False
    if terms.address.startswith(_TOPICS) and not peer.gateway.owners.is_known(terms.address):
        _check_all(peer, Action.RECEIVE, terms.address)
        return _is_allowed_all(peer, Action.CREATE, terms.address)
    check(peer, Action.RECEIVE, terms.address)
    return is_allowed(peer, Action.CREATE, terms.address)


def owner_of(peer: LinkPeer) -> str:
    """Return the owner of the subscriptions that a connection makes; empty without a user name."""
    return peer.identity.username or ""


def authorizer(peer: LinkPeer, *, is_recalled: bool = False) -> Callable[[Subscription], None]:
    """Return the check of a subscription that exists; it raises Refused.

    `is_recalled`: the link has no source, so that its topic was not checked.
    """
    return partial(_authorize, peer, is_recalled)


def authorize_deletion(peer: LinkPeer, subscription: Subscription) -> None:
    """Raise Refused if the user of a connection may not delete a subscription.

    Its owner may, and others need `delete` on its topic; for the subscription of another user `manage` as well.
    """
    if subscription.owner and subscription.owner == owner_of(peer):
        return
    address = topic_address(subscription.topic)
    needed = (Action.DELETE, Action.MANAGE) if subscription.owner else (Action.DELETE,)
    for action in needed:
        if not _is_allowed_all(peer, action, address):
            raise Refused(AmqpCondition.UNAUTHORIZED_ACCESS, refusal_text(peer, action, address))


def _authorize(peer: LinkPeer, is_recalled: bool, subscription: Subscription) -> None:
    address = topic_address(subscription.topic)
    # A receiver of another topic would delete the messages of a subscription without an owner, and then have its name.
    is_checked = is_recalled or not subscription.owner
    if is_checked and not _is_allowed_all(peer, Action.RECEIVE, address):
        raise Refused(AmqpCondition.UNAUTHORIZED_ACCESS, refusal_text(peer, Action.RECEIVE, address))
    is_own = subscription.owner in ("", owner_of(peer))
    if not is_own and not _is_allowed_all(peer, Action.MANAGE, address):
        why = f"subscription {subscription.name!r:.80} belongs to another user"
        raise Refused(AmqpCondition.UNAUTHORIZED_ACCESS, why)


def _is_allowed_all(peer: LinkPeer, action: Action, pattern: str) -> bool:
    gateway = peer.gateway
    return gateway.access.decide_all(peer.identity, gateway.vhost, action, pattern).is_allowed


def _check_all(peer: LinkPeer, action: Action, pattern: str) -> None:
    if not _is_allowed_all(peer, action, pattern):
        raise Refusal(AmqpCondition.UNAUTHORIZED_ACCESS, refusal_text(peer, action, pattern))


def _check_dynamic(peer: LinkPeer, dynamic: Dynamic) -> None:
    _check_all(peer, Action.CREATE, _TEMPORARY[dynamic.is_topic])
