"""The broker's `$management` node: its links, requests and answers, as in docs/management.md.

A client attaches a sender to `$management`, and a receiver from `$management` whose target address is any name. The
reply-to of a request is that name. Operation, type and name are in its application properties, attributes in its body.
The types and their operations are in protocol/management.

Rule 1. An answer waits for the log: what it says is durable when it leaves.
Rule 2. A refusal is an answer: statusCode, statusDescription and errorCondition say why.
Rule 3. Requests are small. A client gets no credit for more requests while its answers wait.
Rule 4. Each request is answered or ends its link, whatever it contains. Other links carry no requests.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, final

from ambermq.engine.address import member_address
from ambermq.engine.commands import Command, SignedCommand
from ambermq.engine.effects import Answered, RefusedCommand
from ambermq.engine.errors import Refused
from ambermq.engine.model.subscription import Subscription
from ambermq.protocol.amqp10.endpoints import ReceiverEndpoint
from ambermq.protocol.amqp10.errors import DecodeError, LocalError
from ambermq.protocol.amqp10.events import TransferRun
from ambermq.protocol.amqp10.link.sender import Sender
from ambermq.protocol.amqp10.message.message import AmqpValue, Data, Message, decode_message
from ambermq.protocol.amqp10.performatives.classes import Error, Properties, Source
from ambermq.protocol.amqp10.spec import AmqpCondition
from ambermq.protocol.amqp10.types.encode import encode
from ambermq.protocol.amqp10.types.values import Int, Map, Symbol
from ambermq.protocol.auth.access import Action
from ambermq.protocol.gateway.links.link_authority import authorize_deletion, is_allowed, refusal_text
from ambermq.protocol.gateway.nodes.management_authority import (
    CHECKED_BY_ANSWER,
    check_operation,
    is_shown,
    shown_address,
    shown_route,
)
from ambermq.protocol.gateway.nodes.node_peer import NodePeer
from ambermq.protocol.gateway.nodes.request_response import RequestResponse, target_of
from ambermq.protocol.management.access.rules import RuleCommand
from ambermq.protocol.management.access.users import UserCommand
from ambermq.protocol.management.administration.configuration import ConfigCommand
from ambermq.protocol.management.broker import GET_LIMITS
from ambermq.protocol.management.messages.locks import RENEW_LOCK
from ambermq.protocol.management.messages.operations import FIND
from ambermq.protocol.management.operations import KINDS, describe, noun_of, operation_of
from ambermq.protocol.management.queues import QUEUE_TYPE
from ambermq.protocol.management.routes import ROUTE
from ambermq.protocol.management.sorted_ids import SortedIds, VisibleIds
from ambermq.protocol.management.vhosts import VhostCommand

__all__ = ["ADDRESS", "ManagementNode"]

ADDRESS: Final = "$management"
_CREDIT: Final = 100
_TEXT_BYTES_MAX: Final = 1024
"""The bound of each text of an answer: reply-to, correlation-id, description."""
_EMPTY_BODIES: Final[tuple[Any, ...]] = (None, "", b"", [])
"""The bodies that mean none: some clients cannot send a message without a body."""
_LOOKS: Final = frozenset(("", "READ", "QUERY", FIND, RENEW_LOCK, ROUTE, GET_LIMITS))
"""The operations that change nothing; empty before the operation is known."""
_REFUSED: Final = 400
"""The least status code of a refusal."""
_STATUS: Final = {
    "amqp:not-allowed": 403,
    "amqp:unauthorized-access": 403,
    "amqp:not-found": 404,
    "amqp:precondition-failed": 409,
    "amqp:internal-error": 500,
    "amqp:not-implemented": 501,
    "amqp:resource-limit-exceeded": 507,
}
"""Status codes of HTTP, by condition; 400 for the other conditions."""


@final
@dataclass(slots=True)
class _Request:
    """A request that waits for its answer; it is the key of its command."""

    peer: NodePeer
    link: ReceiverEndpoint
    delivery_id: int
    reply_to: str
    correlation_id: Any = None
    """The correlation-id of the answer: that of the request; without one its message-id."""
    status: int = 200
    """The status code of success."""
    noun: str = "queue"
    """The kind of the object, for the sentence of a refusal."""
    operation: str = ""
    kind: str = ""
    name: str = ""
    """The name of the object, for the audit log."""
    is_dry_run: bool = False
    """Whether it changes nothing."""
    is_open: bool = True
    """Whether the user sees everything, so that no row of the answer is left out."""

    @property
    def orders(self) -> SortedIds | VisibleIds:
        """The sorted ids of what the answer may show."""
        gateway = self.peer.gateway
        if self.is_open:
            return gateway.orders
        return VisibleIds(gateway.orders, partial(is_shown, self.peer), gateway.engine.matching)

    def authorize_deletion(self, subscription: Subscription) -> None:
        """Raise Refused if the user may not delete a subscription."""
        authorize_deletion(self.peer, subscription)

    def holders(self, queue: str) -> frozenset[int] | None:
        """Return the consumers whose deliveries the request may name: its connection's; None, any, with `manage`."""
        return None if is_allowed(self.peer, Action.MANAGE, queue) else self.peer.consumers

    def authorize_sending(self, queue: str) -> None:
        """Raise Refused if the user may not send to a queue."""
        address = member_address(queue)
        if not is_allowed(self.peer, Action.SEND, address):
            raise Refused(AmqpCondition.UNAUTHORIZED_ACCESS, refusal_text(self.peer, Action.SEND, address))


