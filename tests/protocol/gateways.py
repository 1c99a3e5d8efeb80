"""A gateway before an engine that is stepped by hand."""

from ambermq.engine.history.background_queries import BackgroundQueries
from ambermq.engine.loop.durable_loop import DurableLoop
from ambermq.log.storage.worker_threads import InlineWorkers
from ambermq.protocol.auth.rules import Accounts, RuleSet
from ambermq.protocol.gateway.gateway import Gateway
from ambermq.protocol.server_limits import ServerLimits
from tests.log.lives import DIRECTORY

__all__ = ["gateway_of"]


def gateway_of(
    loop: DurableLoop,
    *,
    limits: ServerLimits | None = None,
    directory: str = DIRECTORY,
    readers: tuple[str | None, ...] = (None,),
) -> Gateway:
    """Make a gateway; `readers` may read the log, what it asks about the past runs when answers are taken."""
    limits = limits or ServerLimits()
    beside = BackgroundQueries(
        InlineWorkers(),
        directory,
        loop.log.config,
        past_jobs_max=limits.past_jobs_max,
        past_waiting_max=limits.past_waiting_max,
    )
    gateway = Gateway(loop, limits, container_id="broker", queries=beside)
    if readers != (None,):
        names = frozenset(name for name in readers if name)
        gateway.access = RuleSet((), Accounts(log_readers=names, reads_log=None in readers))
    return gateway
