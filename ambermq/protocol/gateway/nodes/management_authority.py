"""What each operation of `$management` needs: an action on an address, by type and operation.

    an action       the rules must allow it on each address that the request names
    see             any action on the address; QUERY shows only such rows, and READ only such an object

Rule 1. The table has every operation of every type; a test compares it with KINDS. What it lacks needs the right to
        change users, so a new type is closed until it is listed.
Rule 2. A refusal is amqp:unauthorized-access with status 403, and does not depend on what exists. Where only the answer
        tells what an object belongs to, READ of one that the user does not see is 404, as of one that is absent.
"""

import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

from ambermq.engine.address import (
    MUXER_MEMBER,
    member_address,
    muxer_address,
    queue_address,
    queue_name,
    topic_address,
)
from ambermq.engine.errors import Refused
from ambermq.engine.model.muxer import QUEUE_MUXER, TOPIC_MUXER, Muxer, MuxerKind
from ambermq.engine.model.state import State
from ambermq.engine.settings.setting_table import OFF
from ambermq.protocol.amqp10.spec import AmqpCondition
from ambermq.protocol.auth.access import Action
from ambermq.protocol.auth.address_words import USERS_ADDRESS
from ambermq.protocol.gateway.links.link_authority import is_allowed, refusal_text
from ambermq.protocol.gateway.nodes.node_peer import NodePeer
from ambermq.protocol.management.access.rules import RULE_TYPE
from ambermq.protocol.management.access.users import USER_TYPE
from ambermq.protocol.management.administration.configuration import CONFIG_TYPE
from ambermq.protocol.management.attachments import ATTACHMENT_TYPE
from ambermq.protocol.management.broker import BROKER_TYPE, GET_LIMITS
from ambermq.protocol.management.compactions import COMPACTION_TYPE
from ambermq.protocol.management.muxers import MUXER_TYPE
from ambermq.protocol.management.peers.operations import CONNECTION_TYPE, LINK_TYPE, SESSION_TYPE
from ambermq.protocol.management.queues import QUEUE_TYPE
from ambermq.protocol.management.routes import ROUTE
from ambermq.protocol.management.snapshots import SNAPSHOT_TYPE
from ambermq.protocol.management.subscriptions import SUBSCRIPTION_TYPE
from ambermq.protocol.management.templates import TEMPLATE_TYPE
from ambermq.protocol.management.vhosts import VHOST_TYPE

__all__ = ["CHECKED_BY_ANSWER", "NEEDS", "Need", "check_operation", "is_shown", "shown_address", "shown_route"]

CHECKED_BY_ANSWER: Final = frozenset((SUBSCRIPTION_TYPE, ATTACHMENT_TYPE))
"""The types whose READ is checked by its answer: only that tells the addresses."""
_SEE: Final = None
_DOT: Final = "."


class Need(NamedTuple):
    """An action that a request needs on an address."""

    action: Action | None
    """None: any action."""
    address: str
    is_pattern: bool = False


_Needs = Callable[[State, Mapping[str, Any], Mapping[str, Any]], Iterable[Need]]
_Row = Mapping[str, Any]


def check_operation(peer: NodePeer, operation: str, kind: Any, properties: _Row, body: _Row) -> None:
    """Raise Refused if the rules do not allow a request."""
    if peer.identity.scope is not None:
        # ManagementNode has checked its types.
        return
    needs = NEEDS.get(("", operation)) or NEEDS.get((str(kind), operation), _closed)
    for need in needs(peer.gateway.engine.state, properties, body):
        if not _is_met(peer, need):
            action = "read" if need.action is None else need.action
            raise Refused(AmqpCondition.UNAUTHORIZED_ACCESS, refusal_text(peer, action, need.address))


def is_shown(peer: NodePeer, address: str) -> bool:
    """Return whether QUERY and READ show an address to the user of a connection."""
    gateway = peer.gateway
    return gateway.owners.is_of(address, peer.identity.username) or gateway.access.sees(
        peer.identity, gateway.vhost, address
    )