def _hidden(request: _Request) -> RefusedCommand:
    why = f"no such {request.noun}, or no rule allows the user any action on it"
    return RefusedCommand(request, AmqpCondition.NOT_FOUND, why)


@final
class ManagementNode:
    """The node `$management` for the links of one connection."""

    __slots__ = ("_dynamic_count", "_peer", "links")

    def __init__(self, peer: NodePeer) -> None:
        self._peer = peer
        self._dynamic_count = 0
        self.links = RequestResponse(ADDRESS, credit=_CREDIT)

    def attach_replies(self, link: Sender) -> None:
        """Accept a link for answers; its target address is the reply-to of requests.

        A link with a dynamic source gets an address for the reply-to, which only this connection can use.
        """
        name, source = str(target_of(link).address or ""), Source(address=ADDRESS)
        remote_source = link.remote.source if link.remote else None
        if remote_source is not None and remote_source.dynamic:
            self._dynamic_count += 1
            name = f"{ADDRESS}/{self._dynamic_count}"
            source = Source(address=name, dynamic=True)
        self.links.attach_replies(link, (name,), source)

    def receive_requests(self, run: TransferRun) -> None:
        """Process the requests of a run, if its link is a link for requests; after the end of a link drop them."""
        for delivery_id, payload in self.links.requests(run):
            try:
                self._take(run.link, delivery_id, decode_message(payload))
            except DecodeError:
                self.links.settle(run.link, delivery_id)
                self.links.grant()

    def answered(self, effect: Answered | RefusedCommand) -> None:
        """Answer a request with the result of its command."""
        request: _Request = effect.key
        effect = self._shown(request, effect)
        if isinstance(effect, RefusedCommand):
            self._refuse(request, Refused(effect.condition, effect.description))
        elif effect.value is None:
            self._refuse(request, Refused("amqp:not-found", f"no such {request.noun}"))
        else:
            created = effect.value.pop("created", None)
            self._answer(request, 200 if created is False else request.status, "OK", effect.value)

    def _shown(self, request: _Request, effect: Answered | RefusedCommand) -> Answered | RefusedCommand:
        """Return an answer without what the user does not see."""
        if request.is_open:
            return effect
        if request.operation == "READ" and request.kind in CHECKED_BY_ANSWER:
            return effect if self._is_seen(request, effect) else _hidden(request)
        if request.operation == ROUTE and isinstance(effect, Answered) and effect.value is not None:
            return Answered(request, shown_route(self._peer, effect.value))
        return effect

    def _is_seen(self, request: _Request, effect: Answered | RefusedCommand) -> bool:
        """Return whether READ found an object, and the user sees it: of others not even their absence is told."""
        if isinstance(effect, RefusedCommand):
            return effect.condition not in (AmqpCondition.NOT_FOUND, AmqpCondition.PRECONDITION_FAILED)
        if effect.value is None:
            return False
        return all(is_shown(self._peer, address) for address in shown_address(request.kind, effect.value))

    def _is_answerable(self, link: ReceiverEndpoint, delivery_id: int, reply_to: str) -> bool:
        """Return whether the answer of a request may go where its reply-to says; else reject the request."""
        if not reply_to or self.links.has_reply_link(reply_to) or is_allowed(self._peer, Action.SEND, reply_to):
            return True
        why = refusal_text(self._peer, Action.SEND, reply_to)
        error = Error(condition=Symbol(AmqpCondition.UNAUTHORIZED_ACCESS), description=why)
        self.links.settle(link, delivery_id, error)
        self.links.grant()
        return False

    def _take(self, link: ReceiverEndpoint, delivery_id: int, message: Message) -> None:
        properties = message.properties or Properties()
        request = _Request(self._peer, link, delivery_id, str(properties.reply_to or ""))
        if not self._is_answerable(link, delivery_id, request.reply_to):
            return
        self.links.pending += 1
        try:
            request.correlation_id = _correlation_id(properties)
            self._carry_out(request, _application_properties(message), _body(message))
        except Refused as refusal:
            self._refuse(request, refusal)

    def _carry_out(self, request: _Request, properties: Mapping[str, Any], body: Mapping[str, Any]) -> None:
        """Answer a request at once, or submit its command. Raises Refused."""
        operation = str(properties.get("operation", ""))
        kind = properties.get("entityType" if operation == "QUERY" else "type", QUEUE_TYPE)
        self._check_scope(operation, kind)
        description = describe(operation, properties)
        if description is not None:
            self._answer(request, 200, "OK", description)
            return
        request.noun = noun_of(kind)
        command_of = operation_of(operation, kind)
        gateway = self._peer.gateway
        request.operation, request.kind, request.name = operation, str(kind), str(properties.get("name", ""))
        request.is_open = gateway.access.sees_all(self._peer.identity, gateway.vhost)
        command = command_of(request, properties, body, gateway.limits.query_results_max)
        request.is_dry_run = getattr(command, "dry_run", None) is not None
        check_operation(self._peer, operation, kind, properties, body)
        if isinstance(command, SignedCommand):
            command.by = self._peer.identity.username or ""
        self._submit(command)

    def _check_scope(self, operation: str, kind: Any) -> None:
        """Raise Refused for a request outside the scope of its connection."""
        scope = self._peer.identity.scope
        if scope is None:
            return
        is_within = isinstance(kind, str) and kind in scope.types
        if not is_within or operation not in KINDS[kind].operations:
            types = ", ".join(sorted(scope.types))
            raise Refused("amqp:not-allowed", f"this connection may only use the operations of {types}")

    def _submit(self, command: Command | ConfigCommand | RuleCommand | UserCommand | VhostCommand) -> None:
        gateway = self._peer.gateway
        if isinstance(command, UserCommand):
            self._submit_user(command)
        elif isinstance(command, RuleCommand):
            self._submit_rule(command)
        elif isinstance(command, ConfigCommand):
            self._submit_config(command)
        elif not isinstance(command, VhostCommand):
            gateway.lost_links.submit(command)
        elif gateway.vhosts is not None:
            gateway.vhosts.ask(gateway, command)
        else:
            raise Refused("amqp:not-implemented", "this server has no virtual hosts")

    def _submit_user(self, command: UserCommand) -> None:
        accounts = self._peer.gateway.accounts
        if accounts is None:
            raise Refused("amqp:not-implemented", "this server has no users")
        accounts.ask(self._peer.gateway, command)

    def _submit_config(self, command: ConfigCommand) -> None:
        configuration = self._peer.gateway.configuration
        if configuration is None:
            raise Refused("amqp:not-implemented", "this server has no configuration")
        configuration.ask(self._peer.gateway, command)

    def _submit_rule(self, command: RuleCommand) -> None:
        rules = self._peer.gateway.rules
        if rules is None:
            raise Refused("amqp:not-implemented", "this server has no rules")
        rules.ask(self._peer.gateway, command)

    def _refuse(self, request: _Request, refusal: Refused) -> None:
        status = _STATUS.get(refusal.condition, 400)
        self._answer(request, status, refusal.description, {}, condition=refusal.condition)

    def _note(self, request: _Request, status: int, description: str) -> None:
        """Note a change in the audit log, done or refused. Requests that only look are not noted."""
        if request.operation in _LOOKS or (request.is_dry_run and status < _REFUSED):
            return
        peer = self._peer
        peer.gateway.audit.note(
            "change" if status < _REFUSED else "change-refused",
            peer.identity,
            peer.peer_info,
            vhost=peer.gateway.vhost,
            operation=request.operation,
            kind=request.noun,
            name=request.name or None,
            reason=None if status < _REFUSED else description,
        )

    def _answer(
        self, request: _Request, status: int, description: str, body: Mapping[str, Any], *, condition: str = ""
    ) -> None:
        self.links.pending -= 1
        self.links.settle(request.link, request.delivery_id)
        self._note(request, status, description)
        result: dict[str, Any] = {"statusCode": Int(status), "statusDescription": _cut(description)}
        if condition:
            result["errorCondition"] = Symbol(condition)
        message = Message(
            properties=Properties(
                correlation_id=request.correlation_id,
                to=request.reply_to if _is_short(request.reply_to) else None,
            ),
            application_properties=result,
            body=(AmqpValue(dict(body)),),
        )
        self._send(request.reply_to, message.encode())
        self.links.grant()

    def _send(self, reply_to: str, answer: bytes) -> None:
        """Send an answer on the connection's link of that name; without one to the queue or topic of that address."""
        if not self.links.send(reply_to, answer) and _is_short(reply_to):
            self._peer.post(reply_to, answer)


