"""The objects of a state that a reset or the fan-out to very many queues has replaced, freed in parts.

The last reference to a state with 1,000,000 queues frees all of them at once, in 900 ms. So this object keeps its
tables, and removes a limited number of their entries in each call.
"""

from itertools import islice
from typing import Any, Final, final

from ambermq.engine.model.state import State
from ambermq.snapshot.persistent_map import PersistentMap

__all__ = ["DiscardedState"]

_PART_MAX: Final = 2000
"""The entries that one call frees; each takes up to 2 us."""


@final
class DiscardedState:
    """The tables of discarded states."""

    __slots__ = ("tables",)

    def __init__(self) -> None:
        self.tables: list[PersistentMap[Any, Any]] = []
        """The tables that are left."""

    def add(self, state: State) -> None:
        """Add the tables of a state that may be large; a small table is freed with the state."""
        tables: list[PersistentMap[Any, Any]] = [
            *(state.queues, state.queue_names, state.consumers, state.producers, state.links, state.receivers),
            *(state.muxers, state.muxer_names, state.subscriptions, state.subscription_queues),
        ]
        for table in tables:
            self.add_table(table)
        # The routes of the queues are attachments of one muxer.
        muxers = islice(state.muxers.values(), _PART_MAX)
        self.tables += [muxer.attachments for muxer in muxers if len(muxer.attachments) > _PART_MAX]

    def add_table(self, table: PersistentMap[Any, Any]) -> None:
        """Add a table that may be large."""
        if len(table) > _PART_MAX:
            self.tables.append(table)

    def free(self) -> None:
        """Free the next part."""
        table = self.tables.pop()
        keys = list(islice(table, _PART_MAX))
        mutation = table.mutate()
        for key in keys:
            del mutation[key]
        table = mutation.finish()
        if table:
            self.tables.append(table)
