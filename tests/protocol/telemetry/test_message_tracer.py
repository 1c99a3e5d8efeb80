"""The spans that commands and effects make, without a broker: which messages have some, and what bounds them."""

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ambermq.engine.commands import Publish, Settle
from ambermq.engine.effects import CommandFailed, ConsumerEnded, Deliver, PublishDone
from ambermq.engine.entries.entry_word import pack_words
from ambermq.engine.entries.outcome import ACCEPTED, REJECTED, OutcomeKind
from ambermq.protocol.amqp10.message.message import Message
from ambermq.protocol.telemetry.message_tracer import MessageTracer
from ambermq.protocol.telemetry.span import Span

_SAMPLED = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
_WORD = 7 << 16 | 3
_QUEUE = 2


class Sink:
    """It keeps what it gets."""

    def __init__(self, messages_max: int = 100, sample_percent: int = 100) -> None:
        self.messages_max, self.sample_percent = messages_max, sample_percent
        self.spans: list[Span] = []
        self.dropped = 0

    def now_ns(self) -> int:
        return 5

    def add(self, span: Span) -> None:
        self.spans.append(span)

    def drop(self, count: int) -> None:
        self.dropped += count

    @property
    def operations(self) -> list[str]:
        """The operations of the spans, in order."""
        return [span.operation for span in self.spans]


class Link:
    """An open link to the address of a queue."""

    def __init__(self) -> None:
        self.terms, self.is_open = SimpleNamespace(address="orders"), True


def tracer(sink: Sink) -> MessageTracer:
    """Return a tracer whose queues have one name."""
    return MessageTracer("default", lambda _queue: "orders", sink)


def body(parent: object = _SAMPLED) -> bytes:
    """Return a message with a trace context."""
    return Message(application_properties={"traceparent": parent}).encode()


def publish(sender: Any, *bodies: bytes, first_id: int = 0) -> Publish:
    """Return the command of a run of messages."""
    return Publish(sender, 1, first_id, list(bodies), [0] * len(bodies), sum(map(len, bodies)))


def deliver(*bodies: bytes, receiver: Any = None, settled: bool = False, words: tuple[int, ...] = (_WORD,)) -> Deliver:
    """Return a delivery to consumer 9."""
    return Deliver(9, receiver or Link(), _QUEUE, words, None, settled, bodies=bodies)


def done(sender: Any, kind: OutcomeKind = OutcomeKind.ACCEPTED, *, first_id: int = 0, count: int = 1) -> PublishDone:
    """Return the outcome of messages."""
    return PublishDone(sender, first_id, count, kind, False)


def settle(outcome: Any = ACCEPTED, word: int = _WORD) -> Settle:
    """Return the outcome of consumer 9."""
    return Settle(9, pack_words([word]), outcome)


def test_a_message_has_a_span_for_each_of_its_steps() -> None:
    """The span of a publish ends with its acceptance, that of a settle names the outcome."""
    sink, sender = Sink(), Link()
    traced = tracer(sink)
    traced.published(publish(sender, body()))
    assert not sink.spans
    traced.observe([done(sender), deliver(body())])
    traced.settled(settle(REJECTED))
    assert sink.operations == ["publish", "deliver", "settle"]
    assert {(span.vhost, span.destination) for span in sink.spans} == {("default", "orders")}
    assert [span.outcome for span in sink.spans] == ["", "", "rejected"]
    assert sink.dropped == 0


@pytest.mark.parametrize(
    "parent",
    [
        _SAMPLED[:-1] + "0",
        "00-" + "0" * 32 + "-00f067aa0ba902b7-01",
        _SAMPLED.replace("4b", "4B"),
        _SAMPLED + "-more",
        "00-" + "f" * 1_000_000,
        "\x00\n",
        7,
        None,
        True,
    ],
)
def test_a_message_without_a_valid_sampled_context_has_no_spans(parent: object) -> None:
    """Unsampled, malformed, too long, or no text at all."""
    sink, sender = Sink(), Link()
    traced = tracer(sink)
    traced.published(publish(sender, body(parent)))
    traced.observe([done(sender), deliver(body(parent))])
    traced.settled(settle())
    assert (sink.spans, sink.dropped) == ([], 0)