def _is_short(value: Any) -> bool:
    try:
        return len(encode(value)) <= _TEXT_BYTES_MAX
    except LocalError:
        return False


def _cut(text: str) -> str:
    return text.encode(errors="replace")[:_TEXT_BYTES_MAX].decode(errors="ignore")


def _correlation_id(properties: Properties) -> Any:
    for name in ("message_id", "correlation_id", "reply_to"):
        if not _is_short(getattr(properties, name)):
            raise Refused("amqp:invalid-field", f"the {name} is longer than {_TEXT_BYTES_MAX} bytes")
    return properties.message_id if properties.correlation_id is None else properties.correlation_id


def _application_properties(message: Message) -> Mapping[str, Any]:
    properties = {} if message.application_properties is None else message.application_properties
    # The decoder makes a Map of a map that a dict cannot hold, such as one whose keys are lists.
    if not isinstance(properties, dict):
        raise Refused("amqp:invalid-field", "the keys of the application properties must be strings")
    return properties


def _body(message: Message) -> Mapping[str, Any]:
    section = message.body[0] if message.body else AmqpValue(None)
    if isinstance(section.value, Map):
        raise Refused("amqp:invalid-field", "the keys of the body must be strings")
    if isinstance(section.value, dict):
        return section.value
    if section.value not in _EMPTY_BODIES:
        # A client would believe that the broker has carried out a body that the broker ignores.
        found = "data" if isinstance(section, Data) else f"{section.value!r:.80}"
        raise Refused("amqp:invalid-field", f"the body must be an amqp-value with a map, or empty, found {found}")
    return {}
