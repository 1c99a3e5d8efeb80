"""The fields of one published message, with the answers of the selectors that it was tested with.

A message may be tested with thousands of selectors. If the time of a tick is over, the next tick goes on with the same
PublishedFields, and tests no selector twice.
"""

from typing import final

from ambermq.engine.errors import Refused
from ambermq.engine.selectors.fields import Fields
from ambermq.engine.selectors.selector import Selector
from ambermq.engine.time_budget import TimeBudget

__all__ = ["PublishedFields"]


@final
class PublishedFields:
    """The fields of a message, and the answers of selectors."""

    __slots__ = ("_answers", "_budget", "_fields", "_selectors_max", "body", "get")

    def __init__(
        self, fields: Fields, body: object = None, budget: TimeBudget | None = None, selectors_max: int = 1 << 62
    ) -> None:
        self.body = body
        """The encoded message."""
        self.get = fields.get
        """As `Fields.get`."""
        self._answers: dict[str, bool] = {}
        self._fields = fields
        self._budget = budget or TimeBudget()
        self._selectors_max = selectors_max

    def select(self, selectors: dict[str, Selector]) -> list[str]:
        """Return the texts of those selectors, by text, that are true for the message.

        Raises MatchUnfinished if the time is over, and Refused if the message needs too many selectors.
        """
        answers, check_time = self._answers, self._budget.check
        for text, selector in selectors.items():
            if text not in answers:
                check_time()
                if len(answers) >= self._selectors_max:
                    why = f"it is for more than {self._selectors_max} selectors (selectors_per_message_max)"
                    raise Refused("amqp:resource-limit-exceeded", why)
                answers[text] = selector.matches(self._fields)
        return [text for text in selectors if answers[text]]
