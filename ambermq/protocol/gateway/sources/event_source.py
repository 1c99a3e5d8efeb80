"""The source `/log`: each event becomes a message, from a moment on, and then as events become durable.

Rule 1. No event is sent before it is durable.
Rule 2. A background job reads the events from the log's files and encodes them, one piece at a time. The next piece is
        read when this one is sent. So a slow peer costs the memory of one piece, and a peer without credit none.
Rule 3. An event has no message body: a client reads messages by browsing the queue (docs/log-source.md).
Rule 4. A drain is answered when all durable events are sent.
"""

from collections import deque
from collections.abc import Callable
from typing import Any, Final, final

from ambermq.engine.events import Event, QueueDeclared, QueueDeleted, Reset
from ambermq.engine.history.background_jobs import BackgroundJob
from ambermq.engine.model.state import State
from ambermq.engine.records.event_fields import facts_of, next_after, type_of
from ambermq.protocol.amqp10.events import Disposed
from ambermq.protocol.amqp10.link.sender import Sender
from ambermq.protocol.amqp10.message.message import AmqpValue, Message
from ambermq.protocol.amqp10.performatives.classes import Properties
from ambermq.protocol.amqp10.spec import SenderSettleMode
from ambermq.protocol.amqp10.types.values import ULong
from ambermq.protocol.gateway.large.turn_budget import TurnBudget, Wait
from ambermq.protocol.gateway.links.attach_terms import ConsumingTerms, offered_by
from ambermq.protocol.gateway.sources.queue_browser import settle_browsed
from ambermq.protocol.gateway.sources.source import SourcePeer

__all__ = ["EventSource", "message_of"]

_EVENTS_MAX: Final = 500
"""Events of one piece; the batch that reaches the bound is read whole."""
_BYTES_MAX: Final = 256 << 10
"""Bytes of the words of one piece's events; the batch that reaches the bound is read whole."""
_US_PER_MS: Final = 1000
_HEADLINE_FACTS: Final = ("count", "bytes", "outcome", "queue")
"""Facts that are application properties too, so that a client reads them without the body."""

_Piece = tuple[list[tuple[int, bytes]], int]
"""Messages with the offsets of their events, and the offset from which to read on."""


@final
class EventSource:
    """One link that receives events."""

    __slots__ = ("_job", "_messages", "_names", "_next", "is_open", "link", "peer", "terms")

    def __init__(self, peer: SourcePeer, link: Sender, terms: ConsumingTerms) -> None:
        self.peer = peer
        self.link = link
        self.terms = terms
        self.is_open = True
        self._next = -1
        """The offset from which to read on; below 0 until a job has found it."""
        self._messages: deque[tuple[int, bytes]] = deque()
        self._names: dict[int, str] = {}
        """Names of the queues whose declarations this link has sent; only jobs use them, one job at a time."""
        self._job: BackgroundJob | None = None

    @property
    def duration_ms_max(self) -> int:
        """Return 0, no bound: this source keeps no state of the past."""
        return 0

    @property
    def past_bytes(self) -> int:
        """Return 0: this source keeps no state of the past."""
        return 0

    def await_job(self, job: BackgroundJob) -> None:
        """Wait for the job that finds the offset to begin at."""
        self._job = job

    def begin(self, offset: int) -> None:
        """Answer the attach: the first event is the one at `offset`, or the next one."""
        self._job = None
        self._next = offset
        offered = offered_by(self.terms)
        self.link.accept(source=self.terms.source, target=self.terms.target, offered_capabilities=offered)

    def serve(self, turn: TurnBudget) -> Wait:
        """Send as many messages as the turn and the link allow, and return what the link waits for."""
        messages, link = self._messages, self.link
        while messages and (count := min(link.sendable, turn.messages, len(messages))) > 0 and not turn.is_spent:
            run = [messages.popleft() for _ in range(count)]
            payloads = [payload for _, payload in run]
            is_settled = link.sender_settle_mode != SenderSettleMode.UNSETTLED
            link.send_run([offset for offset, _ in run], payloads, is_settled)
            turn.spend(count, sum(map(len, payloads)))
        is_behind = self._next < self.peer.gateway.engine.durable_end
        if not messages and is_behind and link.credit and self._job is None:
            self._read_on()
        link.end_drain(has_more=bool(messages) or is_behind)
        if messages:
            link.session.await_room()
            return Wait.TURN if link.sendable else Wait.PEER
        return Wait.PEER if is_behind else Wait.EVENTS

    def answered(self, value: int | _Piece) -> None:
        """Accept the result of a job: the offset to begin at, or a piece of the log."""
        if isinstance(value, int):
            self.begin(value)
            return
        self._job = None
        messages, self._next = value
        self._messages.extend(messages)

    def disposed(self, event: Disposed) -> None:
        """Settle the deliveries that the peer has not settled."""
        settle_browsed(self.link, event)

    def close(self) -> None:
        """Cancel the job and drop the messages that are not sent."""
        self.is_open = False
        self._messages.clear()
        if self._job is not None:
            self.peer.gateway.sources.drop(self._job)
            self._job = None

    def _read_on(self) -> None:
        engine = self.peer.gateway.engine
        replay = engine.replay(self._next)
        names = _Names(self._names, engine.state)

        def read(job: BackgroundJob) -> _Piece:
            events, following = replay.read(events_max=_EVENTS_MAX, bytes_max=_BYTES_MAX)
            messages = []
            for event in events:
                messages.append((event.offset, names.message_of(event)))
                job.rest()
            return messages, following

        self._job = self.peer.gateway.sources.read(self, read)


@final
class _Names:
    """The names of queues: as declared by earlier events of the link, or as they are in the present state."""

    def __init__(self, declared: dict[int, str], state: State) -> None:
        self._declared = declared
        self._state = state

    def message_of(self, event: Event) -> bytes:
        """Return the message of an event, and note the name that it declares."""
        if type(event) is QueueDeclared:
            self._declared[event.offset] = event.name
        payload = message_of(event, self._name)
        if type(event) is QueueDeleted:
            self._declared.pop(event.queue, None)
        elif type(event) is Reset:
            self._declared.clear()
        return payload

    def _name(self, queue: int) -> str | None:
        name = self._declared.get(queue)
        if name is None:
            present = self._state.queues.get(queue)
            name = None if present is None else present.name
        return name


def message_of(event: Event, name: Callable[[int], str | None]) -> bytes:
    """Return the message of an event: its id is the offset, its subject the type, its body the facts."""
    kind, facts = type_of(event), facts_of(event, name)
    properties: dict[str, Any] = {"type": kind, "offset": ULong(event.offset), "timestamp": event.time_us}
    properties["next"] = ULong(next_after(event))
    properties |= {key: facts[key] for key in _HEADLINE_FACTS if key in facts}
    if "queues" in facts and len(facts["queues"]) == 1:
        properties["queue"] = facts["queues"][0]
    message = Message(
        properties=Properties(message_id=ULong(event.offset), subject=kind, creation_time=event.time_us // _US_PER_MS),
        application_properties=properties,
        body=(AmqpValue(facts),),
    )
    return message.encode()
