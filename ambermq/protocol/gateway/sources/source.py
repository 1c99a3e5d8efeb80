"""A link that takes nothing, such as a browser, and what it needs of its connection and of the gateway.

Rule 1: a source knows no more of its connection than this, so both gateways lie above the sources' room.
Rule 2: the protocols are for the type checker alone: attributes are read as they stand, and no call is added.
"""

from collections.abc import Callable
from typing import Any, Protocol

from ambermq.engine.history.background_jobs import BackgroundJob
from ambermq.engine.history.background_queries import BackgroundQueries
from ambermq.protocol.amqp10.events import Disposed
from ambermq.protocol.amqp10.link.sender import Sender
from ambermq.protocol.amqp10.performatives.classes import Error
from ambermq.protocol.gateway.links.link_peer import LinkGateway, LinkPeer
from ambermq.protocol.gateway.sources.turn_budget import TurnBudget, Wait

__all__ = ["Source", "SourceGateway", "SourceJobs", "SourcePeer"]


class Source(Protocol):
    """A link that takes nothing, and what it shows."""

    peer: "SourcePeer"
    link: Sender
    is_open: bool

    @property
    def lasts_ms_max(self) -> int:
        """How long it may last; 0 for ever."""

    @property
    def past_bytes(self) -> int:
        """Bytes that it alone keeps of the past."""

    def serve(self, turn: TurnBudget) -> Wait:
        """Send what the turn and the link allow; returns what it waits for then."""

    def answered(self, value: Any) -> None:
        """Take the answer to what it has asked. Raises Refusal."""

    def disposed(self, event: Disposed) -> None:
        """Take the peer's outcome, which means nothing."""

    def close(self) -> None:
        """End; the link is gone or about to go."""


class SourceJobs(Protocol):
    """What a source has done beside the loop."""

    def check_past_room(self, needed_bytes: int) -> None:
        """Raise Refusal where a link would keep too much of the past."""

    def read(self, key: Source, run: Callable[[BackgroundJob], Any]) -> BackgroundJob:
        """Read the log beside the loop; the value is the link's answer."""

    def drop(self, job: BackgroundJob) -> None:
        """Cancel a job."""


class SourceGateway(LinkGateway, Protocol):
    """What sources need of the gateway of their virtual host."""

    @property
    def sources(self) -> SourceJobs:
        """The sources of the virtual host."""

    @property
    def beside(self) -> BackgroundQueries:
        """Answers what would hold the loop up."""

    @property
    def may_read_log(self) -> Callable[[str | None], bool]:
        """Whether a user may read `/log`, by the user's name; None is a user without one."""

    @property
    def touched(self) -> dict[LinkPeer, None]:
        """Connections that may have output."""

    def blame(self, peer: LinkPeer | None, mistake: Exception) -> None:
        """End a connection for a mistake of ours."""


class SourcePeer(LinkPeer, Protocol):
    """What a source needs of the gateway's side of its connection."""

    is_paused: bool
    """So much output is unsent that no deliveries are wanted."""

    @property
    def gateway(self) -> SourceGateway:
        """The gateway of the virtual host that the connection belongs to."""

    def source_ended(self, source: Source, error: Error) -> None:
        """End a link that takes nothing."""
