"""The broker's `$management` node: requests and answers about queues and snapshots, as in docs/management.md.

A client attaches a sender to `$management` and a receiver from `$management` whose target address is any name; a
request's reply-to is that name. Operation, type and name stand in its application properties, attributes in its body.

Rule 1. An answer waits for the log like any promise: what it says is durable when it leaves.
Rule 2. An operation that cannot be done is an answer too: statusCode and statusDescription say why.
Rule 3. Requests are small, and who does not take the answers gets no credit for more of them.
Rule 4. Whatever a request holds, it is answered, or ends its link; what comes on other links is no request.
"""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, final

from engine.address import queue_name
from engine.commands import Command, DeclareQueue, DeleteQueue, Inspect, PurgeQueue
from engine.effects import Answered, RefusedCommand
from engine.errors import Refused
from engine.queue import Queue, Settings
from engine.state import State
from protocol.answers import Answers
from protocol.asked import asked_name, asked_number, refuse_unknown
from protocol.compaction_management import COMPACTION_OPERATIONS, COMPACTION_TYPE
from protocol.encode import encode
from protocol.errors import DecodeError, LocalError
from protocol.events import TransferRun
from protocol.link import Link
from protocol.message import AmqpValue, Message, decode_message
from protocol.performatives import Accepted, Properties, Source, Target
from protocol.receiver import Receiver
from protocol.sender import Sender
from protocol.serial import MASK
from protocol.snapshot_management import SNAPSHOT_OPERATIONS, SNAPSHOT_TYPE
from protocol.spec import LinkCondition
from protocol.values import Map
from protocol.vhost_management import VHOST_OPERATIONS, VHOST_TYPE, VhostCommand

if TYPE_CHECKING:
    from protocol.peer import Peer
    from protocol.session import Session

__all__ = ["ADDRESS", "QUEUE_TYPE", "ManagementNode", "queue_attributes"]

ADDRESS: Final = "$management"
QUEUE_TYPE: Final = "org.ambermq.queue"
_CREDIT: Final = 100
_REQUEST_BYTES_MAX: Final = 64 * 1024
_TEXT_BYTES_MAX: Final = 1024
"""What an answer repeats of its request: names of answers, ids, descriptions."""
_STATUS: Final = {
    "amqp:not-found": 404,
    "amqp:precondition-failed": 409,
    "amqp:internal-error": 500,
    "amqp:resource-limit-exceeded": 507,
}


@final
@dataclass(slots=True)
class _Request:
    """One request under way; it is the key of the command that it became."""

    peer: "Peer"
    link: Receiver
    delivery_id: int
    reply_to: str
    correlation_id: Any = None
    """What the answer repeats: the request's correlation-id, else its message-id."""
    status: int = 200
    """The status code of success."""
    noun: str = "queue"
    """What it is about, for a person."""


