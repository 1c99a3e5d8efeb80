"""The size of the largest record that cannot be cut, computed from the limits. A batch of the log must hold it.

Rule 1. Messages do not count: the size of a batch cuts a run, and `chunk_bytes` cuts a large message.
Rule 2. Every other event is one record, bounded by named limits. A command of many events continues in another batch
        between two of them (`Draft.end_part`), so only the largest counts.
Rule 3. Coalesced settlements are at most a quarter of a batch, which always fits.
"""

from typing import Final

from ambermq.engine.config import EngineConfig
from ambermq.engine.entries.entry_word import WORD_BYTES
from ambermq.engine.events.event_type import SizeBound
from ambermq.engine.events.json_meta import JSON_FACTOR
from ambermq.engine.events.registry import REGISTRY
from ambermq.engine.fold.data_loss import RUN_WORDS_MAX
from ambermq.engine.model.queue_template import QueueTemplate
from ambermq.log.format.record import RECORD

__all__ = ["largest_record"]

_KEYS_BYTES: Final = 256
"""An upper bound of the JSON around the texts of one object or condition: keys, numbers, brackets."""


def largest_record(
    config: EngineConfig, *, deliveries_max: int, link_bytes_max: int, request_bytes_max: int, outcome_bytes_max: int
) -> int:
    """Return the size in bytes of the largest record of an event, meta included.

    `deliveries_max`      deliveries of a link that one event settles or returns
    `link_bytes_max`      the names of a link and of its container
    `request_bytes_max`   a request for an attachment
    `outcome_bytes_max`   the JSON of an outcome
    """
    templates = config.templates.ordered
    # A subscription has the name of its topic and that of its owner; a link has that of its user.
    names = 2 * config.name_bytes_max + config.argument_bytes_max + link_bytes_max + max(map(_name_bytes, templates))
    arguments = max(request_bytes_max, *map(_argument_bytes, templates))
    deliveries = max(deliveries_max, config.dispatch_messages_max, RUN_WORDS_MAX)
    bounds = {
        SizeBound.FIXED: 0,
        # At worst each message goes to another consumer, and the record names that one too.
        SizeBound.DEALT: 2 * WORD_BYTES * config.dispatch_messages_max,
        SizeBound.SETTLED: WORD_BYTES * deliveries + outcome_bytes_max,
        SizeBound.NAMES: JSON_FACTOR * names,
        # The user is in the same record.
        SizeBound.CONDITIONS: JSON_FACTOR * (arguments + config.name_bytes_max) + _KEYS_BYTES * config.conditions_max,
    }
    return RECORD.size + _KEYS_BYTES + max(bounds[one.bound] for one in REGISTRY)


def _name_bytes(template: QueueTemplate) -> int:
    return len(template.name.encode())


def _argument_bytes(template: QueueTemplate) -> int:
    """Return the size in bytes of the longest argument in the attachments of a template."""
    return max((len(repr(one.argument).encode()) for one in template.attach), default=0)
