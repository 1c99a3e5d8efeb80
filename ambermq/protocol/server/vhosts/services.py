"""What a virtual host is made of: its engine, its queries and its figures; the owner of the server provides them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import final

from ambermq.engine.history.background_queries import BackgroundQueries
from ambermq.engine.loop.durable_loop import DurableLoop

__all__ = ["CompactionActivity", "VhostServices"]


@final
@dataclass(slots=True)
class CompactionActivity:
    """The compactions that the broker runs by itself."""

    is_running: bool = False
    stage: str = ""
    """The stage of the running one; empty without one."""
    percent: int = 0
    """How much of that stage is done."""
    failed: int = 0
    """How many have failed since the start."""


@final
@dataclass(frozen=True, slots=True)
class VhostServices:
    """The engine of a virtual host and its queries; the owner closes them."""

    engine: DurableLoop
    """The engine, recovered and ready to serve."""
    queries: BackgroundQueries
    """Answers queries that would block the event loop."""
    figures: Mapping[str, Callable[[], object]] = field(default_factory=dict)
    """More figures of the management type `org.ambermq.broker`, by name."""
    compactions: CompactionActivity = field(default_factory=CompactionActivity)
    """The compactions that the broker runs by itself."""

    def close(self) -> None:
        """Wait for the queries, and close the log. Raises LogFailed."""
        self.queries.close()
        self.engine.log.close()
