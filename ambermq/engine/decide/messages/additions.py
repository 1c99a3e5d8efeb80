"""The events behind that of messages: time to live, group, due time, priority, keys, ids, and the kept delivery-tag."""

from collections.abc import Iterator, Sequence
from typing import Final

from ambermq.engine.commands import EXPIRED, Identities, Publish
from ambermq.engine.decide.messages.last_values import NO_KEYS, Keys, key_events
from ambermq.engine.entries.entry_word import WORD_BYTES, pack_words, unpack_words
from ambermq.engine.entries.id_digest import DIGEST_BYTES
from ambermq.engine.entries.priority import PRIORITY_DEFAULT
from ambermq.engine.events import Event, Grouped, Identified, Prioritized, Published, Scheduled, TagsKept, Timed
from ambermq.engine.settings.queue_settings import DURATION_MS_MAX

__all__ = ["additions_of", "due_us_of", "ttl_ms_until"]

_IDS_MAX: Final = 256
"""The maximum of ids in one event, which is in one batch with the event of the messages."""


def additions_of(command: Publish, event: Published, arrived_us: int, offset: int, keys: Keys = NO_KEYS) -> list[Event]:
    """Return the events behind that of messages, from an offset on; both times count from their arrival.

    `keys` are those of these messages. Their event is the last one, because a scheduled message replaces none.
    """
    events: list[Event] = []
    if command.ttl_ms or command.expires_ms:
        events.append(_timed(command, event, arrived_us, offset))
    if command.groups:
        # All of one group, the frequent case, have one code.
        codes = command.groups if len(set(command.groups)) > 1 else command.groups[:1]
        place, count = offset + len(events), len(event.words) // WORD_BYTES
        events.append(Grouped(place, event.time_us, event.queues, event.offset, count, pack_words(codes)))
    if command.times_ms:
        events += _scheduled_each(command.times_ms, event, offset + len(events))
    elif due_us := due_us_of(command, event.time_us, arrived_us):
        events.append(Scheduled(offset + len(events), event.time_us, event.queues, due_us, event.words))
    if command.priority != PRIORITY_DEFAULT:
        place, count = offset + len(events), len(event.words) // WORD_BYTES
        events.append(Prioritized(place, event.time_us, event.queues, event.offset, count, command.priority))
    if command.identities is not None:
        events += _identified(command.identities, event, offset + len(events))
    if keys:
        events += key_events(keys, event.offset, offset + len(events), event.time_us)
    if command.tag:
        events.append(TagsKept(offset + len(events), event.time_us, command.producer, (command.tag,)))
    return events


def due_us_of(command: Publish, now_us: int, arrived_us: int) -> int:
    """Return when the first of messages is available; 0 for at once. A time has precedence over a delay."""
    time_ms = command.times_ms[0] if command.times_ms else command.time_ms
    due_us = 1000 * time_ms if time_ms else arrived_us + 1000 * command.delay_ms
    return min(due_us, now_us + 1000 * DURATION_MS_MAX) if due_us > now_us else 0


def _timed(command: Publish, event: Published, arrived_us: int, offset: int) -> Timed:
    """Return the event of messages that expire by their own time to live."""
    lives_ms = command.lives_ms or (command.ttl_ms or command.expires_ms,)
    ttls_ms = lives_ms if command.ttl_ms else [ttl_ms_until(one, arrived_us) for one in lives_ms]
    passed_ms = (event.time_us - arrived_us) // 1000
    # One that has expired when it arrives is never offered.
    left_ms = [0 if ttl_ms == EXPIRED else max(1, ttl_ms - passed_ms) for ttl_ms in ttls_ms]
    first_ms, count = min(left_ms), len(event.words) // WORD_BYTES
    each = pack_words(left_ms) if max(left_ms) > first_ms else b""
    return Timed(offset, event.time_us, event.queues, event.offset, count, first_ms, each)


def _identified(ids: Identities, event: Published, offset: int) -> Iterator[Identified]:
    queues = tuple([queue for queue in event.queues if queue in ids.queues])
    for start in range(0, len(event.words) // WORD_BYTES, _IDS_MAX):
        words = event.words[start * WORD_BYTES : (start + _IDS_MAX) * WORD_BYTES]
        digests = ids.digests[start * DIGEST_BYTES : (start + _IDS_MAX) * DIGEST_BYTES]
        yield Identified(offset, event.time_us, queues, ids.ids_max, words, digests)
        offset += 1


def _scheduled_each(times_ms: Sequence[int], event: Published, offset: int) -> Iterator[Scheduled]:
    """Yield the event of those messages whose own times are later than now, if there are any."""
    now_us = event.time_us
    last_us = now_us + 1000 * DURATION_MS_MAX
    dues, words = [min(1000 * one, last_us) for one in times_ms], event.words
    if min(dues) <= now_us:
        later = [index for index, due_us in enumerate(dues) if due_us > now_us]
        known, dues = unpack_words(words), [dues[index] for index in later]
        words = pack_words([known[index] for index in later])
    if dues:
        first_us = min(dues)
        each = pack_words(dues) if max(dues) > first_us else b""
        yield Scheduled(offset, now_us, event.queues, first_us, words, each)


def ttl_ms_until(expires_ms: int, now_us: int) -> int:
    """Return the time to live of messages that expire at a time of the clock, rounded up; EXPIRED if it has passed."""
    left_ms = -(-(1000 * expires_ms - now_us) // 1000)
    return min(left_ms, DURATION_MS_MAX) if left_ms > 0 else EXPIRED