@final
class ManagementNode:
    """The management links of one connection."""

    __slots__ = ("_answers", "_dynamic_count", "_peer", "_replies", "_requests")

    def __init__(self, peer: "Peer") -> None:
        self._peer = peer
        self._requests: dict[Receiver, None] = {}
        self._replies: dict[str, Sender] = {}
        self._answers = Answers()
        self._dynamic_count = 0

    def attach_requests(self, link: Receiver) -> None:
        """Accept a link for requests."""
        link.accept(_source(link), Target(address=ADDRESS), max_message_size=_REQUEST_BYTES_MAX)
        self._requests[link] = None
        self._grant()

    def is_asked_in(self, session: "Session") -> bool:
        """Tell whether a session has a link for requests."""
        return any(link.session is session for link in self._requests)

    def attach_replies(self, link: Sender) -> None:
        """Accept a link for answers; its target address is the name that requests reply to.

        A dynamic source gets an address for that instead, known to this connection alone.
        """
        target = _target(link)
        name, source = str(target.address or ""), Source(address=ADDRESS)
        if _source(link).dynamic:
            self._dynamic_count += 1
            name = f"{ADDRESS}/{self._dynamic_count}"
            source = Source(address=name, dynamic=True)
        link.accept(source, target)
        self._replies[name] = link
        self._answers.attach(link)

    def detached(self, link: Link) -> None:
        """Forget a link."""
        if isinstance(link, Receiver):
            self._requests.pop(link, None)
        elif isinstance(link, Sender):
            self._answers.detach(link)
            self._replies = {name: other for name, other in self._replies.items() if other is not link}
            self._grant()

    def requested(self, run: TransferRun) -> None:
        """Take what came on a link, if it is one for requests: others have ended, what they bring is dropped."""
        for index, payload in enumerate(run.payloads):
            if run.link not in self._requests:
                return
            if len(payload) > _REQUEST_BYTES_MAX:
                del self._requests[run.link]
                run.link.fail(LinkCondition.MESSAGE_SIZE_EXCEEDED, f"a request of {len(payload)} bytes")
                return
            delivery_id = (run.first_id + index) & MASK
            try:
                self._take(run.link, delivery_id, decode_message(payload))
            except DecodeError:
                self._settle(run.link, delivery_id)
                self._grant()

    def answered(self, effect: Answered | RefusedCommand) -> None:
        """Answer a request with what became of its command."""
        request: _Request = effect.key
        if isinstance(effect, RefusedCommand):
            self._answer(request, _STATUS.get(effect.condition, 400), effect.description, {})
        elif effect.value is None:
            self._answer(request, 404, f"no such {request.noun}", {})
        else:
            created = effect.value.pop("created", None)
            self._answer(request, 200 if created is False else request.status, "OK", effect.value)

    def flush(self, link: Sender) -> None:
        """Send the answers that the link has credit for."""
        self._answers.flush(link)
        self._grant()

    def _take(self, link: Receiver, delivery_id: int, message: Message) -> None:
        properties = message.properties or Properties()
        request = _Request(self._peer, link, delivery_id, str(properties.reply_to or ""))
        try:
            request.correlation_id = _correlation_id(properties)
            asked, body = _asked(message), _body(message)
        except Refused as refusal:
            self._answer(request, 400, refusal.description, {})
        else:
            self._decide(request, asked, body)

    def _decide(self, request: _Request, asked: Mapping[str, Any], body: Mapping[str, Any]) -> None:
        operation = str(asked.get("operation", ""))
        kind = asked.get("entityType" if operation == "QUERY" else "type", QUEUE_TYPE)
        operations = _KINDS.get(kind) if isinstance(kind, str) else None
        known = _OPERATIONS if operations is None else operations
        make = known.get(operation)
        request.noun = str(kind).rpartition(".")[2]
        if make is None:
            self._answer(request, 501, f"unknown operation {operation!r}: {', '.join(sorted(known))}", {})
        elif operations is None:
            self._answer(request, 400, f"unknown type {kind!r}: {', '.join(_KINDS)}", {})
        else:
            self._submit(request, make, asked, body)

    def _submit(self, request: _Request, make: "_Operation", asked: Mapping[str, Any], body: Mapping[str, Any]) -> None:
        try:
            command = make(request, asked, body, self._peer.gateway.limits.query_results_max)
        except Refused as refusal:
            self._answer(request, 400, refusal.description, {})
        else:
            self._ask(request, command)

    def _ask(self, request: _Request, command: Command | VhostCommand) -> None:
        gateway = self._peer.gateway
        if not isinstance(command, VhostCommand):
            gateway.engine.submit(command)
        elif gateway.vhosts is not None:
            gateway.vhosts.ask(gateway, command)
        else:
            self._answer(request, 501, "there are no virtual hosts here", {})

    def _answer(self, request: _Request, status: int, description: str, body: Mapping[str, Any]) -> None:
        self._settle(request.link, request.delivery_id)
        link = self._replies.get(request.reply_to)
        if link is not None:
            message = Message(
                properties=Properties(
                    correlation_id=request.correlation_id,
                    to=request.reply_to if _is_short(request.reply_to) else None,
                ),
                application_properties={"statusCode": status, "statusDescription": _cut(description)},
                body=(AmqpValue(dict(body)),),
            )
            self._answers.send(link, message.encode())
        self._grant()

    def _settle(self, link: Receiver, delivery_id: int) -> None:
        if link.is_live:
            link.session.settle(delivery_id, 1, Accepted())

    def _grant(self) -> None:
        """Give credit for requests where half of it is used, unless answers wait to be taken."""
        if self._answers.is_empty:
            for link in self._requests:
                if link.credit <= _CREDIT // 2:
                    link.grant(_CREDIT)


_Operation = Callable[[_Request, Mapping[str, Any], Mapping[str, Any], int], Command | VhostCommand]


def _source(link: Link) -> Source:
    return (link.remote.source if link.remote else None) or Source()


def _target(link: Link) -> Target:
    target = link.remote.target if link.remote else None
    return target if isinstance(target, Target) else Target()


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


