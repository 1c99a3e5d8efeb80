"""The table of the settings of queues: name, kind, limits and text of each.

Management, templates, wiring documents, the command line and the docs are derived from it. A setting is listed here
with the capability that it configures, not before.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from ambermq.engine.errors import EngineError
from ambermq.engine.selectors.fields import fault_of
from ambermq.engine.settings.queue_settings import (
    BLOCK,
    COUNT_MAX,
    DEAD_LETTER,
    DROP_HEAD,
    DURATION_MS_MAX,
    NEW_QUEUES,
    REJECT,
    Settings,
)

__all__ = [
    "OFF",
    "SETTINGS",
    "Setting",
    "SettingKind",
    "changed_settings",
    "settings_text",
    "value_text",
    "values_of_settings",
]

FIELD_BYTES_MAX: Final = 256
"""The longest name of a field."""

OFF: Final = "none"
"""The text that switches a setting off, as 0 and an empty text do."""


class SettingKind(Enum):
    """What the value of a setting is."""

    COUNT = "count"
    BYTES = "bytes"
    CHOICE = "choice"
    FLAG = "flag"
    ADDRESS = "address"
    DURATION = "duration"
    FIELD = "field"


def is_field(name: str) -> bool:
    """Return whether a message can have a field of this name, and its length is allowed."""
    return len(name.encode("utf-8", "surrogatepass")) <= FIELD_BYTES_MAX and name.isprintable() and not fault_of(name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One setting of a queue."""

    name: str
    kind: SettingKind
    text: str
    """What it does, as a phrase for help and docs."""
    off: str
    """What holds without it, as a phrase."""
    choices: tuple[str, ...] = ()
    """The values of a choice. The first one is the default."""
    is_changeable: bool = True
    """Whether an update of the queue may change it."""
    is_on: bool = False
    """Whether a flag is true unless a declaration says otherwise."""

    @property
    def default(self) -> int | str | bool:
        """Return the value of a queue whose declaration does not name the setting: but for `is_on` it is off."""
        if self.kind is SettingKind.CHOICE:
            return self.choices[0]
        if self.kind in (SettingKind.ADDRESS, SettingKind.FIELD):
            return ""
        return self.is_on if self.kind is SettingKind.FLAG else 0

    @property
    def is_number(self) -> bool:
        """Return whether its values are whole numbers."""
        return self.kind in (SettingKind.COUNT, SettingKind.BYTES, SettingKind.DURATION)

    @property
    def _most(self) -> int:
        return DURATION_MS_MAX if self.kind is SettingKind.DURATION else COUNT_MAX

    @property
    def option(self) -> str:
        """Return the name of its option on the command line; a duration there has a unit."""
        name = self.name.replace("_ms", "") if self.kind is SettingKind.DURATION else self.name
        return name.replace("_", "-")

    @property
    def expected(self) -> str:
        """Return what a value must be, for messages."""
        if self.kind is SettingKind.CHOICE:
            return f"one of {', '.join(self.choices)}"
        if self.kind is SettingKind.FLAG:
            return "true or false"
        if self.kind is SettingKind.ADDRESS:
            return "an address"
        if self.kind is SettingKind.FIELD:
            return f"the name of a message field of at most {FIELD_BYTES_MAX} bytes"
        if self.kind is SettingKind.DURATION:
            return f"milliseconds from 0 to {DURATION_MS_MAX}"
        return f"a whole number from 0 to {COUNT_MAX}"

    def value_of(self, value: object) -> int | str | bool:
        """Return a value as the settings hold it. Raises EngineError with what is expected and found."""
        if isinstance(value, str) and value in ("", OFF):
            return self.default
        if self.kind is SettingKind.FLAG and isinstance(value, bool):
            return value
        if self.kind is SettingKind.ADDRESS and isinstance(value, str):
            return str(value)
        if self.kind is SettingKind.FIELD and isinstance(value, str) and is_field(value):
            return str(value)
        if self.kind is SettingKind.CHOICE:
            if isinstance(value, str) and value in self.choices:
                return str(value)
        elif self.is_number and type(value) is int and 0 <= value <= self._most:
            return value
        raise EngineError(f"expected {self.expected}, found {value!r:.80}")


