"""Requests to the broker's `$management` node: one at a time, each awaited.

A request names operation, type and name in its application properties and carries attributes in its body; the answer
comes on our reply link with the request's message-id as correlation-id, a statusCode and a statusDescription.
"""

import itertools
import time
from collections.abc import Iterator, Mapping
from typing import Any, Final

from protocol.events import Event, TransferRun
from protocol.message import AmqpValue, Message, decode_message
from protocol.performatives import Accepted, Properties
from protocol.values import ULong
from tools.errors import ToolError
from tools.exit_codes import ExitCode
from tools.link_client import TIMEOUT_SECONDS, LinkClient

__all__ = ["Management", "QueueManagement", "RequestRefused", "SnapshotManagement"]

_NODE: Final = "$management"
_QUEUE_TYPE: Final = "org.ambermq.queue"
_SNAPSHOT_TYPE: Final = "org.ambermq.snapshot"
_TAKING_SECONDS: Final = 600.0
"""A snapshot is written slowly, and waited for."""
_REPLY_NAME: Final = "reply"
_PAGE_COUNT: Final = 1000
_CREDIT: Final = 10


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
        self._replies.grant(_CREDIT)
        self._numbers = itertools.count(1)

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
        number = next(self._numbers)
        self._await_credit()
        request = Message(
            properties=Properties(message_id=ULong(number), reply_to=_REPLY_NAME),
            application_properties={"operation": operation, "type": kind, **properties},
            body=(AmqpValue(dict(attributes or {})),),
        )
        self._requests.send_run([number], [request.encode()])
        answer = self._answer(operation, number, timeout_s)
        told = answer.application_properties or {}
        status = int(told.get("statusCode", 500))
        if not 200 <= status < 300:
            description = str(told.get("statusDescription") or "nothing more")
            raise RequestRefused(status, description, where=where or str(properties.get("name", operation)))
        body = answer.body[0].value if answer.body else None
        return status, body if isinstance(body, dict) else {}

    def _await_credit(self) -> None:
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while not self._requests.sendable:
            if time.monotonic() >= deadline:
                raise ToolError("no credit for a request", where=str(self._client.url), code=ExitCode.TIMEOUT)
            self._client.step(deadline)

    def _answer(self, operation: str, number: int, timeout_s: float) -> Message:
        while True:
            event = self._client.await_event(self._is_answer, f"its answer to {operation}", timeout_s=timeout_s)
            assert isinstance(event, TransferRun)
            if not event.settled:
                self._replies.settle(event.first_id, len(event.payloads), Accepted())
            self._replies.grant(_CREDIT)
            for payload in event.payloads:
                message = decode_message(payload)
                if message.properties is not None and message.properties.correlation_id == number:
                    return message

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
        attributes: dict[str, Any] = {} if messages_max is None else {"messages_max": ULong(messages_max)}
        if template is not None:
            attributes["template"] = template
        status, body = self.request("CREATE", _QUEUE_TYPE, {"name": name}, attributes)
        return status == 201, body

    def read(self, name: str) -> dict[str, Any]:
        """Return a queue's attributes."""
        return self.request("READ", _QUEUE_TYPE, {"name": name})[1]

    def delete(self, name: str, *, if_unused: bool = False, if_empty: bool = False) -> None:
        """Delete a queue with what is on it."""
        self.request("DELETE", _QUEUE_TYPE, {"name": name, "if-unused": if_unused, "if-empty": if_empty})

    def purge(self, name: str) -> int:
        """Remove a queue's available messages; returns how many there were."""
        return int(self.request("PURGE", _QUEUE_TYPE, {"name": name})[1].get("messages", 0))

    def queues(self) -> Iterator[dict[str, Any]]:
        """Yield the attributes of every queue."""
        return self.rows(_QUEUE_TYPE)


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
