"""The events behind that of messages: time to live, due time, priority, and the kept delivery-tag."""

from ambermq.engine.commands import Publish
from ambermq.engine.entries.entry_word import WORD_BYTES
from ambermq.engine.entries.priority import PRIORITY_DEFAULT
from ambermq.engine.events import Event, Prioritized, Published, Scheduled, TagsKept, Timed
from ambermq.engine.settings.queue_settings import DURATION_MS_MAX

__all__ = ["additions_of", "due_us_of"]


def additions_of(command: Publish, event: Published, arrived_us: int, offset: int) -> list[Event]:
    """Return the events behind that of messages, from an offset on; both times count from their arrival."""
    events: list[Event] = []
    if command.ttl_ms:
        count = len(event.words) // WORD_BYTES
        left_ms = max(1, command.ttl_ms - (event.time_us - arrived_us) // 1000)
        events.append(Timed(offset, event.time_us, event.queues, event.offset, count, left_ms))
    if due_us := due_us_of(command, event.time_us, arrived_us):
        events.append(Scheduled(offset + len(events), event.time_us, event.queues, due_us, event.words))
    if command.priority != PRIORITY_DEFAULT:
        place, count = offset + len(events), len(event.words) // WORD_BYTES
        events.append(Prioritized(place, event.time_us, event.queues, event.offset, count, command.priority))
    if command.tag:
        events.append(TagsKept(offset + len(events), event.time_us, command.producer, (command.tag,)))
    return events


def due_us_of(command: Publish, now_us: int, arrived_us: int) -> int:
    """Return when messages are available; 0 for at once. A time has precedence over a delay."""
    due_us = 1000 * command.time_ms if command.time_ms else arrived_us + 1000 * command.delay_ms
    return min(due_us, now_us + 1000 * DURATION_MS_MAX) if due_us > now_us else 0