SETTINGS: Final[Mapping[str, Setting]] = {
    one.name: one
    for one in (
        Setting(
            name="messages_max",
            kind=SettingKind.COUNT,
            text="the maximum of messages that wait",
            off="the limit `queue_messages_max` of the broker",
        ),
        Setting(
            name="bytes_max",
            kind=SettingKind.BYTES,
            text="the maximum bytes of the messages that wait",
            off="no maximum",
        ),
        Setting(
            name="message_bytes_max",
            kind=SettingKind.BYTES,
            text="the bytes of the largest message that it takes",
            off="the limit `message_bytes_max` of the broker",
        ),
        Setting(
            name="overflow",
            kind=SettingKind.CHOICE,
            text="what happens to a message that would pass a maximum",
            off="it is refused",
            choices=(REJECT, DROP_HEAD, DEAD_LETTER, BLOCK),
        ),
        Setting(
            name="delivery_count_max",
            kind=SettingKind.COUNT,
            text="the failed deliveries after which the queue gives a message up",
            off="a message is delivered for ever",
        ),
        Setting(
            name="dead_letter",
            kind=SettingKind.ADDRESS,
            text="the address that gets the messages which the queue gives up",
            off="they end",
        ),
        Setting(
            name="message_ttl_ms",
            kind=SettingKind.DURATION,
            text="the time after which a message expires, if it has no shorter one of its own",
            off="a message expires by its own time to live alone",
        ),
        Setting(
            name="redelivery_delay_ms",
            kind=SettingKind.DURATION,
            text="the time after which a message is offered again whose delivery has failed",
            off="it is offered at once",
        ),
        Setting(
            name="redelivery_backoff",
            kind=SettingKind.COUNT,
            text="the factor by which that time grows with each further failed delivery",
            off="it stays the same",
        ),
        Setting(
            name="redelivery_delay_ms_max",
            kind=SettingKind.DURATION,
            text="the longest time after which a message is offered again",
            off="no maximum",
        ),
        Setting(
            name="exclusive",
            kind=SettingKind.FLAG,
            text="whether only the consumer that attached first gets messages",
            off="all consumers do",
        ),
        Setting(
            name="auto_delete",
            kind=SettingKind.FLAG,
            text="whether the queue is deleted, with its messages, when its last consumer goes",
            off="it stays",
        ),
        Setting(
            name="expires_ms",
            kind=SettingKind.DURATION,
            text="the time without use after which the queue is deleted, with its messages",
            off="it stays",
        ),
        Setting(
            name="paused",
            kind=SettingKind.FLAG,
            text="whether nothing is delivered",
            off="messages are delivered",
        ),
        Setting(
            name="priorities",
            kind=SettingKind.FLAG,
            text="whether messages of a higher priority are delivered first",
            off="messages are delivered in the order of their arrival",
        ),
        Setting(
            name="last_value",
            kind=SettingKind.FIELD,
            text="the message field that is the key: of each key only the newest message waits",
            off="all messages wait",
            is_changeable=False,
        ),
        Setting(
            name="non_destructive",
            kind=SettingKind.FLAG,
            text="whether each consumer gets all messages, and takes none",
            off="each message goes to one consumer",
            is_changeable=False,
        ),
        Setting(
            name="dedup_window_ms",
            kind=SettingKind.DURATION,
            text="the time after a message in which another one with its message-id is not stored",
            off="every message is stored",
        ),
        Setting(
            name="lock_ms",
            kind=SettingKind.DURATION,
            text="the time after which a message returns whose consumer has not settled it",
            off="its consumer keeps it",
        ),
        Setting(
            name="groups",
            kind=SettingKind.FLAG,
            text="whether the messages of a group go to one consumer, in order",
            off="`group-id` has no effect",
        ),
        Setting(
            name="group_rebalance",
            kind=SettingKind.FLAG,
            text="whether a new consumer unbinds the groups of which no message is out",
            off="a new consumer gets new groups only",
        ),
        Setting(
            name="cut_through",
            kind=SettingKind.FLAG,
            text="whether the delivery of a large message may begin while the message arrives",
            off="it begins when the message is complete",
        ),
        Setting(
            name="durable",
            kind=SettingKind.FLAG,
            text="whether the queue and its messages last when the broker starts again",
            off="they do",
            is_changeable=False,
            is_on=True,
        ),
    )
}
"""Each setting by its name, in the order of listings."""


def values_of_settings(settings: Settings) -> dict[str, Any]:
    """Return the value of each setting by its name, without the template."""
    return {name: getattr(settings, name) for name in SETTINGS}


def changed_settings(settings: Settings, changes: Mapping[str, object]) -> Settings:
    """Return settings with other values by name; None leaves a value. Raises EngineError that names the setting."""
    values: dict[str, int | str | bool] = {}
    for name, value in changes.items():
        if value is None:
            continue
        try:
            values[name] = SETTINGS[name].value_of(value)
        except EngineError as error:
            raise EngineError(f"{name}: {error}") from error
    return settings.with_values(values)


def value_text(value: object, *, quoted: bool = False) -> str:
    """Return a value of a setting as people write it: `true`, `none`, `5`, `name`; for a sentence a name is quoted."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if value == "":
        return OFF
    return repr(value) if quoted else str(value)


def settings_text(settings: Settings) -> str:
    """Return settings on one line: the length first, then what differs from the defaults."""
    others = [
        f"{name} {value_text(value)}"
        for name, value in values_of_settings(settings).items()
        if name == "messages_max" or value not in (SETTINGS[name].default, NEW_QUEUES.get(name, SETTINGS[name].default))
    ]
    return f"{', '.join(others)} of template {settings.template!r}"
