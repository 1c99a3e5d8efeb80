"""Requests to the broker's `$management` node: one at a time, each awaited, or some at once, each answered in turn.

A request names operation, type and name in its application properties and carries attributes in its body; the answer
comes on our reply link with the request's message-id as correlation-id, a statusCode and a statusDescription.
"""

import itertools
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from ambermq.protocol.amqp10.errors import LocalError
from ambermq.protocol.amqp10.events import Event, TransferRun
from ambermq.protocol.amqp10.message.message import AmqpValue, Message, decode_message
from ambermq.protocol.amqp10.performatives.classes import Accepted, Properties
from ambermq.protocol.amqp10.types.values import ULong
from ambermq.tools.client.link_client import TIMEOUT_SECONDS, LinkClient
from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.exit_codes import ExitCode

__all__ = [
    "Management",
    "QueueManagement",
    "Request",
    "RequestRefused",
    "SnapshotManagement",
    "declaring_queue",
    "deleting_queue",
    "updating_queue",
]

_NODE: Final = "$management"
_QUEUE_TYPE: Final = "org.ambermq.queue"
_SNAPSHOT_TYPE: Final = "org.ambermq.snapshot"
_TAKING_SECONDS: Final = 600.0
"""A snapshot is written slowly, and waited for."""
_REPLY_NAME: Final = "reply"
_PAGE_COUNT: Final = 1000
_ASKED_MAX: Final = 32
"""Requests that wait for their answers at once."""


class Request(NamedTuple):
    """What a broker is asked for."""

    operation: str
    kind: str
    """The type that it is about."""
    properties: Mapping[str, Any]
    attributes: Mapping[str, Any] = {}
    where: str = ""
    """What a refusal is said about, instead of the name."""


class RequestRefused(ToolError):
    """What the broker answered to a request that it did not carry out."""

    def __init__(self, status: int, description: str, *, where: str) -> None:
        code = ExitCode.NOT_FOUND if status == 404 else ExitCode.FAILED
        super().__init__(f"the broker says {status}: {description}", where=where, code=code)
        self.status = status
        """As of HTTP: from 500 on it may have been carried out in part."""


class Management:
    """Requests to a broker, over one client."""

    def __init__(self, client: LinkClient) -> None:
        """Attach both links; ToolError where the broker has no such node."""
        self._client = client
        self._replies = client.attach_receiver(_NODE, reply_name=_REPLY_NAME)
        self._requests = client.attach_sender(_NODE)
        self._replies.grant(_ASKED_MAX)
        self._numbers = itertools.count(1)
        self._asked: dict[int, Message | None] = {}
        """Requests that are awaited, and their answers where these have come."""

    def rows(self, kind: str, **asked: Any) -> Iterator[dict[str, Any]]:
        """Yield the attributes of everything of a type, as far as asked for, a page at a time."""
        offset = 0
        while True:
            page = {"entityType": kind, "offset": offset, "count": _PAGE_COUNT, **asked}
            _, body = self.request("QUERY", kind, page)
            names, rows = list(body.get("attributeNames", ())), list(body.get("results", ()))
            yield from (dict(zip(names, row, strict=True)) for row in rows)
            offset += len(rows)
            if not rows or offset >= int(body.get("total", 0)):
                return

    def request(
        self,
        operation: str,
        kind: str,
        properties: Mapping[str, Any],
        attributes: Mapping[str, Any] | None = None,
        *,
        timeout_s: float = TIMEOUT_SECONDS,
        where: str = "",
    ) -> tuple[int, dict[str, Any]]:
        """Send a request and return status and body of its answer; ToolError where it says no, about its name.

        `where` is said instead where it has none.
        """
        request = Request(operation, kind, properties, attributes or {}, where)
        return self._outcome(request, self._send(request), timeout_s)

    def carry_out(self, requests: Sequence[Request]) -> Iterator[RequestRefused | None]:
        """Ask for all of this, some at once, and yield what became of each in order: None where it was done.

        They are carried out in order. After the first refusal no more are sent: those that were sent already are told
        as well, the others not.
        """
        ahead, under_way = deque(requests), deque[tuple[Request, int]]()
        while ahead or under_way:
            while ahead and len(under_way) < _ASKED_MAX:
                request = ahead.popleft()
                under_way.append((request, self._send(request)))
            refused = None
            try:
                self._outcome(*under_way.popleft(), TIMEOUT_SECONDS)
            except RequestRefused as refusal:
                refused = refusal
                ahead.clear()
            yield refused

    def _send(self, request: Request) -> int:
        """Send a request when there is credit, and return its number."""
        number = next(self._numbers)
        self._await_credit()
        message = Message(
            properties=Properties(message_id=ULong(number), reply_to=_REPLY_NAME),
            application_properties={"operation": request.operation, "type": request.kind, **request.properties},
            body=(AmqpValue(dict(request.attributes)),),
        )
        try:
            encoded = message.encode()
        except LocalError as error:
            where = request.where or str(request.properties.get("name", request.operation))
            expected = "text, and whole numbers of at most 64 bits"
            raise ToolError(
                f"it cannot be sent ({error})", where=where, expected=expected, code=ExitCode.USAGE
            ) from error
        self._asked[number] = None
        self._requests.send_run([number], [encoded])
        return number

    def _outcome(self, request: Request, number: int, timeout_s: float) -> tuple[int, dict[str, Any]]:
        answer = self._answer(request.operation, number, timeout_s)
        told = answer.application_properties or {}
        status = int(told.get("statusCode", 500))
        if not 200 <= status < 300:
            description = str(told.get("statusDescription") or "nothing more")
            where = request.where or str(request.properties.get("name", request.operation))
            raise RequestRefused(status, description, where=where)
        body = answer.body[0].value if answer.body else None
        return status, body if isinstance(body, dict) else {}

    def _await_credit(self) -> None:
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while not self._requests.sendable:
            if time.monotonic() >= deadline:
                raise ToolError("no credit for a request", where=str(self._client.url), code=ExitCode.TIMEOUT)
            self._client.step(deadline)

    def _answer(self, operation: str, number: int, timeout_s: float) -> Message:
        try:
            while self._asked[number] is None:
                event = self._client.await_event(self._is_answer, f"its answer to {operation}", timeout_s=timeout_s)
                assert isinstance(event, TransferRun)
                if not event.settled:
                    self._replies.settle(event.first_id, len(event.payloads), Accepted())
                self._replies.grant(_ASKED_MAX)
                for payload in event.payloads:
                    self._take(decode_message(payload))
        finally:
            answer = self._asked.pop(number)
        assert answer is not None, "what is not awaited any more has come or has failed"
        return answer

    def _take(self, answer: Message) -> None:
        number = None if answer.properties is None else answer.properties.correlation_id
        if isinstance(number, int) and number in self._asked:
            self._asked[number] = answer

    def _is_answer(self, event: Event) -> bool:
        return isinstance(event, TransferRun) and event.link is self._replies


