"""The overflow policy `block`: a full queue takes what its producers send on the credit that they have.

It is for links whose target is the queue by its own address, since only those wait for credit on its account. For
others, also those to `/muxers/QUEUE/NAME`, and in a transaction the policy acts as `reject`.
"""

from ambermq.engine.commands import Publish
from ambermq.engine.model.muxer import QUEUE_MUXER
from ambermq.engine.model.queue import Queue
from ambermq.engine.model.state import State
from ambermq.engine.settings.queue_settings import BLOCK

__all__ = ["holds_back"]


def holds_back(state: State, command: Publish, queue: Queue) -> bool:
    """Return whether a queue holds the producer of a run back by its credit, and takes what comes."""
    if queue.settings.overflow != BLOCK or command.transaction is not None:
        return False
    producer = state.producers.get(command.producer)
    return (
        producer is not None
        and not (producer.sending.is_addressed or producer.sending.is_routed)
        and producer.destination == queue.name
        and producer.muxer == state.muxer_names.get(QUEUE_MUXER)
        and state.queue_names.get(queue.name) == queue.id
    )
