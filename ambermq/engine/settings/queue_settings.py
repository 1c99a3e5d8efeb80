"""The settings of a queue: one value, which events and snapshots hold.

Rule 1. A later setting is added with a default that switches it off, so older records stay readable.
Rule 2. Records leave out the defaults of all settings but the two that the first release wrote into every record.
"""

from types import MappingProxyType
from typing import Any, Final, final

from msgspec import Struct, field
from msgspec.structs import replace

__all__ = [
    "BLOCK",
    "COUNT_MAX",
    "DEAD_LETTER",
    "DROP_HEAD",
    "DURATION_MS_MAX",
    "NEW_QUEUES",
    "REJECT",
    "Settings",
    "new_settings",
]

COUNT_MAX: Final = (1 << 63) - 1
"""The highest count of messages or other things: the maximum of a long in AMQP and in the log."""

DURATION_MS_MAX: Final = 100 * 365 * 86_400_000
"""The longest duration of a setting: a hundred years."""

REJECT: Final = "reject"
"""The overflow policy that refuses a message."""
DROP_HEAD: Final = "drop-head"
"""The overflow policy that discards the oldest messages."""
DEAD_LETTER: Final = "dead-letter"
"""The overflow policy that moves the oldest messages to the dead-letter target."""
NEW_QUEUES: Final = MappingProxyType({"priorities": True, "groups": True})
"""The settings that new queues have, and that queues of older logs have not."""
BLOCK: Final = "block"
"""The overflow policy that gives producers of the queue no credit."""


@final
class Settings(Struct, frozen=True, omit_defaults=True):
    """The settings of a queue."""

    template: str = field(default_factory=lambda: "normal")
    """The name of the template that the queue was created from."""
    messages_max: int = field(default_factory=int)
    """The maximum length in messages; 0: the limit `queue_messages_max` of the engine."""
    bytes_max: int = 0
    """The maximum bytes of the messages that wait; 0: none."""
    message_bytes_max: int = 0
    """The largest message that it takes; 0: the limit of the broker."""
    overflow: str = REJECT
    """What happens to a message that would take the queue above a maximum."""
    delivery_count_max: int = 0
    """The failed deliveries after which the queue gives a message up; 0: no maximum."""
    dead_letter: str = ""
    """The address that gets the messages which the queue gives up; empty: none."""
    message_ttl_ms: int = 0
    """The time to live of messages that have none, and the longest of those that have one; 0: none."""
    redelivery_delay_ms: int = 0
    """The time after which a message is offered again whose delivery has failed; 0: at once."""
    redelivery_backoff: int = 0
    """The factor by which that time grows with each further failed delivery; 0: it does not grow."""
    redelivery_delay_ms_max: int = 0
    """The longest such time; 0: none."""
    exclusive: bool = False
    """Whether only one consumer at a time gets messages, the first that attached."""
    auto_delete: bool = False
    """Whether the queue ends with its last consumer."""
    expires_ms: int = 0
    """The time without use after which the queue ends; 0: none."""
    paused: bool = False
    """Whether nothing is delivered."""
    priorities: bool = False
    """Whether messages of a higher priority are delivered first."""
    last_value: str = ""
    """The field whose value is the key of a message: of each key only the newest message waits; empty: all wait."""
    non_destructive: bool = False
    """Whether each link gets all messages, and takes none."""
    dedup_window_ms: int = 0
    """The time after a message in which another one with its message-id is not stored; 0: none."""
    lock_ms: int = 0
    """The time after which a delivery that its consumer has not settled returns to the queue; 0: never."""
    groups: bool = False
    """Whether the messages of a group go to one consumer, in order."""
    group_rebalance: bool = False
    """Whether a new consumer unbinds the groups of which no message is out."""
    cut_through: bool = False
    """Whether the delivery of a large message may begin before its last piece has arrived."""
    durable: bool = True
    """Whether the queue and its messages last when the broker starts again."""

    @property
    def for_first_release(self) -> "Settings":
        """Return those of these settings that the first release knows, or may ignore."""
        return Settings(
            self.template,
            self.messages_max,
            priorities=self.priorities,
            groups=self.groups,
            group_rebalance=self.group_rebalance,
        )

    @property
    def is_first_release(self) -> bool:
        """Return whether the first release knows all of these settings, or may ignore them."""
        return self == self.for_first_release

    @property
    def makes_room(self) -> bool:
        """Return whether the oldest messages make room for a message that would pass a maximum."""
        return self.overflow == DROP_HEAD or (self.overflow == DEAD_LETTER and bool(self.dead_letter))

    def is_as_asked(self, asked: "Settings") -> bool:
        """Return whether a queue with these settings is one that is declared with others.

        A queue of an older log is, although it has not the settings that new queues have.
        """
        missing: dict[str, int | str | bool] = {name: False for name in NEW_QUEUES if not getattr(self, name)}
        return self == asked.with_values(missing)

    def redelivery_after_ms(self, count: int) -> int:
        """Return how long a message waits after so many failed deliveries. Part of the fold: it never changes."""
        delay_ms, longest_ms = self.redelivery_delay_ms, self.redelivery_delay_ms_max or DURATION_MS_MAX
        if self.redelivery_backoff > 1:
            # At most 42 steps.
            while count > 1 and delay_ms < longest_ms:
                delay_ms *= self.redelivery_backoff
                count -= 1
        return min(delay_ms, longest_ms)

    def with_values(self, values: "dict[str, int | str | bool]") -> "Settings":
        """Return these settings with other values, by name."""
        return replace(self, **values) if values else self


def new_settings(template: str, **values: Any) -> Settings:
    """Return the settings of a queue that is declared now, unless `values` say otherwise."""
    return Settings(template, **{**NEW_QUEUES, **values})