def shown_address(kind: str, row: _Row) -> tuple[str, ...]:
    """Return the addresses that a user must see to see the answer of a READ; none if its need was checked."""
    if kind == SUBSCRIPTION_TYPE:
        return (topic_address(str(row["topic"])),)
    if kind == ATTACHMENT_TYPE:
        return muxer_address(str(row["muxer"])), _member(str(row["member"] or ""))
    return ()


def shown_route(peer: NodePeer, answer: dict[str, Any]) -> dict[str, Any]:
    """Return the answer of ROUTE without the muxers and queues that the user does not see."""
    queues = [one for one in answer["queues"] if is_shown(peer, one)]
    hops = []
    for hop in answer["hops"]:
        if is_shown(peer, muxer_address(hop["muxer"])):
            rows = [one for one in hop["attachments"] if is_shown(peer, _member(str(one["member"] or "")))]
            hops.append({**hop, "attachments": rows})
    lossy = [one for one in answer["lossy"] if is_shown(peer, muxer_address(one))]
    return {**answer, "queues": queues, "hops": hops, "lossy": lossy}


def _is_met(peer: NodePeer, need: Need) -> bool:
    gateway, identity = peer.gateway, peer.identity
    if need.action is None:
        return is_shown(peer, need.address)
    if need.is_pattern:
        return gateway.access.decide_all(identity, gateway.vhost, need.action, need.address).is_allowed
    return is_allowed(peer, need.action, need.address)


def _closed(_state: State, _properties: _Row, _body: _Row) -> Iterable[Need]:
    return (Need(Action.MANAGE, USERS_ADDRESS),)


def _free(_state: State, _properties: _Row, _body: _Row) -> Iterable[Need]:
    """Return no need: the rows of the answer are checked one by one, or the answer tells nothing of others."""
    return ()


def _on(action: Action | None, address: str) -> _Needs:
    return lambda _state, _properties, _body: (Need(action, address),)


def _on_queue(action: Action | None) -> _Needs:
    return lambda _state, properties, _body: (Need(action, str(properties.get("name", ""))),)


def _to_queue(action: Action) -> _Needs:
    """Return the needs of a move: an action on the queue, and send where its messages go.

    Without that address the engine asks for `send` on each queue that it finds.
    """

    def needs(_state: State, properties: _Row, body: _Row) -> Iterable[Need]:
        yield Need(action, str(properties.get("name", "")))
        if to := str(body.get("to") or ""):
            yield Need(Action.SEND, to)

    return needs


def _settings(action: Action) -> _Needs:
    """Return the needs of a request with settings: an action on the queue, and send to its dead-letter target.

    A dead-letter queue that is missing would be created, which needs `create` on it.
    """

    def needs(state: State, properties: _Row, body: _Row) -> Iterable[Need]:
        yield Need(action, str(properties.get("name", "")))
        target = str(body.get("dead_letter") or "")
        if target and target != OFF:
            yield Need(Action.SEND, target)
            name = _queue_at(target)
            if name and name not in state.queue_names:
                yield Need(Action.CREATE, target)

    return needs


def _queue_at(address: str) -> str:
    """Return the name of the queue that an address names; empty for another node, and for no address."""
    try:
        return queue_name(address, name_bytes_max=sys.maxsize)
    except Refused:
        return ""


def _on_muxer(action: Action | None) -> _Needs:
    return lambda _state, properties, _body: (Need(action, muxer_address(str(properties.get("name", "")))),)


def _route(_state: State, properties: _Row, body: _Row) -> Iterable[Need]:
    """Return the need of ROUTE: what a sender needs."""
    address = str(properties.get("name", "")) or str(body.get("properties.to", ""))
    return (Need(Action.SEND, address),)


