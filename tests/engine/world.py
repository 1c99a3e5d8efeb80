"""The engine without a log: commands are decided, applied and dispatched by hand."""

from dataclasses import replace

from ambermq.engine.commands import AttachConsumer, AttachProducer, Command, Publish
from ambermq.engine.config import EngineConfig
from ambermq.engine.decide.context import DecisionContext
from ambermq.engine.decide.decide import decide, started
from ambermq.engine.dispatch.demand import Demand, Want
from ambermq.engine.dispatch.dispatch import dispatch, peek_nothing
from ambermq.engine.dispatch.selector_scan import Peek
from ambermq.engine.effects import ConsumerReady, Deliver, Effect, ProducerReady, Unfinished
from ambermq.engine.entries.entry_word import WORD_BYTES, pack_words
from ambermq.engine.entries.outcome import Outcome
from ambermq.engine.events import Event, Moved, Published, Settled
from ambermq.engine.fold.apply import apply
from ambermq.engine.model.queue import Queue
from ambermq.engine.model.state import EMPTY_STATE
from ambermq.engine.model.vhost_mode import VhostMode
from ambermq.engine.routing.router import WIRING, FieldsOf, Router, no_fields

__all__ = ["World", "record_count"]


def record_count(event: Event) -> int:
    """Return how many records an event is."""
    return len(event.words) // WORD_BYTES if isinstance(event, Published | Moved) else 1


class World:
    """A virtual host that was just started."""

    def __init__(
        self,
        config: EngineConfig | None = None,
        fields_of: FieldsOf = no_fields,
        mode: VhostMode = VhostMode.AUTOMATIC,
    ) -> None:
        self.config = config or EngineConfig()
        self.router = Router(fields_of)
        self.state = EMPTY_STATE.with_fields(mode=mode)
        self.demand = Demand()
        self.events: list[Event] = []
        self.next_offset = 0
        self.now_us = 1_000
        self.room_bytes = 1 << 40
        self.batch_bytes_max = 4 << 20
        for event in started(self.state, self.context):
            self.happened(event)

    @property
    def context(self) -> DecisionContext:
        return DecisionContext(
            self.now_us, self.next_offset, self.room_bytes, self.config, self.router, self.batch_bytes_max
        )

    def happened(self, event: Event) -> None:
        assert event.offset == self.next_offset
        self.next_offset += record_count(event)
        self.events.append(event)
        self.demand.note_returns(event, self.state)
        self.state = apply(self.state, event)
        if isinstance(event, WIRING):
            self.router.apply_event(event, self.state)

    def do(self, command: Command) -> list[Effect]:
        """Decide and apply, part by part."""
        events, effects = decide(self.state, command, self.context)
        for event in events:
            self.happened(event)
            if hasattr(event, "queue"):
                self.demand.touch(event.queue)
        last = effects[-1] if effects else None
        return effects[:-1] + self.do(last.command) if type(last) is Unfinished else effects

    def producer(self, name: str = "q") -> int:
        """Attach a producer."""
        (ready,) = self.do(AttachProducer("key", name, "container", "link"))
        assert type(ready) is ProducerReady
        return ready.producer

    def consumer(self, name: str = "q", *, credit: int = 0, settled: bool = False) -> int:
        """Attach a consumer that takes turns."""
        (ready,) = self.do(AttachConsumer("key", name, "container", "link", settled))
        assert type(ready) is ConsumerReady
        self.demand.add(Want(ready.consumer, self.state.consumers[ready.consumer].queue, "link", settled))
        self.set_credit(ready.consumer, credit)
        return ready.consumer

    def set_credit(self, consumer: int, credit: int, *, draining: bool = False) -> None:
        """Grant a consumer credit for so many deliveries."""
        want = self.demand.wants[consumer]
        want.credit, want.draining = max(credit - want.held_count, 0), draining
        self.demand.touch(want.queue)

    def publish(self, producer: int, *sizes: int, durable: bool = True) -> list[Effect]:
        """Publish a run of messages with these sizes."""
        bodies = [bytes(size) for size in sizes]
        effects = self.do(Publish("link", producer, 0, bodies, [0] * len(bodies), sum(sizes), durable))
        for queue in self.state.queues:
            self.demand.touch(queue)
        return effects

    def settle(self, queue: int, consumer: int, words: list[int], outcome: Outcome) -> None:
        """Apply a consumer's outcome as a fact."""
        self.happened(Settled(self.next_offset, self.now_us, queue, consumer, outcome, pack_words(words)))
        self.demand.touch(queue)

    def deal(self, budget: int = 1000, bytes_max: int = 0, look: Peek = peek_nothing) -> list[Effect]:
        """Dispatch once."""
        bytes_max = bytes_max or self.config.dispatch_bytes_max
        config = replace(self.config, dispatch_messages_max=budget, dispatch_bytes_max=bytes_max)
        dealt = dispatch(self.state, self.demand, self.now_us, self.next_offset, config, look)
        before = self.state
        for event in dealt.events:
            self.happened(event)
        assert self.state == dealt.state or before is self.state
        return dealt.effects

    def dealt(self, budget: int = 1000, bytes_max: int = 0, look: Peek = peek_nothing) -> dict[int, list[int]]:
        """Dispatch once; return the words that each consumer got, all of which have left now."""
        words: dict[int, list[int]] = {}
        for effect in self.deal(budget, bytes_max, look):
            if type(effect) is Deliver:
                words.setdefault(effect.consumer, []).extend(effect.words)
                want = self.demand.wants[effect.consumer]
                want.held.remove(effect)
                want.held_count -= len(effect.words)
        return words

    def queue(self, name: str = "q") -> Queue:
        """Return a queue by its name."""
        queue = self.state.queue_named(name)
        assert queue is not None
        return queue
