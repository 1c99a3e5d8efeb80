"""The source `/log`: the events themselves, one message an event, from a moment on and then as they become durable.

Rule 1. Nothing is told before it is durable.
Rule 2. Events are read again from the log's files and written as messages beside the loop, a piece at a time, and the
        next piece when this one is sent: a slow peer costs a piece of memory, one that never gave credit none.
Rule 3. Events tell facts, not messages: what was published is read by browsing the queue (docs/log-source.md).
Rule 4. A drain is answered when all that is durable is sent.
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
from ambermq.protocol.gateway.links.attach_terms import ConsumingTerms
from ambermq.protocol.gateway.sources.queue_browser import settle_browsed
from ambermq.protocol.gateway.sources.source import SourcePeer
from ambermq.protocol.gateway.sources.turn_budget import TurnBudget, Wait

__all__ = ["EventSource", "message_of"]

_EVENTS_MAX: Final = 500
"""Of one piece, but for the last batch's."""
_BYTES_MAX: Final = 256 << 10
"""Of the words of one piece's events, but for the last batch's."""
_US_PER_MS: Final = 1000
_COUNTED: Final = ("count", "bytes", "outcome", "queue")

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
        """The offset from which to read on; below 0 before anybody knows."""
        self._messages: deque[tuple[int, bytes]] = deque()
        self._names: dict[int, str] = {}
        """Names of queues that this link has told of; only jobs use them, one at a time."""
        self._job: BackgroundJob | None = None

    @property
    def lasts_ms_max(self) -> int:
        """It may last for ever: it keeps nothing of the past."""
        return 0

    @property
    def past_bytes(self) -> int:
        """Nothing."""
        return 0

    def ask_past(self, job: BackgroundJob) -> None:
        """Let a job look for the offset to begin at."""
        self._job = job

    def begin(self, offset: int) -> None:
        """Answer the attach: the first event is that at `offset`, or the next one behind it."""
        self._job = None
        self._next = offset
        self.link.accept(source=self.terms.source, target=self.terms.target)

    def serve(self, turn: TurnBudget) -> Wait:
        """Send what the turn and the link allow."""
        messages, link = self._messages, self.link
        while messages and (count := min(link.sendable, turn.messages, len(messages))) > 0 and not turn.is_over:
            run = [messages.popleft() for _ in range(count)]
            payloads = [payload for _, payload in run]
            is_settled = link.sender_settle_mode != SenderSettleMode.UNSETTLED
            link.send_run([offset for offset, _ in run], payloads, is_settled)
            turn.take(count, sum(map(len, payloads)))
        is_behind = self._next < self.peer.gateway.engine.durable_end
        if not messages and is_behind and link.credit and self._job is None:
            self._read_on()
        link.end_drain(has_more=bool(messages) or is_behind)
        if messages:
            link.session.await_room()
            return Wait.TURN if link.sendable else Wait.PEER
        return Wait.PEER if is_behind else Wait.EVENTS

    def answered(self, value: int | _Piece) -> None:
        """Take what a job has found: the offset to begin at, or a piece of the log."""
        if isinstance(value, int):
            self.begin(value)
            return
        self._job = None
        messages, self._next = value
        self._messages.extend(messages)

    def disposed(self, event: Disposed) -> None:
        """Settle what the peer has not settled itself."""
        settle_browsed(self.link, event)

    def close(self) -> None:
        """Read no more."""
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
            told = []
            for event in events:
                told.append((event.offset, names.tell(event)))
                job.rest()
            return told, following

        self._job = self.peer.gateway.sources.read(self, read)


@final
class _Names:
    """The names of queues: as told by the events that came before, or as they are now."""

    def __init__(self, heard: dict[int, str], state: State) -> None:
        self._heard = heard
        self._state = state

    def tell(self, event: Event) -> bytes:
        """Return an event's message, and remember what it names."""
        if type(event) is QueueDeclared:
            self._heard[event.offset] = event.name
        payload = message_of(event, self._name)
        if type(event) is QueueDeleted:
            self._heard.pop(event.queue, None)
        elif type(event) is Reset:
            self._heard.clear()
        return payload

    def _name(self, queue: int) -> str | None:
        name = self._heard.get(queue)
        if name is None:
            known = self._state.queues.get(queue)
            name = None if known is None else known.name
        return name


def message_of(event: Event, name: Callable[[int], str | None]) -> bytes:
    """Return the message that tells an event: its id is the offset, its subject the type, its body the facts."""
    kind, facts = type_of(event), facts_of(event, name)
    told: dict[str, Any] = {"type": kind, "offset": ULong(event.offset), "timestamp": event.time_us}
    told["next"] = ULong(next_after(event))
    told |= {key: facts[key] for key in _COUNTED if key in facts}
    if "queues" in facts and len(facts["queues"]) == 1:
        told["queue"] = facts["queues"][0]
    message = Message(
        properties=Properties(message_id=ULong(event.offset), subject=kind, creation_time=event.time_us // _US_PER_MS),
        application_properties=told,
        body=(AmqpValue(facts),),
    )
    return message.encode()
