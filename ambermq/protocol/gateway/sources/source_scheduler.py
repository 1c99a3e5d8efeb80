"""The scheduler of the sources of one virtual host: which browsing link is served next, and how much it may send.

Rule 1. A turn sends a bounded number of messages and bytes. A source that was served goes to the end of the queue.
Rule 2. A source is in at most one set: in `ready` while it may have something to send, in `_cold` while its bodies are
        read from the disk, in `_ended` while no later event is durable. It is in none until its peer gives credit.
Rule 3. The number of sources is bounded. Sources that keep a state of the past are bounded in duration and bytes. The
        backlog of queries of the past is bounded.
"""

from collections.abc import Callable
from typing import Any, Final, final

from ambermq.engine.address import queue_name
from ambermq.engine.commands import DetachConsumer
from ambermq.engine.errors import EngineError, Refused
from ambermq.engine.history.background_jobs import BackgroundJob
from ambermq.engine.history.past import PastError
from ambermq.protocol.amqp10.link.sender import Sender
from ambermq.protocol.amqp10.performatives.classes import Error
from ambermq.protocol.amqp10.spec import AmqpCondition
from ambermq.protocol.amqp10.types.values import Symbol
from ambermq.protocol.gateway.consumers.consumer_link import ConsumerLink
from ambermq.protocol.gateway.large.turn_budget import TurnBudget, Wait
from ambermq.protocol.gateway.links.attach_terms import LOG_ADDRESS, ConsumingTerms, Refusal
from ambermq.protocol.gateway.links.link_peer import Streaming
from ambermq.protocol.gateway.links.source_filters import At, AtOffset
from ambermq.protocol.gateway.sources.event_source import EventSource
from ambermq.protocol.gateway.sources.queue_browser import QueueBrowser
from ambermq.protocol.gateway.sources.queue_follower import QueueFollower
from ambermq.protocol.gateway.sources.source import Source, SourceGateway, SourcePeer

__all__ = ["SourceScheduler"]

_NEVER_MS: Final = 1 << 62


