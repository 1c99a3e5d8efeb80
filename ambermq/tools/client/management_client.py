"""Requests to the broker's `$management` node: one at a time, or several in flight with their answers in order.

A request has operation, type and name in its application properties, and attributes in its body. The answer comes on
the reply link. It has the request's message-id as correlation-id, a statusCode and a statusDescription.
"""

import itertools
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from ambermq.protocol.amqp10.errors import LocalError
from ambermq.protocol.amqp10.events import Event, TransferRun
from ambermq.protocol.amqp10.message.message import AmqpValue, Message, decode_message
from ambermq.protocol.amqp10.performatives.classes import Accepted, Properties
from ambermq.protocol.amqp10.spec import AmqpCondition
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
    "queue_declaration",
    "queue_deletion",
    "queue_update",
]

_NODE: Final = "$management"
_QUEUE_TYPE: Final = "org.ambermq.queue"
_SNAPSHOT_TYPE: Final = "org.ambermq.snapshot"
_TAKING_SECONDS: Final = 600.0
"""Timeout of a request that waits for a snapshot, which is written slowly."""
_REPLY_NAME: Final = "reply"
_PAGE_COUNT: Final = 1000
_IN_FLIGHT_MAX: Final = 32
"""Requests without an answer."""


ROWS_MAX: Final = 1_000_000
"""The rows of one listing: a broker that lists without end fills no memory."""
_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})


class Request(NamedTuple):
    """One request to `$management`."""

    operation: str
    kind: str
    """The management type."""
    properties: Mapping[str, Any]
    attributes: Mapping[str, Any] = {}
    where: str = ""
    """The subject of an error message; empty: the name."""


class RequestRefused(ToolError):
    """The broker refused a request."""

    def __init__(self, status: int, description: str, *, where: str, condition: str = "") -> None:
        code = ExitCode.NOT_FOUND if status == 404 else ExitCode.FAILED
        if condition == AmqpCondition.UNAUTHORIZED_ACCESS:
            code = ExitCode.NOT_ALLOWED
        super().__init__(f"the broker says {status}: {description}", where=where, code=code)
        self.status = status
        """The status code, as in HTTP: from 500 on the broker may have done a part of the request."""


class Management:
    """Requests to a broker over one client."""

    def __init__(self, client: LinkClient) -> None:
        """Attach both links; raise ToolError if the broker has no management node."""
        self._client = client
        self._replies = client.attach_receiver(_NODE, reply_name=_REPLY_NAME)
        self._requests = client.attach_sender(_NODE)
        self._replies.grant(_IN_FLIGHT_MAX)
        self._numbers = itertools.count(1)
        self._answers: dict[int, Message | None] = {}
        """Requests in flight by number, with the answers that have come."""

    def rows(self, kind: str, **filters: Any) -> Iterator[dict[str, Any]]:
        """Yield the attributes of all objects of a type that pass the filters, with one request for each page."""
        offset = 0
        while True:
            page = {"entityType": kind, "offset": offset, "count": _PAGE_COUNT, **filters}
            _, body = self.request("QUERY", kind, page)
            names, rows = list(body.get("attributeNames", ())), list(body.get("results", ()))
            yield from (dict(zip(names, row, strict=True)) for row in rows)
            offset += len(rows)
            if offset > ROWS_MAX:
                raise ToolError(
                    "the broker lists too much",
                    where=kind,
                    expected=f"at most {ROWS_MAX:,} rows",
                    advice="name the object that you want",
                    code=ExitCode.FAILED,
                )
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
        """Send a request and return status and body of its answer; raise RequestRefused if the broker refuses.

        `where` is the subject of an error message; empty: the name.
        """
        request = Request(operation, kind, properties, attributes or {}, where)
        return self._outcome(request, self._send(request), timeout_s)

    def carry_out(self, requests: Sequence[Request], *, goes_on: bool = False) -> Iterator[RequestRefused | None]:
        """Send requests, several in flight, and yield the result of each in order: None is success.

        The broker carries them out in order. After the first refusal no more are sent, unless it `goes_on`, and the
        results of those in flight follow.
        """
        unsent, in_flight = deque(requests), deque[tuple[Request, int]]()
        while unsent or in_flight:
            while unsent and len(in_flight) < _IN_FLIGHT_MAX:
                request = unsent.popleft()
                in_flight.append((request, self._send(request)))
            result = None
            try:
                self._outcome(*in_flight.popleft(), TIMEOUT_SECONDS)
            except RequestRefused as refusal:
                result = refusal
                if not goes_on:
                    unsent.clear()
            yield result

    def _send(self, request: Request) -> int:
        """Wait for credit, send a request and return its number."""
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
                f"the request cannot be encoded ({error})", where=where, expected=expected, code=ExitCode.USAGE
            ) from error
        self._answers[number] = None
        self._requests.send_run([number], [encoded])
        return number

    def _outcome(self, request: Request, number: int, timeout_s: float) -> tuple[int, dict[str, Any]]:
        answer = self._answer(request.operation, number, timeout_s)
        properties = answer.application_properties or {}
        status = int(properties.get("statusCode", 500))
        if not 200 <= status < 300:
            description = str(properties.get("statusDescription") or "no description")
            where = request.where or str(request.properties.get("name", request.operation))
            condition = str(properties.get("errorCondition", ""))
            raise RequestRefused(status, description, where=where, condition=condition)
        body = answer.body[0].value if answer.body else None
        return status, body if isinstance(body, dict) else {}

    def _await_credit(self) -> None:
        began = time.monotonic()
        deadline = began + TIMEOUT_SECONDS
        while not self._requests.sendable:
            if time.monotonic() >= deadline:
                self._client.check_heard(began)
                raise ToolError(
                    "the broker gives no credit for a request", where=str(self._client.url), code=ExitCode.TIMEOUT
                )
            self._client.step(deadline)

    def _answer(self, operation: str, number: int, timeout_s: float) -> Message:
        try:
            while self._answers[number] is None:
                event = self._client.await_event(self._is_answer, f"its answer to {operation}", timeout_s=timeout_s)
                assert isinstance(event, TransferRun)
                if not event.settled:
                    self._replies.settle(event.first_id, len(event.payloads), Accepted())
                self._replies.grant(_IN_FLIGHT_MAX)
                for payload in event.payloads:
                    self._take(decode_message(payload))
        finally:
            answer = self._answers.pop(number)
        assert answer is not None, "the loop ends with an answer or an error"
        return answer

    def _take(self, answer: Message) -> None:
        number = None if answer.properties is None else answer.properties.correlation_id
        if isinstance(number, int) and number in self._answers:
            self._answers[number] = answer

    def _is_answer(self, event: Event) -> bool:
        return isinstance(event, TransferRun) and event.link is self._replies


