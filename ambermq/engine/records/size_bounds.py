"""How large a record can be that nothing cuts, by the limits: the log's batches have to hold it.

Rule 1. Messages are not asked about here: a run is cut by what a batch holds (publishing.py), a large one by
        `chunk_bytes`.
Rule 2. Every other event is one record, and bounded by limits that have names. A command of many events goes on in
        another batch between two of them (`Draft.end_part`), so the largest alone counts.
Rule 3. Settlements that were joined are a quarter of a batch at most (gathered.py), which always fits.
"""

from typing import Final

from ambermq.engine.config import EngineConfig
from ambermq.engine.events.event_type import SizeBound
from ambermq.engine.events.json_meta import JSON_FACTOR
from ambermq.engine.events.registry import REGISTRY
from ambermq.engine.fold.lost_entries import RUN_WORDS_MAX
from ambermq.engine.model.entry_word import WORD_BYTES
from ambermq.engine.model.queue_template import QueueTemplate
from ambermq.log.format.record import RECORD

__all__ = ["largest_record"]

_KEYS_BYTES: Final = 256
"""More than what JSON has beside the texts of one thing or condition: keys, numbers, brackets."""


def largest_record(
    config: EngineConfig, *, deliveries_max: int, link_bytes_max: int, request_bytes_max: int, outcome_bytes_max: int
) -> int:
    """Return the bytes of the largest record that an event can be, meta included.

    `deliveries_max` are the deliveries of a link that are settled at a time, or go back with it; `link_bytes_max` is
    the text that names a link, its container and itself; `request_bytes_max` what asks for an attachment;
    `outcome_bytes_max` the JSON of what an outcome says.
    """
    templates = config.templates.ordered
    names = config.name_bytes_max + config.argument_bytes_max + link_bytes_max + max(map(_name_bytes, templates))
    arguments = max(request_bytes_max, *map(_argument_bytes, templates))
    deliveries = max(deliveries_max, config.dispatch_messages_max, RUN_WORDS_MAX)
    bounds = {
        SizeBound.FIXED: 0,
        # Each message for a consumer of its own, which is named too.
        SizeBound.DEALT: 2 * WORD_BYTES * config.dispatch_messages_max,
        SizeBound.SETTLED: WORD_BYTES * deliveries + outcome_bytes_max,
        SizeBound.NAMES: JSON_FACTOR * names,
        SizeBound.CONDITIONS: JSON_FACTOR * arguments + _KEYS_BYTES * config.conditions_max,
    }
    return RECORD.size + _KEYS_BYTES + max(bounds[one.bound] for one in REGISTRY)


def _name_bytes(template: QueueTemplate) -> int:
    return len(template.name.encode())


def _argument_bytes(template: QueueTemplate) -> int:
    """Return the bytes of the longest argument that a template attaches by."""
    return max((len(repr(one.argument).encode()) for one in template.attach), default=0)