def _attach(state: State, _properties: _Row, body: _Row) -> Iterable[Need]:
    """Yield the needs of an attachment: manage on muxer and member, and receive on what it draws from."""
    name = str(body.get("muxer", ""))
    yield Need(Action.MANAGE, muxer_address(name))
    yield Need(Action.MANAGE, _member(str(body.get("member", ""))))
    muxer = state.muxer_named(name)
    yield Need(Action.RECEIVE, _drawn(name, muxer, body), is_pattern=True)


def _detach(state: State, properties: _Row, body: _Row) -> Iterable[Need]:
    """Yield the needs of the end of an attachment: manage on muxer and member."""
    muxer, member = str(body.get("muxer", "")), str(body.get("member", ""))
    if "name" in properties:
        muxer, member = _named(state, str(properties["name"]))
    yield Need(Action.MANAGE, muxer_address(muxer))
    yield Need(Action.MANAGE, _member(member))


def _named(state: State, name: str) -> tuple[str, str]:
    """Return muxer and member of the attachment with an id; empty ones if there is none."""
    attachment = int(name) if name.isascii() and name.isdigit() and len(name) < 20 else -1
    for muxer in state.muxers.values():
        if attachment in muxer.attachments:
            member = muxer.attachments[attachment].member
            inner, queue = state.muxers.get(member), state.queues.get(member)
            if inner is not None:
                return muxer.name, f"{MUXER_MEMBER}{inner.name}"
            return muxer.name, "" if queue is None else member_address(queue.name)
    return "", ""


def _member(text: str) -> str:
    return muxer_address(text.removeprefix(MUXER_MEMBER)) if text.startswith(MUXER_MEMBER) else text


def _drawn(name: str, muxer: Muxer | None, body: _Row) -> str:
    """Return the pattern of the addresses whose messages an attachment passes on."""
    destination, pattern = body.get("destination"), body.get("pattern")
    if name == QUEUE_MUXER and isinstance(destination, str):
        return queue_address(destination)
    has_words = muxer is None or (muxer.kind is MuxerKind.WILD_DESTINATION and muxer.options.separator == _DOT)
    if name == TOPIC_MUXER and isinstance(pattern, str) and has_words:
        return topic_address(pattern)
    if isinstance(pattern, str) and has_words:
        return f"{muxer_address(name)}/{pattern}"
    if isinstance(destination, str) and not {"*", "#"}.intersection(destination.split(_DOT)):
        return f"{muxer_address(name)}/{destination}"
    return muxer_address(name)


_MANAGE: Final = Action.MANAGE
_SNAPSHOTS: Final = "$snapshots"
_VHOSTS: Final = "$vhosts"
_USERS: Final = USERS_ADDRESS
_CONFIG: Final = "$config"
_CONNECTIONS: Final = "$connections"

