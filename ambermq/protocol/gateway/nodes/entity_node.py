"""The node NAME/$management of a queue: what the clients of Service Bus ask beside their links.

A client attaches a sender to the node, and a receiver from it. The operation is in the application properties of a
request, its arguments are a map in the body (entity_operations.py). The answer has the application properties
`statusCode` and `statusDescription`, and `errorCondition` for a refusal.

Rule 1. NAME is the address of a queue. A link to the node of another one is refused, and so is a request after the end
        of the queue.
Rule 2. The rules of the queue decide: `browse` to peek, `send` to schedule, `manage` to cancel, else `receive`.
Rule 3. Requests are small, and each is answered or ends its link. A client gets no credit for more while answers wait.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, Final, NamedTuple, final

from ambermq.engine.address import member_address, queue_name
from ambermq.engine.commands import (
    Command,
    Inspect,
    RemoveMessages,
    RenewLocks,
    ScheduleMessages,
    SettleNamed,
    TakeDeferred,
)
from ambermq.engine.effects import Answered, RefusedCommand
from ambermq.engine.entries.entry import Entry
from ambermq.engine.entries.entry_word import size_of
from ambermq.engine.entries.stored_message import StoredMessage
from ambermq.engine.errors import Refused
from ambermq.engine.model.queue_parts.word_ranges import words_from
from ambermq.engine.model.state import State
from ambermq.protocol.amqp10.endpoints import ReceiverEndpoint
from ambermq.protocol.amqp10.errors import DecodeError
from ambermq.protocol.amqp10.events import TransferRun
from ambermq.protocol.amqp10.link.sender import Sender
from ambermq.protocol.amqp10.message.message import AmqpValue, Message, decode_message
from ambermq.protocol.amqp10.performatives.classes import Properties, Source
from ambermq.protocol.amqp10.spec import AmqpCondition
from ambermq.protocol.amqp10.types.values import Array, Int, Symbol
from ambermq.protocol.auth.access import Action
from ambermq.protocol.gateway.engine_port import Hold
from ambermq.protocol.gateway.links.attach_terms import Refusal
from ambermq.protocol.gateway.links.link_authority import is_allowed, refusal_text
from ambermq.protocol.gateway.nodes.entity_operations import (
    deliveries,
    message_row,
    number,
    outcome,
    publishes,
    sequence_numbers,
    state_of,
    without_damaged,
)
from ambermq.protocol.gateway.nodes.management_authority import is_shown
from ambermq.protocol.gateway.nodes.node_peer import NodePeer
from ambermq.protocol.gateway.nodes.request_response import RequestResponse, target_of

__all__ = ["EntityNode", "EntityRequest", "check_entity", "is_entity_node"]

_SUFFIX: Final = "/$management"
_PREFIX: Final = "com.microsoft:"
_CREDIT: Final = 100
_PEEK_MAX: Final = 250
"""The most messages of one answer."""
_ANSWER_BYTES_MAX: Final = 1 << 20
"""An answer ends with the message that reaches this size."""
_TEXT_BYTES_MAX: Final = 1024
_OK, _NO_CONTENT = 200, 204
_STATUS: Final[Mapping[str, int]] = {
    AmqpCondition.UNAUTHORIZED_ACCESS: 401,
    AmqpCondition.NOT_FOUND: 404,
    AmqpCondition.PRECONDITION_FAILED: 410,
    AmqpCondition.NOT_IMPLEMENTED: 501,
}
"""The status of a refusal by its condition; 400 for the others."""
_LOCK_LOST: Final = "com.microsoft:message-lock-lost"
_MESSAGE_NOT_FOUND: Final = "com.microsoft:message-not-found"


def is_entity_node(address: str) -> bool:
    """Return whether an address is that of the node of a queue."""
    return address.endswith(_SUFFIX) and len(address) > len(_SUFFIX)


def check_entity(peer: NodePeer, address: str) -> None:
    """Raise Refusal unless an address is that of the node of a queue that exists, and that the user sees."""
    entity = address.removesuffix(_SUFFIX)
    engine = peer.gateway.engine
    try:
        name = queue_name(entity, name_bytes_max=engine.config.name_bytes_max)
    except Refused as refused:
        raise Refusal(refused.condition, refused.description) from refused
    if peer.identity.scope is not None or not is_shown(peer, member_address(name)):
        raise Refusal(AmqpCondition.UNAUTHORIZED_ACCESS, refusal_text(peer, "read", entity))
    if engine.state.queue_named(name) is None:
        raise Refusal(AmqpCondition.NOT_FOUND, f"there is no node at {address!r:.300}: there is no queue {name!r:.80}")


class _Found(NamedTuple):
    """Messages whose bytes are needed for an answer."""

    words: Sequence[int]
    entries: Sequence[Entry | None]
    states: Sequence[int]
    until_ms: int = 0
    is_held: bool = False


@final
@dataclass(slots=True, eq=False)
class EntityRequest:
    """A request that waits for its answer; it is the key of its command."""

    node: "EntityNode"
    peer: NodePeer
    link: ReceiverEndpoint
    delivery_id: int
    reply_to: str
    correlation_id: Any
    hold: Hold | None = None
    """Keeps the messages of the answer readable."""


@final
class EntityNode:
    """The node of one queue for the links of one connection."""

    __slots__ = ("_name", "_peer", "links")

    def __init__(self, peer: NodePeer, address: str) -> None:
        self._peer = peer
        self._name = address.removesuffix(_SUFFIX)
        """The address of the queue."""
        self.links = RequestResponse(address, credit=_CREDIT)

    def attach_replies(self, link: Sender) -> None:
        """Accept a link for answers: to its target address, or to its name and that of the node."""
        address = target_of(link).address
        own = f"{self._name}{_SUFFIX}"
        names = (link.name, own) if address is None else (str(address), link.name)
        self.links.attach_replies(link, names, Source(address=own))

    def receive_requests(self, run: TransferRun) -> None:
        """Process the requests of a run, if its link is a link for requests; one that cannot be decoded is dropped."""
        for delivery_id, payload in self.links.requests(run):
            try:
                message = decode_message(payload)
            except DecodeError:
                self.links.settle(run.link, delivery_id)
                continue
            self._take(run.link, delivery_id, message)
        self.links.grant()

    def answered(self, effect: Answered | RefusedCommand) -> None:
        """Answer a request with the result of its command."""
        request: EntityRequest = effect.key
        if isinstance(effect, RefusedCommand):
            self._refuse(request, Refused(effect.condition, effect.description))
        elif isinstance(effect.value, _Found):
            self._answer_found(request, effect.value)
        elif isinstance(effect.value, Refused):
            self._refuse(request, effect.value)
        elif "removed" in effect.value:
            self._answer_cancelled(request, effect.value)
        else:
            self._answer(request, _OK, "OK", effect.value)

    def _take(self, link: ReceiverEndpoint, delivery_id: int, message: Message) -> None:
        properties = message.properties or Properties()
        reply_to, key = str(properties.reply_to or ""), properties.message_id
        request = EntityRequest(self, self._peer, link, delivery_id, reply_to, key)
        self.links.pending += 1
        try:
            found = message.application_properties
            operation = found.get("operation") if isinstance(found, dict) else None
            name = str(operation or "").removeprefix(_PREFIX)
            if name not in _OPERATIONS:
                known = ", ".join(f"{_PREFIX}{one}" for one in _OPERATIONS)
                raise Refused(AmqpCondition.NOT_IMPLEMENTED, f"unknown operation {name!r:.80}: expected {known}")  # noqa: TRY301
            action, command_of = _OPERATIONS[name]
            self._check(action)
            properties_of = found if isinstance(found, dict) else {}
            command = command_of(self, request, properties_of, _body(message))
            self._peer.gateway.lost_links.submit(command)
        except Refused as refusal:
            self._refuse(request, refusal)

    def _check(self, action: Action) -> None:
        """Raise Refused if the user may not do something with the queue."""
        if self._peer.identity.scope is not None or not is_allowed(self._peer, action, self._name):
            raise Refused(AmqpCondition.UNAUTHORIZED_ACCESS, refusal_text(self._peer, action, self._name))

    def _peek(self, request: EntityRequest, _properties: Mapping[str, Any], body: Mapping[str, Any]) -> Command:
        name = queue_name(self._name, name_bytes_max=self._peer.gateway.engine.config.name_bytes_max)
        first = max(0, number(body, "from-sequence-number"))
        count = max(1, min(number(body, "message-count", 1), _PEEK_MAX))
        request.hold = self._peer.gateway.engine.hold()
        return Inspect(request, partial(_page, name, first, count))

    def _schedule(self, request: EntityRequest, _properties: Mapping[str, Any], body: Mapping[str, Any]) -> Command:
        peer, link = self._peer, f"{self._name}{_SUFFIX}"
        if blocked := peer.gateway.blocked:
            why = f"the broker holds producers back: {blocked}"
            raise Refused(AmqpCondition.RESOURCE_LIMIT_EXCEEDED, why)
        command = ScheduleMessages(request, self._name, peer.container, link, publishes(body), _numbers)
        command.by = peer.identity.username or ""
        return command

    def _cancel(self, request: EntityRequest, _properties: Mapping[str, Any], body: Mapping[str, Any]) -> Command:
        command = RemoveMessages(request, self._name, sequence_numbers(body), scheduled=True)
        command.by = self._peer.identity.username or ""
        return command

    def _renew(self, request: EntityRequest, _properties: Mapping[str, Any], body: Mapping[str, Any]) -> Command:
        named = deliveries(body)
        return RenewLocks(request, self._name, named, partial(_expirations, len(named)))

    def _receive(self, request: EntityRequest, properties: Mapping[str, Any], body: Mapping[str, Any]) -> Command:
        queue = self._peer.gateway.engine.state.queue_named(self._queue_name())
        link = str(properties.get("associated-link-name") or "")
        consumer = 0 if queue is None else self._peer.consumer_of(queue.id, link)
        if not consumer:
            why = "a connection receives deferred messages while it has a link that receives from the queue"
            raise Refused(AmqpCondition.INVALID_FIELD, why)
        settles = number(body, "receiver-settle-mode", 1) == 0
        request.hold = self._peer.gateway.engine.hold()
        return TakeDeferred(request, consumer, sequence_numbers(body), settles, partial(_taken, settles))

    def _dispose(self, request: EntityRequest, _properties: Mapping[str, Any], body: Mapping[str, Any]) -> Command:
        return SettleNamed(request, self._name, deliveries(body), outcome(body))

    def _queue_name(self) -> str:
        return queue_name(self._name, name_bytes_max=self._peer.gateway.engine.config.name_bytes_max)

    def _answer_found(self, request: EntityRequest, found: _Found) -> None:
        """Answer with messages; if they must be read from the disk first, try again when the engine has answered."""
        engine = self._peer.gateway.engine
        known = engine.messages(found.words, found.entries) if found.words else []
        if known is None:
            engine.submit(Inspect(request, lambda _state: found))
            return
        # An answer has no room for a large message, which stays where it is.
        bodies = [None if isinstance(body, StoredMessage) else body for body in known]
        states = dict(zip(found.words, found.states, strict=True))
        rows = [
            message_row(word, entry, body, state=states[word], until_ms=found.until_ms, is_held=found.is_held)
            for word, entry, body in without_damaged(found.words, found.entries, bodies)
        ]
        self._answer(request, _OK if rows else _NO_CONTENT, "OK", {"messages": rows} if rows else None)

    def _answer_cancelled(self, request: EntityRequest, value: Mapping[str, int]) -> None:
        """Answer with what was cancelled: those messages are gone, whatever became of the others."""
        if missing := value["acquired"] + value["gone"]:
            why = f"{missing} messages are not scheduled any more, {value['removed']} are cancelled"
            self._refuse(request, Refused(AmqpCondition.NOT_FOUND, why))
        else:
            self._answer(request, _OK, "OK", None)

    def _refuse(self, request: EntityRequest, refusal: Refused) -> None:
        condition = _CONDITIONS.get(refusal.condition, refusal.condition)
        status = _STATUS.get(refusal.condition, 400)
        self._answer(request, status, refusal.description, None, condition=condition)

    def _answer(self, request: EntityRequest, status: int, description: str, body: Any, *, condition: str = "") -> None:
        if request.hold is not None:
            request.hold.release()
            request.hold = None
        self.links.pending -= 1
        self.links.settle(request.link, request.delivery_id)
        result: dict[str, Any] = {"statusCode": Int(status), "statusDescription": description[:_TEXT_BYTES_MAX]}
        if condition:
            result["errorCondition"] = Symbol(condition)
        message = Message(
            properties=Properties(correlation_id=request.correlation_id),
            application_properties=result,
            body=(AmqpValue(body),),
        )
        self.links.send(request.reply_to, message.encode())
        self.links.grant()


def _body(message: Message) -> Mapping[str, Any]:
    """Return the arguments of a request. Raises Refused if its body is no map."""
    section = message.body[0] if len(message.body) == 1 else None
    value = section.value if isinstance(section, AmqpValue) else None
    if not isinstance(value, dict):
        raise Refused(AmqpCondition.INVALID_FIELD, "the body of a request must be an amqp-value with a map")
    return value


def _page(name: str, first: int, count: int, state: State) -> "_Found | Refused":
    """Return the messages that wait on a queue from an offset on, in the order of their offsets."""
    queue = state.queue_named(name)
    if queue is None:
        return Refused(AmqpCondition.NOT_FOUND, f"there is no queue {name!r:.80}")
    words: list[int] = []
    size = 0
    for word in islice(words_from([one for one in queue.waiting_lists if one.count], first), count):
        words.append(word)
        size += size_of(word)
        if size >= _ANSWER_BYTES_MAX:
            break
    return _Found(words, [queue.entries.get(word >> 16) for word in words], [state_of(queue, word) for word in words])


def _taken(settles: bool, words: Sequence[int], entries: Sequence[Any], until_ms: int) -> _Found:
    return _Found(words, entries, [1] * len(words), until_ms, not settles)


def _numbers(offsets: Sequence[int]) -> dict[str, Any]:
    return {"sequence-numbers": Array("long", tuple(offsets))}


def _expirations(count: int, until_ms: int) -> dict[str, Any]:
    return {"expirations": Array("timestamp", (until_ms,) * count)}


_CONDITIONS: Final[Mapping[str, str]] = {
    AmqpCondition.PRECONDITION_FAILED: _LOCK_LOST,
    AmqpCondition.NOT_FOUND: _MESSAGE_NOT_FOUND,
}
"""The conditions of Service Bus for those of the engine."""
_Operation = Callable[[EntityNode, EntityRequest, Mapping[str, Any], Mapping[str, Any]], Command]
_OPERATIONS: Final[Mapping[str, tuple[Action, _Operation]]] = {
    "peek-message": (Action.BROWSE, EntityNode._peek),  # noqa: SLF001 - the table of this class
    "schedule-message": (Action.SEND, EntityNode._schedule),  # noqa: SLF001
    "cancel-scheduled-message": (Action.MANAGE, EntityNode._cancel),  # noqa: SLF001
    "renew-lock": (Action.RECEIVE, EntityNode._renew),  # noqa: SLF001
    "receive-by-sequence-number": (Action.RECEIVE, EntityNode._receive),  # noqa: SLF001
    "update-disposition": (Action.RECEIVE, EntityNode._dispose),  # noqa: SLF001
}
"""Operation to the action that it needs on the queue, and to the function that makes its command."""
