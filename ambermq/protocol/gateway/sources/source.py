"""The source of a browsing link, which acquires no message, and what it needs of its connection and of the gateway.

Rule 1. A source uses nothing else of its connection. So this package does not import the gateways.
Rule 2. The protocols are for the type checker only: they add no call at run time.
"""

from collections.abc import Callable
from typing import Any, Protocol

from ambermq.engine.history.background_jobs import BackgroundJob
from ambermq.engine.history.background_queries import BackgroundQueries
from ambermq.protocol.amqp10.events import Disposed
from ambermq.protocol.amqp10.link.sender import Sender
from ambermq.protocol.amqp10.performatives.classes import Error
from ambermq.protocol.gateway.large.turn_budget import TurnBudget, Wait
from ambermq.protocol.gateway.links.attach_terms import ConsumingTerms
from ambermq.protocol.gateway.links.link_peer import LinkGateway, LinkPeer, StreamTurns

__all__ = ["Source", "SourceGateway", "SourceJobs", "SourcePeer"]


class Source(Protocol):
    """A browsing link, and what it sends."""

    peer: "SourcePeer"
    link: Sender
    terms: ConsumingTerms
    is_open: bool

    @property
    def duration_ms_max(self) -> int:
        """The bound of the link's duration; 0 for no bound."""

    @property
    def past_bytes(self) -> int:
        """Bytes that this source keeps of the past."""

    def serve(self, turn: TurnBudget) -> Wait:
        """Send as many messages as the turn and the link allow, and return what the link waits for."""

    def answered(self, value: Any) -> None:
        """Accept the result of its command or job. Raises Refusal."""

    def disposed(self, event: Disposed) -> None:
        """Settle the peer's outcomes, which have no effect."""

    def close(self) -> None:
        """Release everything: the link has ended or is ending."""


class SourceJobs(StreamTurns, Protocol):
    """The background jobs of sources."""

    def check_past_room(self, needed_bytes: int) -> None:
        """Raise Refusal if the sources would keep too many bytes of the past."""

    def read(self, key: Source, run: Callable[[BackgroundJob], Any]) -> BackgroundJob:
        """Start a job that reads the log; its result goes to the source `key`."""

    def wake(self, source: Source) -> None:
        """Add a source to those that are served next."""

    def forget(self, source: Source) -> None:
        """Remove a source whose link has ended."""

    def drop(self, job: BackgroundJob) -> None:
        """Cancel a job."""


class SourceGateway(LinkGateway, Protocol):
    """The gateway of a virtual host, as its sources use it."""

    @property
    def sources(self) -> SourceJobs:
        """The sources of the virtual host."""

    @property
    def queries(self) -> BackgroundQueries:
        """The background queries of the virtual host, which would block the loop."""

    @property
    def touched(self) -> dict[LinkPeer, None]:
        """Connections that may have output."""

    def blame(self, peer: LinkPeer | None, mistake: Exception) -> None:
        """End a connection because of an error of the broker."""


class SourcePeer(LinkPeer, Protocol):
    """A connection's gateway, as a source uses it."""

    is_paused: bool
    """Whether too much output is unsent for further deliveries."""

    @property
    def gateway(self) -> SourceGateway:
        """The gateway of the virtual host that the connection belongs to."""

    def source_ended(self, source: Source, error: Error) -> None:
        """End a browsing link with an error."""