class QueueManagement(Management):
    """Requests about queues."""

    def declare(
        self, name: str, settings: Mapping[str, Any] = _NOTHING, *, template: str | None = None
    ) -> tuple[bool, dict[str, Any]]:
        """Create a queue; return whether it is new, and its attributes.

        `settings` are values by name; the template gives the others. `template` None: the one that matches the name.
        """
        request = queue_declaration(name, settings, template=template)
        status, body = self.request(*request[:4])
        return status == 201, body

    def update(self, name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Change settings of a queue, by name; return its attributes and `updated`."""
        return self.request(*queue_update(name, settings)[:4])[1]

    def read(self, name: str) -> dict[str, Any]:
        """Return a queue's attributes."""
        return self.request("READ", _QUEUE_TYPE, {"name": name})[1]

    def delete(self, name: str, *, if_unused: bool = False, if_empty: bool = False) -> None:
        """Delete a queue with its messages."""
        self.request(*queue_deletion(name, if_unused=if_unused, if_empty=if_empty)[:4])

    def purge(self, name: str, *, scheduled: bool = False) -> int:
        """Remove a queue's waiting messages, with `scheduled` those for later too; return their number."""
        properties = {"name": name} | ({"scheduled": True} if scheduled else {})
        return int(self.request("PURGE", _QUEUE_TYPE, properties)[1].get("messages", 0))

    def queues(self) -> Iterator[dict[str, Any]]:
        """Yield the attributes of every queue."""
        return self.rows(_QUEUE_TYPE)


def queue_declaration(name: str, settings: Mapping[str, Any] = _NOTHING, *, template: str | None = None) -> Request:
    """Return the request that creates a queue, as in `QueueManagement.declare`."""
    attributes = _attributes(settings)
    if template is not None:
        attributes["template"] = template
    return Request("CREATE", _QUEUE_TYPE, {"name": name}, attributes)


def queue_update(name: str, settings: Mapping[str, Any]) -> Request:
    """Return the request that changes settings of a queue, by name."""
    return Request("UPDATE", _QUEUE_TYPE, {"name": name}, _attributes(settings))


def _attributes(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of settings as AMQP has them: whole numbers are unsigned."""
    return {name: ULong(value) if type(value) is int else value for name, value in settings.items()}


def queue_deletion(name: str, *, if_unused: bool = False, if_empty: bool = False) -> Request:
    """Return the request that deletes a queue with its messages."""
    return Request("DELETE", _QUEUE_TYPE, {"name": name, "if-unused": if_unused, "if-empty": if_empty})


class SnapshotManagement(Management):
    """Requests about snapshots."""

    def create(self, name: str | None, *, waits: bool = True, seals: bool = False) -> dict[str, Any]:
        """Take a snapshot and return its attributes; with `waits`, when its file is durable.

        `seals` also seals the active segment of the log.
        """
        properties = {"name": name} if name is not None else {}
        options = {"wait": waits, "seal": seals}
        return self.request("CREATE", _SNAPSHOT_TYPE, properties, options, timeout_s=_TAKING_SECONDS)[1]

    def delete(self, name: str) -> dict[str, Any]:
        """Delete a snapshot and return its attributes."""
        return self.request("DELETE", _SNAPSHOT_TYPE, {"name": name})[1]

    def snapshots(self) -> Iterator[dict[str, Any]]:
        """Yield the attributes of every snapshot."""
        return self.rows(_SNAPSHOT_TYPE)