@pytest.mark.parametrize("kind", [OutcomeKind.REJECTED, OutcomeKind.RELEASED])
def test_a_message_that_is_not_accepted_has_no_span(kind: OutcomeKind) -> None:
    """And is forgotten: a later message with its delivery-id is another one."""
    sink, sender = Sink(messages_max=1), Link()
    traced = tracer(sink)
    traced.published(publish(sender, body()))
    traced.observe([done(sender, kind), done(sender)])
    assert not sink.spans
    traced.published(publish(sender, body()))
    traced.observe([CommandFailed(publish(sender, body()), ValueError())])
    traced.published(publish(sender, body()))
    traced.observe([done(sender)])
    assert (sink.operations, sink.dropped) == (["publish"], 0)


def test_delivery_ids_begin_again_after_the_highest() -> None:
    """They are serial numbers of 32 bits."""
    sink, sender = Sink(), Link()
    traced = tracer(sink)
    traced.published(publish(sender, body(), body(), first_id=(1 << 32) - 1))
    traced.observe([done(sender, first_id=(1 << 32) - 1, count=2)])
    assert sink.operations == ["publish", "publish"]


def test_a_settle_without_a_delivery_makes_no_span() -> None:
    """Nor does a second one, nor one after the end of the consumer."""
    sink = Sink()
    traced = tracer(sink)
    traced.settled(settle())
    traced.observe([deliver(body())])
    traced.settled(settle(word=_WORD + 1))
    traced.settled(settle())
    traced.settled(settle())
    traced.observe([deliver(body()), ConsumerEnded(9, "", "")])
    traced.settled(settle())
    assert sink.operations == ["deliver", "settle", "deliver"]


def test_no_span_of_what_is_not_sent() -> None:
    """A cancelled delivery, and one to a link that is closed."""
    sink, closed, cancelled = Sink(), Link(), deliver(body())
    closed.is_open, cancelled.cancelled = False, True
    tracer(sink).observe([cancelled, deliver(body(), receiver=closed)])
    assert not sink.spans


def test_a_settled_delivery_is_not_held() -> None:
    """No outcome comes for it."""
    sink = Sink(messages_max=1)
    traced = tracer(sink)
    traced.observe([deliver(body(), settled=True) for _ in range(5)])
    assert (sink.operations, sink.dropped) == (["deliver"] * 5, 0)


def test_a_defect_costs_a_span_and_no_message() -> None:
    """No call raises."""
    sink = Sink()
    traced = MessageTracer("default", lambda _queue: 1 // 0, sink)
    traced.observe([deliver(body())])
    traced.published(publish(SimpleNamespace(), body()))
    assert (sink.spans, sink.dropped) == ([], 2)


@given(st.lists(st.sampled_from(("publish", "done", "deliver", "settle", "detach")), max_size=60), st.integers(1, 4))
def test_what_is_under_way_is_bounded_and_none_is_lost(steps: list[str], messages_max: int) -> None:
    """Each message has its span or counts as dropped, in every order of steps."""
    sink, sender = Sink(messages_max), Link()
    traced = tracer(sink)
    publishing: list[int] = []
    held: set[int] = set()
    dropped = settled = accepted = 0
    for number, step in enumerate(steps):
        if step == "publish":
            traced.published(publish(sender, body(), first_id=number))
            publishing += [number] * (len(publishing) < messages_max)
            dropped = sink.dropped
        elif step == "done" and publishing:
            traced.observe([done(sender, first_id=publishing.pop(0))])
            accepted += 1
        elif step == "deliver":
            traced.observe([deliver(body(), words=(number,))])
            if len(held) < messages_max:
                held.add(number)
            dropped = sink.dropped
        elif step == "settle" and held:
            traced.settled(settle(word=held.pop()))
            settled += 1
        elif step == "detach":
            traced.detached(9)
            held.clear()
        assert sink.operations.count("publish") == accepted
        assert sink.operations.count("settle") == settled
        assert sink.dropped == dropped
    known = sum(step in ("publish", "deliver") for step in steps)
    assert sink.dropped <= known
