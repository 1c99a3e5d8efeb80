"""The spans of the messages of one virtual host: publish, deliver and settle.

    publish   from its command until the message is accepted, which for a durable one is after the sync
    deliver   when the delivery leaves the engine
    settle    when the outcome of the consumer arrives

Rule 1. A message has spans if its context is sampled and its trace is within the ratio: of a trace all spans, or none.
Rule 2. What is under way is bounded. A message above the bound counts as a dropped span.
Rule 3. No call raises: a defect in here costs a span, and no message.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple, final

from ambermq.engine.commands import Publish, Settle
from ambermq.engine.effects import CommandFailed, ConsumerEnded, Deliver, Effect, PublishDone
from ambermq.engine.entries.entry_word import unpack_words
from ambermq.engine.entries.outcome import OutcomeKind
from ambermq.engine.entries.stored_message import StoredMessage
from ambermq.protocol.amqp10.serial_number import MASK
from ambermq.protocol.amqp10.types.decode import Buffer
from ambermq.protocol.gateway.links.routing_fields import RoutingFields
from ambermq.protocol.telemetry.span import Span, SpanSink
from ambermq.protocol.telemetry.trace_context import TraceContext, message_head, trace_context

__all__ = ["MessageTracer"]

_ADDRESS_LENGTH_MAX: Final = 256
_TRACE_BITS: Final = 64


class _Traced(NamedTuple):
    """A message with spans."""

    context: TraceContext
    destination: str
    size: int
    start_ns: int


@final
class MessageTracer:
    """Makes the spans of one virtual host."""

    __slots__ = ("_delivered", "_publishing", "_queue_name", "_sink", "_threshold", "_under_way", "_vhost")

    def __init__(self, vhost: str, queue_name: Callable[[int], str], sink: SpanSink) -> None:
        """`queue_name` returns the name of a queue by its id."""
        self._vhost = vhost
        self._queue_name = queue_name
        self._sink = sink
        self._threshold = (sink.sample_percent << _TRACE_BITS) // 100
        self._publishing: dict[tuple[Any, int], _Traced] = {}
        """The messages that are not accepted yet, by link and delivery-id."""
        self._delivered: dict[int, dict[int, _Traced]] = {}
        """The unsettled deliveries, by consumer and word."""
        self._under_way = 0
        """Their number."""

    def published(self, command: Publish) -> None:
        """Note the messages of a command."""
        try:
            upload = command.upload
            for index, body in enumerate(command.bodies if upload is None else [upload.head]):
                traced = self._traced(body, command.link.terms.address)
                if traced is not None and self._has_room(len(self._publishing)):
                    self._publishing[command.link, (command.first_id + index) & MASK] = traced
        except Exception:  # noqa: BLE001 - rule 3
            self._sink.drop(1)

    def settled(self, command: Settle) -> None:
        """Make the spans of deliveries that a consumer settles."""
        held = self._delivered.get(command.consumer)
        if not held:
            return
        try:
            for word in unpack_words(command.words):
                traced = held.pop(word, None)
                if traced is not None:
                    self._under_way -= 1
                    self._add("settle", traced, self._sink.now_ns(), command.outcome.kind.name.lower())
        except Exception:  # noqa: BLE001 - rule 3
            self._sink.drop(1)

    def detached(self, consumer: int) -> None:
        """Forget the deliveries of a consumer."""
        self._under_way -= len(self._delivered.pop(consumer, ()))

    def observe(self, effects: Iterable[Effect]) -> None:
        """Make the spans of effects that leave."""
        for effect in effects:
            try:
                if type(effect) is Deliver:
                    self._deliver(effect)
                elif type(effect) is PublishDone:
                    if self._publishing:
                        self._done(effect.link, effect.first_id, effect.count, effect.kind)
                elif type(effect) is ConsumerEnded:
                    self.detached(effect.consumer)
                elif type(effect) is CommandFailed and type(effect.command) is Publish:
                    failed = effect.command
                    self._done(failed.link, failed.first_id, len(failed.bodies), OutcomeKind.REJECTED)
            except Exception:  # noqa: BLE001 - rule 3
                self._sink.drop(1)

    def _deliver(self, effect: Deliver) -> None:
        if effect.cancelled or not effect.link.is_open:
            return
        bodies: Sequence[Buffer | StoredMessage] = effect.bodies
        for word, body in zip(effect.words, bodies, strict=False):
            # The head of a stored message is read later, piece by piece.
            traced = None if isinstance(body, StoredMessage) else self._traced(body, "")
            if traced is None:
                continue
            traced = traced._replace(destination=self._queue_name(effect.queue))
            self._add("deliver", traced, traced.start_ns)
            if not effect.settled and self._has_room(self._under_way):
                held = self._delivered.setdefault(effect.consumer, {})
                self._under_way += word not in held
                held[word] = traced

    def _done(self, link: Any, first_id: int, count: int, kind: OutcomeKind) -> None:
        for index in range(count):
            traced = self._publishing.pop((link, (first_id + index) & MASK), None)
            if traced is not None and kind is OutcomeKind.ACCEPTED:
                self._add("publish", traced, traced.start_ns)

    def _traced(self, body: Buffer, address: str) -> _Traced | None:
        """Return a message with its context; None if it has no spans."""
        head = message_head(body)
        context = None if head is None else trace_context(head)
        if head is None or context is None or not context.is_sampled:
            return None
        if context.trace_id & ((1 << _TRACE_BITS) - 1) >= self._threshold:
            return None
        destination = (address or RoutingFields(head).to or "")[:_ADDRESS_LENGTH_MAX]
        return _Traced(context, destination, len(body), self._sink.now_ns())

    def _has_room(self, count: int) -> bool:
        """Return whether one more message may be under way; count a dropped span if not."""
        if count < self._sink.messages_max:
            return True
        self._sink.drop(1)
        return False

    def _add(self, operation: str, traced: _Traced, start_ns: int, outcome: str = "") -> None:
        span = Span(operation, traced.context, self._vhost, traced.destination, start_ns, traced.size, outcome)
        self._sink.add(span)
