"""The broker's `$management` node: its links, requests and answers, as in docs/management.md.

A client attaches a sender to `$management` and a receiver from `$management` whose target address is any name; a
request's reply-to is that name. Operation, type and name stand in its application properties, attributes in its body.
What there is to ask about stands in management_types.py.

Rule 1. An answer waits for the log like any promise: what it says is durable when it leaves.
Rule 2. An operation that cannot be done is an answer too: statusCode, statusDescription and errorCondition say why.
Rule 3. Requests are small, and who does not take the answers gets no credit for more of them.
Rule 4. Whatever a request holds, it is answered, or ends its link; what comes on other links is no request.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, final

from engine.commands import Command
from engine.effects import Answered, RefusedCommand
from engine.errors import Refused
from protocol.answers import Answers
from protocol.encode import encode
from protocol.errors import DecodeError, LocalError
from protocol.events import Disposed, TransferRun
from protocol.link import Link
from protocol.management_types import describe, noun_of, operation_of
from protocol.message import AmqpValue, Message, decode_message
from protocol.performatives import Accepted, Properties, Source, Target
from protocol.queue_management import QUEUE_TYPE
from protocol.receiver import Receiver
from protocol.sender import Sender
from protocol.serial import MASK
from protocol.spec import LinkCondition, ReceiverSettleMode
from protocol.values import Map, Symbol
from protocol.vhost_management import VhostCommand

if TYPE_CHECKING:
    from protocol.peer import Peer
    from protocol.session import Session

__all__ = ["ADDRESS", "ManagementNode"]

ADDRESS: Final = "$management"
_CREDIT: Final = 100
_REQUEST_BYTES_MAX: Final = 64 * 1024
_TEXT_BYTES_MAX: Final = 1024
"""What an answer repeats of its request: names of answers, ids, descriptions."""
_STATUS: Final = {
    "amqp:not-allowed": 403,
    "amqp:not-found": 404,
    "amqp:precondition-failed": 409,
    "amqp:internal-error": 500,
    "amqp:not-implemented": 501,
    "amqp:resource-limit-exceeded": 507,
}
"""Of HTTP, by condition; 400 for the others."""


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
        first = ReceiverSettleMode.FIRST
        link.accept(
            _source(link), Target(address=ADDRESS), receiver_settle_mode=first, max_message_size=_REQUEST_BYTES_MAX
        )
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
            self._refuse(request, Refused(effect.condition, effect.description))
        elif effect.value is None:
            self._refuse(request, Refused("amqp:not-found", f"no such {request.noun}"))
        else:
            created = effect.value.pop("created", None)
            self._answer(request, 200 if created is False else request.status, "OK", effect.value)

    def disposed(self, event: Disposed) -> None:
        """Hear what became of answers."""
        self._answers.disposed(event)
        self._grant()

    def flush(self, link: Sender) -> None:
        """Send the answers that the link has credit for."""
        self._answers.flush(link)
        self._grant()

    def _take(self, link: Receiver, delivery_id: int, message: Message) -> None:
        properties = message.properties or Properties()
        request = _Request(self._peer, link, delivery_id, str(properties.reply_to or ""))
        try:
            request.correlation_id = _correlation_id(properties)
            self._decide(request, _asked(message), _body(message))
        except Refused as refusal:
            self._refuse(request, refusal)

    def _decide(self, request: _Request, asked: Mapping[str, Any], body: Mapping[str, Any]) -> None:
        """Answer at once, or ask whom it concerns. Raises Refused."""
        operation = str(asked.get("operation", ""))
        told = describe(operation, asked)
        if told is not None:
            self._answer(request, 200, "OK", told)
            return
        kind = asked.get("entityType" if operation == "QUERY" else "type", QUEUE_TYPE)
        request.noun = noun_of(kind)
        make = operation_of(operation, kind)
        self._ask(make(request, asked, body, self._peer.gateway.limits.query_results_max))

    def _ask(self, command: Command | VhostCommand) -> None:
        gateway = self._peer.gateway
        if not isinstance(command, VhostCommand):
            gateway.engine.submit(command)
        elif gateway.vhosts is not None:
            gateway.vhosts.ask(gateway, command)
        else:
            raise Refused("amqp:not-implemented", "there are no virtual hosts here")

    def _refuse(self, request: _Request, refusal: Refused) -> None:
        status = _STATUS.get(refusal.condition, 400)
        self._answer(request, status, refusal.description, {}, condition=refusal.condition)

    def _answer(
        self, request: _Request, status: int, description: str, body: Mapping[str, Any], *, condition: str = ""
    ) -> None:
        self._settle(request.link, request.delivery_id)
        told: dict[str, Any] = {"statusCode": status, "statusDescription": _cut(description)}
        if condition:
            told["errorCondition"] = Symbol(condition)
        message = Message(
            properties=Properties(
                correlation_id=request.correlation_id,
                to=request.reply_to if _is_short(request.reply_to) else None,
            ),
            application_properties=told,
            body=(AmqpValue(dict(body)),),
        )
        self._send(request.reply_to, message.encode())
        self._grant()

    def _send(self, reply_to: str, answer: bytes) -> None:
        """Send an answer on the connection's own link of that name, else to the queue or topic of that address."""
        link = self._replies.get(reply_to)
        if link is not None:
            self._answers.send(link, answer)
        elif _is_short(reply_to):
            self._peer.post(reply_to, answer)

    def _settle(self, link: Receiver, delivery_id: int) -> None:
        if link.is_live:
            link.session.settle(delivery_id, 1, Accepted())

    def _grant(self) -> None:
        """Give credit for requests where half of it is used, unless answers wait to be taken."""
        if self._answers.is_empty:
            for link in self._requests:
                if link.credit <= _CREDIT // 2:
                    link.grant(_CREDIT)


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
