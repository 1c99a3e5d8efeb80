"""The node NAME/$management of a queue: what the clients of Service Bus ask beside their links.

A client attaches a sender to the node, and a receiver from it. The operation is in the application properties of a
request, its arguments are a map in the body (entity_operations.py). The answer has the application properties
`statusCode` and `statusDescription`, and `errorCondition` for a refusal.

Rule 1. NAME is the address of a queue, or the alias of a dead-letter queue. A link to another node is refused, and so
        is a request after the end of the queue.
Rule 2. The rules of the queue decide: `browse` to peek, `send` to schedule, `manage` to cancel, else `receive`. By an
        alias the user needs the action on both queues, and nothing can be scheduled.
Rule 3. Requests are small, and each is answered or ends its link. A client gets no credit for more while answers wait.
Rule 4. A lock token names a delivery that a link of this connection holds. That of another connection is unknown: so
        no client keeps or settles what another one holds.
Rule 5. A deferred message is read before it is taken. If its bytes cannot be read, or do not fit into the answer, it
        stays deferred, and the answer says why. A message whose answer cannot be sent returns to the queue.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, final

from ambermq.engine.address import member_address, queue_name
from ambermq.engine.commands import (
    Command,
    Inspect,
    RemoveMessages,
    RenewLocks,
    ScheduleMessages,
    Settle,
    SettleNamed,
    TakeDeferred,
)
from ambermq.engine.effects import Answered, RefusedCommand
from ambermq.engine.entries.entry_word import pack_words, size_of
from ambermq.engine.entries.outcome import RELEASED
from ambermq.engine.errors import Refused
from ambermq.protocol.amqp10.endpoints import ReceiverEndpoint
from ambermq.protocol.amqp10.errors import DecodeError
from ambermq.protocol.amqp10.events import TransferRun
from ambermq.protocol.amqp10.link.sender import Sender
from ambermq.protocol.amqp10.message.message import AmqpValue, Message, decode_message
from ambermq.protocol.amqp10.performatives.classes import Properties, Source
from ambermq.protocol.amqp10.spec import AmqpCondition, LinkCondition
from ambermq.protocol.amqp10.types.decode import Buffer
from ambermq.protocol.amqp10.types.values import Array, Int, Symbol
from ambermq.protocol.auth.access import Action
from ambermq.protocol.gateway.engine_port import Hold
from ambermq.protocol.gateway.links.attach_terms import Refusal
from ambermq.protocol.gateway.links.dead_letter_alias import ALIAS, dead_letter_queue, is_alias
from ambermq.protocol.gateway.links.link_authority import is_allowed, refusal_text
from ambermq.protocol.gateway.nodes.entity_messages import (
    PEEK_BYTES_MAX,
    RECEIVE_BYTES_MAX,
    ROW_BYTES,
    SHOWN_BYTES_MAX,
    Found,
    Retry,
    Taken,
    answer_size,
    deferred_messages,
    retry,
    too_large,
    waiting_page,
)
from ambermq.protocol.gateway.nodes.entity_operations import (
    deliveries,
    message_row,
    number,
    outcome,
    publishes,
    sequence_numbers,
)
from ambermq.protocol.gateway.nodes.management_authority import is_shown
from ambermq.protocol.gateway.nodes.message_reader import MessageReader
from ambermq.protocol.gateway.nodes.node_peer import NodePeer
from ambermq.protocol.gateway.nodes.read_turns import ReadTurns
from ambermq.protocol.gateway.nodes.request_response import RequestResponse, target_of

__all__ = ["EntityNode", "EntityRequest", "check_entity", "is_entity_node"]

_SUFFIX: Final = "/$management"
_PREFIX: Final = "com.microsoft:"
_CREDIT: Final = 100
_PEEK_MAX: Final = 250
"""The most messages of one answer."""
_TEXT_BYTES_MAX: Final = 1024
_OK, _NO_CONTENT = 200, 204
_STATUS: Final[Mapping[str, int]] = {
    AmqpCondition.UNAUTHORIZED_ACCESS: 401,
    AmqpCondition.NOT_FOUND: 404,
    AmqpCondition.PRECONDITION_FAILED: 410,
    LinkCondition.MESSAGE_SIZE_EXCEEDED: 413,
    AmqpCondition.INTERNAL_ERROR: 500,
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

    def check(queue: str) -> None:
        if peer.identity.scope is not None or not is_shown(peer, queue):
            raise Refused(AmqpCondition.UNAUTHORIZED_ACCESS, refusal_text(peer, "read", queue))

    try:
        name = _queue_named(peer, entity, check)
    except Refused as refused:
        raise Refusal(refused.condition, refused.description) from refused
    if peer.gateway.engine.state.queue_named(name) is None:
        raise Refusal(AmqpCondition.NOT_FOUND, f"there is no node at {address!r:.300}: there is no queue {name!r:.80}")


def _queue_named(peer: NodePeer, entity: str, check: Callable[[str], None]) -> str:
    """Return the name of the queue that an address or an alias means. Raises Refused.

    `check` raises Refused if the user may not use the queue of an address: that of the alias, and the one it means.
    """
    engine = peer.gateway.engine
    name_bytes_max = engine.config.name_bytes_max
    name = queue_name(entity.removesuffix(ALIAS), name_bytes_max=name_bytes_max)
    check(member_address(name))
    if is_alias(entity):
        name = queue_name(dead_letter_queue(engine, name), name_bytes_max=name_bytes_max)
        check(member_address(name))
    return name


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
    queue: str = ""
    """The name of the queue."""
    hold: Hold | None = None
    """Keeps the messages of the answer readable."""
    reader: MessageReader | None = None
    """Reads the messages of the answer."""
    take: TakeDeferred | None = None
    """Takes deferred messages, when they are read."""

    @property
    def size(self) -> int:
        """The bytes that are read for the answer."""
        return 0 if self.reader is None else self.reader.size


@final
class EntityNode:
    """The node of one queue for the links of one connection."""

    __slots__ = ("_entity", "_peer", "_turns", "links")

    def __init__(self, peer: NodePeer, address: str, turns: ReadTurns) -> None:
        """Create the node; `turns` are those of the connection."""
        self._peer = peer
        self._entity = address.removesuffix(_SUFFIX)
        """The address of the queue, or an alias."""
        self._turns = turns
        self.links = RequestResponse(address, credit=_CREDIT)

    def attach_replies(self, link: Sender) -> None:
        """Accept a link for answers: to its target address, or to its name and that of the node."""
        address = target_of(link).address
        own = f"{self._entity}{_SUFFIX}"
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
            return
        match effect.value:
            case Refused() as refused:
                self._refuse(request, refused)
            case Found() as found:
                self._read(request, found)
            case Retry():
                self._go_on(request)
            case Taken() as taken:
                self._answer_taken(request, taken)
            case value if "removed" in value:
                self._answer_cancelled(request, value)
            case value:
                self._answer(request, _OK, "OK", value)

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
            request.queue = _queue_named(self._peer, self._entity, partial(self._check, action))
            properties_of = found if isinstance(found, dict) else {}
            command = command_of(self, request, properties_of, _body(message))
            if command is not None:
                self._peer.gateway.lost_links.submit(command)
        except Refused as refusal:
            self._refuse(request, refusal)

    def _check(self, action: Action, queue: str) -> None:
        """Raise Refused if the user may not do something with the queue of an address."""
        if self._peer.identity.scope is not None or not is_allowed(self._peer, action, queue):
            raise Refused(AmqpCondition.UNAUTHORIZED_ACCESS, refusal_text(self._peer, action, queue))

    def _peek(self, request: EntityRequest, _properties: Mapping[str, Any], body: Mapping[str, Any]) -> Command:
        first = max(0, number(body, "from-sequence-number"))
        count = max(1, min(number(body, "message-count", 1), _PEEK_MAX))
        request.hold = self._peer.gateway.engine.hold()
        return Inspect(request, partial(waiting_page, request.queue, first, count))

    def _schedule(self, request: EntityRequest, _properties: Mapping[str, Any], body: Mapping[str, Any]) -> Command:
        peer, link = self._peer, f"{self._entity}{_SUFFIX}"
        if is_alias(self._entity):
            raise Refused(AmqpCondition.NOT_ALLOWED, "nothing can be sent to an alias of a dead-letter queue")
        if blocked := peer.gateway.blocked:
            why = f"the broker holds producers back: {blocked}"
            raise Refused(AmqpCondition.RESOURCE_LIMIT_EXCEEDED, why)
        command = ScheduleMessages(request, self._entity, peer.container, link, publishes(body), _numbers)
        command.by = peer.identity.username or ""
        return command

    def _cancel(self, request: EntityRequest, _properties: Mapping[str, Any], body: Mapping[str, Any]) -> Command:
        command = RemoveMessages(request, member_address(request.queue), sequence_numbers(body), scheduled=True)
        command.by = self._peer.identity.username or ""
        return command

    def _renew(self, request: EntityRequest, _properties: Mapping[str, Any], body: Mapping[str, Any]) -> Command:
        named, consumers = deliveries(body), self._peer.consumers
        return RenewLocks(request, member_address(request.queue), named, partial(_expirations, len(named)), consumers)

    def _receive(self, request: EntityRequest, properties: Mapping[str, Any], body: Mapping[str, Any]) -> None:
        engine, numbers = self._peer.gateway.engine, sequence_numbers(body)
        queue = engine.state.queue_named(request.queue)
        link = str(properties.get("associated-link-name") or "")
        consumer = 0 if queue is None else self._peer.consumer_of(queue.id, link)
        if not consumer:
            why = "a connection receives deferred messages while it has a link that receives from the queue"
            raise Refused(AmqpCondition.INVALID_FIELD, why)
        if not self.links.has_reply_link(request.reply_to):
            raise Refused(AmqpCondition.NOT_FOUND, "no link takes the answer")
        settles = number(body, "receiver-settle-mode", 1) == 0
        request.take = TakeDeferred(request, consumer, numbers, settles, Taken)
        self._turns.enter(request, partial(self._begin, request, numbers))

    def _begin(self, request: EntityRequest, numbers: Sequence[int]) -> None:
        """Look for the deferred messages of a request, whose turn it is."""
        request.hold = self._peer.gateway.engine.hold()
        bytes_max = self._answer_bytes(request, RECEIVE_BYTES_MAX) - ROW_BYTES * (len(numbers) + 1)
        found = partial(deferred_messages, request.queue, numbers, bytes_max)
        self._peer.gateway.lost_links.submit(Inspect(request, found))

    def _dispose(self, request: EntityRequest, _properties: Mapping[str, Any], body: Mapping[str, Any]) -> Command:
        address, consumers = member_address(request.queue), self._peer.consumers
        return SettleNamed(request, address, deliveries(body), outcome(body), consumers)

    def _answer_bytes(self, request: EntityRequest, most: int) -> int:
        """Return the most bytes of an answer: `most`, or the max-message-size of its link."""
        return min(most, self.links.answer_bytes_max(request.reply_to) or most)

    def _read(self, request: EntityRequest, found: Found) -> None:
        """Read the messages of an answer."""
        engine = self._peer.gateway.engine
        most, shown = (PEEK_BYTES_MAX, SHOWN_BYTES_MAX) if request.take is None else (RECEIVE_BYTES_MAX, 0)
        bytes_max = self._answer_bytes(request, most)
        request.reader = MessageReader(engine, found.words, found.entries, bytes_max=bytes_max, shown_bytes=shown)
        request.reader.states = found.states
        self._go_on(request)

    def _go_on(self, request: EntityRequest) -> None:
        """Go on with an answer; if something must be read from the disk, try again when the engine has answered."""
        reader = request.reader
        assert reader is not None, "it was made with what was found"
        if not reader.read():
            self._peer.gateway.engine.submit(Inspect(request, retry))
        elif request.take is None:
            self._answer_peek(request, reader)
        elif damaged := [word >> 16 for word, body in zip(reader.words, reader.bodies, strict=True) if body is None]:
            self._refuse(request, Refused(AmqpCondition.INTERNAL_ERROR, f"messages {damaged!r:.200} are damaged"))
        elif (size := answer_size(reader)) > (link_bytes := self.links.answer_bytes_max(request.reply_to) or size):
            self._refuse(request, too_large(len(reader.words), size, link_bytes))
        else:
            self._peer.gateway.lost_links.submit(request.take)

    def _answer_peek(self, request: EntityRequest, reader: MessageReader) -> None:
        """Answer with the messages that are read, as many as there is room for."""
        most, rows = self._answer_bytes(request, PEEK_BYTES_MAX), list[dict[str, Any]]()
        link_bytes, size = self.links.answer_bytes_max(request.reply_to), ROW_BYTES
        for index, (word, body) in enumerate(zip(reader.words, reader.bodies, strict=False)):
            if body is None:
                continue
            whole = size_of(word) if reader.is_beginning(index) else 0
            row = message_row(word, reader.entries[index], body, state=reader.states[index], whole_bytes=whole)
            size += len(row["message"]) + ROW_BYTES
            if size > most and (rows or size > (link_bytes or size)):
                break
            rows.append(row)
        else:
            size = 0
        if rows or not size:
            self._answer(request, _OK if rows else _NO_CONTENT, "OK", {"messages": rows} if rows else None)
            return
        why = f"message {word >> 16} does not fit into an answer of {link_bytes} bytes, the link's max-message-size"
        self._refuse(request, Refused(LinkCondition.MESSAGE_SIZE_EXCEEDED, why))

    def _answer_taken(self, request: EntityRequest, taken: Taken) -> None:
        """Answer with the messages that the consumer has acquired; without room for the answer they return."""
        take, reader = request.take, request.reader
        assert take is not None
        assert reader is not None, "they were read before"
        bodies: dict[int, Buffer | None] = dict(zip(reader.words, reader.bodies, strict=True))
        rows = [
            message_row(word, entry, bodies[word] or b"", state=1, until_ms=taken.until_ms, is_held=not take.settles)
            for word, entry in zip(taken.words, taken.entries, strict=True)
        ]
        if not self._answer(request, _OK, "OK", {"messages": rows}) and not take.settles:
            self._peer.gateway.engine.settle(Settle(take.consumer, pack_words(sorted(taken.words)), RELEASED))

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

    def _answer(self, request: EntityRequest, status: int, description: str, body: Any, *, condition: str = "") -> bool:
        """Answer a request, and return whether a link takes the answer."""
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
        is_sent = self.links.send(request.reply_to, message.encode())
        self.links.grant()
        self._turns.leave(request)
        return is_sent


def _body(message: Message) -> Mapping[str, Any]:
    """Return the arguments of a request. Raises Refused if its body is no map."""
    section = message.body[0] if len(message.body) == 1 else None
    value = section.value if isinstance(section, AmqpValue) else None
    if not isinstance(value, dict):
        raise Refused(AmqpCondition.INVALID_FIELD, "the body of a request must be an amqp-value with a map")
    return value


def _numbers(offsets: Sequence[int]) -> dict[str, Any]:
    return {"sequence-numbers": Array("long", tuple(offsets))}


def _expirations(count: int, until_ms: int) -> dict[str, Any]:
    return {"expirations": Array("timestamp", (until_ms,) * count)}


_CONDITIONS: Final[Mapping[str, str]] = {
    AmqpCondition.PRECONDITION_FAILED: _LOCK_LOST,
    AmqpCondition.NOT_FOUND: _MESSAGE_NOT_FOUND,
}
"""The conditions of Service Bus for those of the engine."""
_Operation = Callable[[EntityNode, EntityRequest, Mapping[str, Any], Mapping[str, Any]], Command | None]
_OPERATIONS: Final[Mapping[str, tuple[Action, _Operation]]] = {
    "peek-message": (Action.BROWSE, EntityNode._peek),  # noqa: SLF001 - the table of this class
    "schedule-message": (Action.SEND, EntityNode._schedule),  # noqa: SLF001
    "cancel-scheduled-message": (Action.MANAGE, EntityNode._cancel),  # noqa: SLF001
    "renew-lock": (Action.RECEIVE, EntityNode._renew),  # noqa: SLF001
    "receive-by-sequence-number": (Action.RECEIVE, EntityNode._receive),  # noqa: SLF001
    "update-disposition": (Action.RECEIVE, EntityNode._dispose),  # noqa: SLF001
}
"""Operation to the action that it needs on the queue, and to the function that makes its command."""