def _asked(message: Message) -> Mapping[str, Any]:
    asked = {} if message.application_properties is None else message.application_properties
    # What a dict cannot hold is decoded to a Map: nothing of ours has such keys.
    if not isinstance(asked, dict):
        raise Refused("amqp:invalid-field", "the keys of the application properties must be strings")
    return asked


def _body(message: Message) -> Mapping[str, Any]:
    value = message.body[0].value if message.body else None
    if isinstance(value, Map):
        raise Refused("amqp:invalid-field", "the keys of the body must be strings")
    return value if isinstance(value, dict) else {}


def _create(request: _Request, asked: Mapping[str, Any], body: Mapping[str, Any], _max: int) -> Command:
    refuse_unknown(body, "queue", "messages_max")
    request.status = 201
    return DeclareQueue(
        request, asked_name(asked, "queue"), Settings(messages_max=asked_number(body, "messages_max", 0))
    )


def _read(request: _Request, asked: Mapping[str, Any], _body: Mapping[str, Any], _max: int) -> Command:
    # The name is an address here too, as it is for CREATE; how long one may be is asked where queues are made.
    return Inspect(request, partial(_queue_of, queue_name(asked_name(asked, "queue"), name_bytes_max=sys.maxsize)))


def _queue_of(name: str, state: State) -> dict[str, Any] | None:
    queue = state.queue_named(name)
    return None if queue is None else queue_attributes(queue, _consumer_count(state, queue.id))


def _delete(request: _Request, asked: Mapping[str, Any], _body: Mapping[str, Any], _max: int) -> Command:
    request.status = 204
    return DeleteQueue(request, asked_name(asked, "queue"), bool(asked.get("if-unused")), bool(asked.get("if-empty")))


def _purge(request: _Request, asked: Mapping[str, Any], _body: Mapping[str, Any], _max: int) -> Command:
    return PurgeQueue(request, asked_name(asked, "queue"))


def _query(request: _Request, asked: Mapping[str, Any], _body: Mapping[str, Any], results_max: int) -> Command:
    offset, count = asked_number(asked, "offset", 0), asked_number(asked, "count", results_max)
    return Inspect(request, partial(_page, offset, min(count, results_max)))


def _page(offset: int, count: int, state: State) -> dict[str, Any]:
    consumers: dict[int, int] = {}
    for consumer in state.consumers.values():
        consumers[consumer.queue] = consumers.get(consumer.queue, 0) + 1
    # Queues are listed by id, which never changes: a client that pages sees each of them once.
    ids = sorted(state.queues.keys())
    rows = [
        queue_attributes(state.queues[queue_id], consumers.get(queue_id, 0))
        for queue_id in ids[offset : offset + count]
    ]
    return {
        "attributeNames": list(_ATTRIBUTES),
        "results": [[row[name] for name in _ATTRIBUTES] for row in rows],
        "total": len(ids),
    }


_OPERATIONS: Final[dict[str, _Operation]] = {
    "CREATE": _create,
    "READ": _read,
    "DELETE": _delete,
    "PURGE": _purge,
    "QUERY": _query,
}

_KINDS: Final[Mapping[str, Mapping[str, _Operation]]] = {
    QUEUE_TYPE: _OPERATIONS,
    SNAPSHOT_TYPE: SNAPSHOT_OPERATIONS,
    COMPACTION_TYPE: COMPACTION_OPERATIONS,
    VHOST_TYPE: VHOST_OPERATIONS,
}

_ATTRIBUTES: Final = (
    "name",
    "id",
    "available",
    "acquired",
    "consumers",
    "bytes",
    "published",
    "delivered",
    "accepted",
    "rejected",
    "released",
    "failed",
    "purged",
    "damaged",
    "messages_max",
    "template",
)


def queue_attributes(queue: Queue, consumers: int) -> dict[str, Any]:
    """Return what `$management` says of a queue: counts in messages, `bytes` those of the messages on it."""
    counters = queue.counters
    values = (
        queue.name,
        queue.id,
        queue.available,
        queue.acquired_count,
        consumers,
        queue.size,
        queue.published,
        queue.delivered,
        queue.accepted,
        counters.rejected,
        counters.released,
        counters.failed,
        counters.purged,
        counters.damaged,
        queue.settings.messages_max,
        queue.settings.template,
    )
    return dict(zip(_ATTRIBUTES, values, strict=True))


def _consumer_count(state: State, queue_id: int) -> int:
    return sum(consumer.queue == queue_id for consumer in state.consumers.values())