class QueueManagement(Management):
    """What a broker can be asked about its queues."""

    def declare(
        self, name: str, *, messages_max: int | None = None, template: str | None = None
    ) -> tuple[bool, dict[str, Any]]:
        """Create a queue; returns whether it is new, and its attributes.

        `messages_max` None: as the template says, 0: the broker's bound. `template` None: that of the queue's name.
        """
        asked = declaring_queue(name, messages_max=messages_max, template=template)
        status, body = self.request(*asked[:4])
        return status == 201, body

    def update(self, name: str, *, messages_max: int) -> dict[str, Any]:
        """Let a queue take so many messages, 0: the broker's bound; returns its attributes, and whether that is new."""
        return self.request(*updating_queue(name, messages_max=messages_max)[:4])[1]

    def read(self, name: str) -> dict[str, Any]:
        """Return a queue's attributes."""
        return self.request("READ", _QUEUE_TYPE, {"name": name})[1]

    def delete(self, name: str, *, if_unused: bool = False, if_empty: bool = False) -> None:
        """Delete a queue with what is on it."""
        self.request(*deleting_queue(name, if_unused=if_unused, if_empty=if_empty)[:4])

    def purge(self, name: str) -> int:
        """Remove a queue's available messages; returns how many there were."""
        return int(self.request("PURGE", _QUEUE_TYPE, {"name": name})[1].get("messages", 0))

    def queues(self) -> Iterator[dict[str, Any]]:
        """Yield the attributes of every queue."""
        return self.rows(_QUEUE_TYPE)


def declaring_queue(name: str, *, messages_max: int | None = None, template: str | None = None) -> Request:
    """Return the request that creates a queue; None as for `QueueManagement.declare`."""
    attributes: dict[str, Any] = {} if messages_max is None else {"messages_max": ULong(messages_max)}
    if template is not None:
        attributes["template"] = template
    return Request("CREATE", _QUEUE_TYPE, {"name": name}, attributes)


def updating_queue(name: str, *, messages_max: int) -> Request:
    """Return the request that lets a queue take so many messages."""
    return Request("UPDATE", _QUEUE_TYPE, {"name": name}, {"messages_max": ULong(messages_max)})


def deleting_queue(name: str, *, if_unused: bool = False, if_empty: bool = False) -> Request:
    """Return the request that deletes a queue with what is on it."""
    return Request("DELETE", _QUEUE_TYPE, {"name": name, "if-unused": if_unused, "if-empty": if_empty})


class SnapshotManagement(Management):
    """What a broker can be asked about its snapshots."""

    def create(self, name: str | None, *, waits: bool = True, seals: bool = False) -> dict[str, Any]:
        """Let one be taken and return its attributes, once it is there or, not waiting, once it is taken.

        With `seals` the log goes on in its next segment.
        """
        named = {"name": name} if name is not None else {}
        asked = {"wait": waits, "seal": seals}
        return self.request("CREATE", _SNAPSHOT_TYPE, named, asked, timeout_s=_TAKING_SECONDS)[1]

    def delete(self, name: str) -> dict[str, Any]:
        """Delete one and return what its attributes were."""
        return self.request("DELETE", _SNAPSHOT_TYPE, {"name": name})[1]

    def snapshots(self) -> Iterator[dict[str, Any]]:
        """Yield the attributes of every snapshot."""
        return self.rows(_SNAPSHOT_TYPE)
