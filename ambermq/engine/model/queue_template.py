"""Queue templates: the settings and attachments that a new queue gets.

Rule 1. The first template whose pattern matches the queue's name is used; if none matches, `normal` is.
Rule 2. A template without a pattern is used only if a command names it.
Rule 3. A template is used once, when a queue is created. The log records the settings that the queue got.
"""

from dataclasses import dataclass, field
from typing import Final, final

from ambermq.engine.model.attachment import Argument
from ambermq.engine.patterns.words import words_of
from ambermq.engine.settings.queue_settings import Settings, new_settings

__all__ = ["NORMAL", "PREDEFINED", "SUBSCRIPTION", "TEMPORARY", "QueueTemplate", "QueueTemplates", "TemplateAttachment"]

NORMAL: Final = "normal"
TEMPORARY: Final = "temporary"
SUBSCRIPTION: Final = "subscription"

_SEPARATOR: Final = "."


@final
@dataclass(frozen=True, slots=True)
class TemplateAttachment:
    """A muxer that a new queue attaches to, in addition to QUEUE."""

    muxer: str
    argument: Argument = None
    argument_name: str = ""
    """The key that gave the argument, one of ARGUMENT_NAMES (attachment_arguments.py); empty: not given."""


@final
@dataclass(frozen=True, slots=True)
class QueueTemplate:
    """The settings and attachments of new queues."""

    settings: Settings
    """The settings of the queue; `settings.template` is the template's name."""
    pattern: str = ""
    """A pattern of queue names, words between dots, as in WILD DESTINATION; empty: used only by its name."""
    attach: tuple[TemplateAttachment, ...] = ()

    @property
    def name(self) -> str:
        """The name. The settings of each queue made from the template contain it."""
        return self.settings.template


@final
@dataclass(frozen=True, slots=True)
class QueueTemplates:
    """The templates of a broker, in the order in which they are tried."""

    ordered: tuple[QueueTemplate, ...] = field(
        default=(
            QueueTemplate(new_settings(NORMAL), "#"),
            QueueTemplate(new_settings(TEMPORARY)),
            QueueTemplate(new_settings(SUBSCRIPTION)),
        )
    )
    """`normal`, `temporary` and `subscription` are always among them."""

    def named(self, name: str) -> QueueTemplate | None:
        """Return the template of a name, None if there is none."""
        return next((template for template in self.ordered if template.name == name), None)

    def for_queue(self, name: str) -> QueueTemplate:
        """Return the template of a queue by the queue's name."""
        words = words_of(name, _SEPARATOR)
        if words is not None:
            for template in self.ordered:
                if template.pattern and words.match(template.pattern.split(_SEPARATOR)):
                    return template
        normal = self.named(NORMAL)
        assert normal is not None, "it is predefined"
        return normal

    def with_defaults(self) -> "QueueTemplates":
        """Return these templates, followed by the predefined ones whose names are not among them."""
        names = {template.name for template in self.ordered}
        return QueueTemplates((*self.ordered, *(one for one in PREDEFINED.ordered if one.name not in names)))


PREDEFINED: Final = QueueTemplates()
