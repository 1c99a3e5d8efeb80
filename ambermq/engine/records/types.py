"""The types of log records by number, and their flags. They are on disk: none ever changes meaning, or is used twice.

records.py draws what each of them holds.
"""

from typing import Final

__all__ = [
    "ACQUIRED",
    "ATTACHED",
    "CHUNKED",
    "COMPACTED",
    "CONSUMER_ATTACHED",
    "CONSUMER_DETACHED",
    "DAMAGED",
    "DETACHED",
    "DRAWN",
    "DURABLE",
    "FANOUT",
    "LARGE",
    "LOST",
    "MUXER_DECLARED",
    "MUXER_DELETED",
    "MUXER_UPDATED",
    "PRODUCER_ATTACHED",
    "PRODUCER_DETACHED",
    "PUBLISHED",
    "PURGED",
    "QUEUE_DECLARED",
    "QUEUE_DELETED",
    "QUEUE_UPDATED",
    "RESET",
    "SETTLED",
    "SKIPPABLE",
    "STARTED",
    "SUBSCRIBED",
    "TYPE_NAMES",
]

STARTED: Final = 1
QUEUE_DECLARED: Final = 2
QUEUE_DELETED: Final = 3
MUXER_DECLARED: Final = 4
ATTACHED: Final = 5
DETACHED: Final = 6
PRODUCER_ATTACHED: Final = 7
PRODUCER_DETACHED: Final = 8
CONSUMER_ATTACHED: Final = 9
CONSUMER_DETACHED: Final = 10
CHUNKED: Final = 11
PUBLISHED: Final = 12
ACQUIRED: Final = 13
SETTLED: Final = 14
PURGED: Final = 15
DAMAGED: Final = 16
LOST: Final = 17
RESET: Final = 18
COMPACTED: Final = 19
MUXER_DELETED: Final = 20
DRAWN: Final = 21
SUBSCRIBED: Final = 22
QUEUE_UPDATED: Final = 23
MUXER_UPDATED: Final = 24

DURABLE: Final = 1
"""Of a published message: its sender asked for it to be kept."""
LARGE: Final = 2
"""Of a published message: it stands in chunks."""
FANOUT: Final = 4
"""Of a published message: its queues stand in the meta."""
SKIPPABLE: Final = 128
"""Of any record: who does not know its type may pass it by."""

TYPE_NAMES: Final = {
    STARTED: "started",
    QUEUE_DECLARED: "queue-declared",
    QUEUE_DELETED: "queue-deleted",
    MUXER_DECLARED: "muxer-declared",
    ATTACHED: "attached",
    DETACHED: "detached",
    PRODUCER_ATTACHED: "producer-attached",
    PRODUCER_DETACHED: "producer-detached",
    CONSUMER_ATTACHED: "consumer-attached",
    CONSUMER_DETACHED: "consumer-detached",
    CHUNKED: "chunk",
    PUBLISHED: "published",
    ACQUIRED: "acquired",
    SETTLED: "settled",
    PURGED: "purged",
    DAMAGED: "damaged",
    LOST: "lost",
    RESET: "reset",
    COMPACTED: "compacted",
    MUXER_DELETED: "muxer-deleted",
    DRAWN: "drawn",
    SUBSCRIBED: "subscribed",
    QUEUE_UPDATED: "queue-updated",
    MUXER_UPDATED: "muxer-updated",
}
"""As people read them."""
