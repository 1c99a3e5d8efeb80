"""Queue templates: what a queue is made with, found by its name where nobody says more.

Rule 1. The first template whose pattern takes the queue's name is its template; where none does it is `normal`.
Rule 2. One without a pattern is asked for by its own name alone.
Rule 3. A template is used when a queue is made, and never again: what the queue was made with is in the log.
"""

from dataclasses import dataclass, field
from typing import Final, final

from ambermq.engine.model.attachment import Argument
from ambermq.engine.model.queue import Settings
from ambermq.engine.patterns.pattern import WORDS_MAX
from ambermq.engine.patterns.words import Words

__all__ = ["NORMAL", "PREDEFINED", "SUBSCRIPTION", "TEMPORARY", "QueueTemplate", "QueueTemplates", "TemplateAttachment"]

NORMAL: Final = "normal"
TEMPORARY: Final = "temporary"
SUBSCRIPTION: Final = "subscription"

_SEPARATOR: Final = "."


@final
@dataclass(frozen=True, slots=True)
class TemplateAttachment:
    """A muxer that a new queue attaches to, besides QUEUE by its name."""

    muxer: str
    argument: Argument = None
    argument_name: str = ""
    """What the argument was taken for, as in engine/decide/attachment_arguments.py; empty: not said."""


@final
@dataclass(frozen=True, slots=True)
class QueueTemplate:
    """What queues are made with."""

    settings: Settings
    """The properties of the queue; `settings.template` is the template's name."""
    pattern: str = ""
    """Of queue names, words between dots, as WILD DESTINATION has it; empty: by the template's name alone."""
    attach: tuple[TemplateAttachment, ...] = ()

    @property
    def name(self) -> str:
        """The name, which the queue's settings keep."""
        return self.settings.template


@final
@dataclass(frozen=True, slots=True)
class QueueTemplates:
    """The templates of a broker, in the order in which they are tried."""

    ordered: tuple[QueueTemplate, ...] = field(
        default=(
            QueueTemplate(Settings(NORMAL), "#"),
            QueueTemplate(Settings(TEMPORARY)),
            QueueTemplate(Settings(SUBSCRIPTION)),
        )
    )
    """`normal`, `temporary` and `subscription` are always among them."""

    def named(self, name: str) -> QueueTemplate | None:
        """Return a template by its name, None where there is none."""
        return next((template for template in self.ordered if template.name == name), None)

    def for_queue(self, name: str) -> QueueTemplate:
        """Return the template of a queue of whom nothing but the name is known."""
        parts = name.split(_SEPARATOR)
        if len(parts) <= WORDS_MAX:
            words = Words(parts)
            for template in self.ordered:
                if template.pattern and words.match(template.pattern.split(_SEPARATOR)):
                    return template
        normal = self.named(NORMAL)
        assert normal is not None, "it is predefined"
        return normal

    def with_defaults(self) -> "QueueTemplates":
        """Return these and, behind them, the predefined ones that none of these replaces."""
        names = {template.name for template in self.ordered}
        return QueueTemplates((*self.ordered, *(one for one in PREDEFINED.ordered if one.name not in names)))


PREDEFINED: Final = QueueTemplates()
