"""The laws of one queue in a mix of settings: its limits, its keys, and the consumers that wait."""

from collections import Counter
from collections.abc import Mapping

from ambermq.engine.loop.durable_loop import DurableLoop
from ambermq.engine.model.queue import Queue
from ambermq.engine.settings.queue_settings import BLOCK
from tests.model.laws.ledger import Ledger

__all__ = ["check_keys", "check_limits", "check_served"]


def check_limits(queue: Queue, ledger: Ledger) -> None:
    """No publish brings a queue above its maxima."""
    settings = queue.settings
    is_above = bool(settings.messages_max) and queue.waiting > settings.messages_max
    is_above = is_above or (bool(settings.bytes_max) and queue.waiting_size > settings.bytes_max)
    if not is_above:
        ledger.restless.discard(queue.id)
    elif queue.id in ledger.published and settings.overflow != BLOCK:
        assert queue.id in ledger.restless, "a queue is above its maximum"


def check_keys(queue: Queue, bodies: Mapping[int, bytes], ledger: Ledger) -> None:
    """One message of each key waits; `bodies` are the messages by their offsets."""
    waiting = [word for words in queue.available_lists for word in words]
    numbers = [int(bodies[ledger.origins[word >> 16]][:8]) for word in waiting]
    keys = Counter(number % 4 for number in numbers if number % 4)
    assert all(count == 1 for count in keys.values()), "two messages of one key wait"


def check_served(queue: Queue, loop: DurableLoop) -> None:
    """No consumer with credit waits for a message that it could have."""
    for want in loop.demand.rings.get(queue.id, ()):
        if want.credit > 0:
            words = [word for each in queue.available_lists for word in each]
            excluded = [queue.entries[word >> 16].excluded for word in words if word >> 16 in queue.entries]
            assert len(excluded) == len(words)
            assert all(want.consumer in each for each in excluded), "a consumer with credit waits"