@final
class SourceScheduler:
    """The sources of one gateway."""

    def __init__(self, gateway: SourceGateway) -> None:
        self._gateway = gateway
        self.due_ms: dict[Source, int] = {}
        """All open sources, each with the time of its end; 0 until the first look at the clock."""
        self.ready: dict[Source | Streaming, None] = {}
        """The sources that may have something to send, and the consumers with a large message."""
        self._cold: dict[Source | Streaming, None] = {}
        self._ended: dict[Source | Streaming, None] = {}
        self._durable_end = 0

    def attach(self, peer: SourcePeer, link: Sender, terms: ConsumingTerms) -> Source:
        """Add the source that a peer attaches to; its attach is answered now or later. Raises Refusal."""
        limits = self._gateway.limits
        if len(self.due_ms) >= limits.sources_max:
            raise Refusal(
                AmqpCondition.RESOURCE_LIMIT_EXCEEDED,
                f"at most {limits.sources_max} links of a virtual host may browse (sources_max)",
            )
        source = self._follow(peer, link, terms) if terms.address == LOG_ADDRESS else self._browse(peer, link, terms)
        self.due_ms[source] = 0
        return source

    def follow_queue(self, consumer_link: ConsumerLink, queue: int) -> bool:
        """Serve the link of a non-destructive queue, which is attached; return False if it ends by a limit."""
        limits, peer = self._gateway.limits, consumer_link.peer
        if len(self.due_ms) >= limits.sources_max:
            why = f"at most {limits.sources_max} links of a virtual host may browse (sources_max)"
            error = Error(condition=Symbol(AmqpCondition.RESOURCE_LIMIT_EXCEEDED), description=why)
            self._gateway.engine.submit(DetachConsumer(consumer_link.consumer))
            peer.consumer_ended(consumer_link, error)
            return False
        follower = QueueFollower(consumer_link, queue)
        consumer_link.follower = follower
        self.due_ms[follower] = 0
        self.ready[follower] = None
        return True

    def _browse(self, peer: SourcePeer, link: Sender, terms: ConsumingTerms) -> Source:
        try:
            name = queue_name(terms.address, name_bytes_max=self._gateway.engine.config.name_bytes_max)
        except Refused as refused:
            raise Refusal(refused.condition, refused.description) from refused
        browser = QueueBrowser(peer, link, terms)
        if terms.at is None:
            browser.inspect_queue(name)
        else:
            job = self._gateway.queries.past.queue(browser, name, **self._moment(terms.at))
            if job is None:
                browser.close()
            browser.await_job(self._accepted(job))
        return browser

    def _follow(self, peer: SourcePeer, link: Sender, terms: ConsumingTerms) -> Source:
        source = EventSource(peer, link, terms)
        if terms.at is None:
            source.begin(self._gateway.engine.durable_end)
        else:
            source.await_job(self._accepted(self._gateway.queries.past.log_start(source, **self._moment(terms.at))))
        return source

    def _moment(self, at: At) -> dict[str, Any]:
        offset, time_us = (at.offset, None) if isinstance(at, AtOffset) else (None, at.time_us)
        return {"offset": offset, "time_us": time_us, "durable_end": self._gateway.engine.durable_end}

    def _accepted(self, job: BackgroundJob | None) -> BackgroundJob:
        if job is None:
            raise Refusal(
                AmqpCondition.RESOURCE_LIMIT_EXCEEDED,
                f"{self._gateway.limits.past_waiting_max} queries of the past wait already (past_waiting_max)",
            )
        return job

    def check_past_room(self, needed_bytes: int) -> None:
        """Raise Refusal if the sources would keep too many bytes of the past; a single source has no such bound."""
        kept_bytes, limit = sum(source.past_bytes for source in self.due_ms), self._gateway.limits.past_bytes_max
        if kept_bytes and kept_bytes + needed_bytes > limit:
            raise Refusal(
                AmqpCondition.RESOURCE_LIMIT_EXCEEDED,
                f"this link would keep {needed_bytes} bytes of the past and others keep {kept_bytes}: at most {limit} "
                "are allowed (past_bytes_max)",
            )

    def read(self, key: Source, run: Callable[[BackgroundJob], Any]) -> BackgroundJob:
        """Start a job that reads the log; its result goes to the source `key`."""
        return self._gateway.queries.read(key, run)

    def drop(self, job: BackgroundJob) -> None:
        """Cancel a job."""
        self._gateway.queries.drop(job)

    def take_answers(self) -> None:
        """Hand the results of completed jobs to their sources."""
        for job in self._gateway.queries.completed():
            self.answer(job.key, job.value, job.error)

    def answer(self, source: Source, value: Any, error: Exception | None = None) -> None:
        """Hand a source the result of its command or job; an error ends the link."""
        if not source.is_open:
            return
        try:
            if error is not None:
                raise error  # noqa: TRY301 - the clauses below sort it together with errors of the source itself
            source.answered(value)
            self.ready[source] = None
        except Refusal as refusal:
            self._end(source, refusal.condition, refusal.description)
        except PastError as past:
            self._end(source, AmqpCondition.PRECONDITION_FAILED, str(past))
        except EngineError as unreadable:
            self._end(source, AmqpCondition.INTERNAL_ERROR, str(unreadable))
        except Exception as mistake:  # noqa: BLE001 - an error of the broker ends this connection only
            self._gateway.blame(source.peer, mistake)
        self._gateway.touched[source.peer] = None

    def _end(self, source: Source, condition: str, description: str) -> None:
        source.peer.source_ended(source, Error(condition=Symbol(condition), description=description))
        self._gateway.touched[source.peer] = None

    def wake(self, source: Source) -> None:
        """Add a source to the ready ones: it may have something to send now."""
        if source in self.due_ms:
            self._cold.pop(source, None)
            self._ended.pop(source, None)
            self.ready[source] = None

    def wake_stream(self, link: Streaming) -> None:
        """Schedule a turn of a link for its large message."""
        self._cold.pop(link, None)
        self.ready[link] = None

    @property
    def is_waiting(self) -> bool:
        """Whether `wake_waiters` may have work."""
        return bool(self.due_ms or self._cold)

    def wake_waiters(self) -> None:
        """Wake the sources that wait for a read or for durable events: the log has completed one of them."""
        # The sources that wait for bodies come first: the next completed read may evict their bodies from the cache.
        self.ready = self._cold | self.ready
        self._cold = {}
        durable_end = self._gateway.engine.durable_end
        if durable_end != self._durable_end:
            self._durable_end = durable_end
            self.ready |= self._ended
            self._ended = {}

    def serve(self) -> None:
        """Serve each ready source once, until the turn's budget is spent."""
        limits = self._gateway.limits
        turn = TurnBudget(limits.source_messages, limits.source_bytes)
        self._gateway.engine.matching.end_ns = None
        for _ in range(len(self.ready)):
            if turn.is_spent:
                return
            source = next(iter(self.ready))
            del self.ready[source]
            if source.is_open and source.link.is_live and not source.peer.is_paused:
                self._serve(source, turn)

    def _serve(self, source: Source | Streaming, turn: TurnBudget) -> None:
        try:
            wait = source.serve(turn)
        except Exception as mistake:  # noqa: BLE001 - an error of the broker ends this connection only
            self._gateway.blame(source.peer, mistake)
            return
        self._gateway.touched[source.peer] = None
        place = {Wait.TURN: self.ready, Wait.BODIES: self._cold, Wait.EVENTS: self._ended}.get(wait)
        if place is not None:
            place[source] = None

    def forget(self, source: Source) -> None:
        """Remove a source whose link has ended."""
        source.close()
        self.due_ms.pop(source, None)
        for place in (self.ready, self._cold, self._ended):
            place.pop(source, None)

    def end_expired(self, now_ms: int) -> None:
        """End the sources that have kept a state of the past for too long."""
        for source, due_ms in list(self.due_ms.items()):
            if not due_ms:
                self.due_ms[source] = now_ms + source.duration_ms_max if source.duration_ms_max else _NEVER_MS
            elif now_ms >= due_ms:
                description = f"this link has browsed for {source.duration_ms_max} ms (browse_ms_max): attach again"
                self._end(source, AmqpCondition.RESOURCE_LIMIT_EXCEEDED, description)