NEEDS: Final[Mapping[tuple[str, str], _Needs]] = {
    ("", "GET-TYPES"): _free,
    ("", "GET-ATTRIBUTES"): _free,
    ("", "GET-OPERATIONS"): _free,
    ("", GET_LIMITS): _free,
    ("", ROUTE): _route,
    (QUEUE_TYPE, "CREATE"): _settings(Action.CREATE),
    (QUEUE_TYPE, "READ"): _on_queue(_SEE),
    (QUEUE_TYPE, "UPDATE"): _settings(_MANAGE),
    (QUEUE_TYPE, "DELETE"): _on_queue(Action.DELETE),
    (QUEUE_TYPE, "PURGE"): _on_queue(_MANAGE),
    (QUEUE_TYPE, "FIND"): _on_queue(Action.BROWSE),
    (QUEUE_TYPE, "MOVE"): _to_queue(Action.RECEIVE),
    (QUEUE_TYPE, "COPY"): _to_queue(Action.BROWSE),
    (QUEUE_TYPE, "REDRIVE"): _to_queue(Action.RECEIVE),
    (QUEUE_TYPE, "REMOVE"): _on_queue(_MANAGE),
    (QUEUE_TYPE, "CANCEL"): _on_queue(_MANAGE),
    (QUEUE_TYPE, "RENEW-LOCK"): _on_queue(Action.RECEIVE),
    (QUEUE_TYPE, "QUERY"): _free,
    (MUXER_TYPE, "CREATE"): _on_muxer(Action.CREATE),
    (MUXER_TYPE, "READ"): _on_muxer(_SEE),
    (MUXER_TYPE, "UPDATE"): _on_muxer(_MANAGE),
    (MUXER_TYPE, "DELETE"): _on_muxer(Action.DELETE),
    (MUXER_TYPE, "QUERY"): _free,
    (ATTACHMENT_TYPE, "CREATE"): _attach,
    (ATTACHMENT_TYPE, "READ"): _free,
    (ATTACHMENT_TYPE, "DELETE"): _detach,
    (ATTACHMENT_TYPE, "QUERY"): _free,
    (SUBSCRIPTION_TYPE, "READ"): _free,
    # The engine, which finds the subscription, asks for `delete` on its topic (links/link_authority.py).
    (SUBSCRIPTION_TYPE, "DELETE"): _free,
    (SUBSCRIPTION_TYPE, "QUERY"): _free,
    (TEMPLATE_TYPE, "READ"): _on(_SEE, _CONFIG),
    (TEMPLATE_TYPE, "QUERY"): _on(_SEE, _CONFIG),
    (SNAPSHOT_TYPE, "CREATE"): _on(_MANAGE, _SNAPSHOTS),
    (SNAPSHOT_TYPE, "READ"): _on(_SEE, _SNAPSHOTS),
    (SNAPSHOT_TYPE, "DELETE"): _on(_MANAGE, _SNAPSHOTS),
    (SNAPSHOT_TYPE, "QUERY"): _on(_SEE, _SNAPSHOTS),
    (COMPACTION_TYPE, "COMMIT"): _on(_MANAGE, "$compaction"),
    (COMPACTION_TYPE, "NAME"): _on(_MANAGE, "$compaction"),
    (VHOST_TYPE, "QUERY"): _on(_SEE, _VHOSTS),
    (VHOST_TYPE, "READ"): _on(_SEE, _VHOSTS),
    (VHOST_TYPE, "PREPARE"): _on(_MANAGE, _VHOSTS),
    (VHOST_TYPE, "CREATE"): _on(_MANAGE, _VHOSTS),
    (VHOST_TYPE, "RESET"): _on(_MANAGE, _VHOSTS),
    (VHOST_TYPE, "DELETE"): _on(_MANAGE, _VHOSTS),
    (BROKER_TYPE, "READ"): _on(_SEE, "$broker"),
    (USER_TYPE, "QUERY"): _on(_SEE, _USERS),
    (USER_TYPE, "READ"): _on(_SEE, _USERS),
    (USER_TYPE, "CREATE"): _on(_MANAGE, _USERS),
    (USER_TYPE, "UPDATE"): _on(_MANAGE, _USERS),
    (USER_TYPE, "DELETE"): _on(_MANAGE, _USERS),
    (RULE_TYPE, "QUERY"): _on(_SEE, _USERS),
    (RULE_TYPE, "READ"): _on(_SEE, _USERS),
    (RULE_TYPE, "CREATE"): _on(_MANAGE, _USERS),
    (RULE_TYPE, "DELETE"): _on(_MANAGE, _USERS),
    (CONFIG_TYPE, "QUERY"): _on(_SEE, _CONFIG),
    (CONFIG_TYPE, "RELOAD"): _on(_MANAGE, _CONFIG),
    **{
        (kind, operation): _on(_MANAGE if operation == "DELETE" else _SEE, _CONNECTIONS)
        for kind in (CONNECTION_TYPE, SESSION_TYPE, LINK_TYPE)
        for operation in ("QUERY", "READ", "DELETE")
    },
}
"""Type and operation to what a request needs; the type is empty for the operations of the node itself."""
