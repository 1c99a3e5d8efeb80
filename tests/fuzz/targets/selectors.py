"""The parser of selectors, and the evaluation of what it compiles.

text            the selector: UTF-8, of which wrong bytes are replaced as an AMQP decoder never passes them
"""

from typing import Any, Final

from ambermq.engine.errors import SelectorError
from ambermq.engine.selectors.fields import ABSENT
from ambermq.engine.selectors.selector import parse_selector
from tests.fuzz.target import Target

_FIELDS: Final[tuple[dict[str, Any], ...]] = (
    {},
    {"colour": "red", "size": 3, "weight": 2.5, "is_big": True, "JMSPriority": 4, "priority": 4},
    {"colour": "%_" * 200, "size": -(2**63), "weight": float("inf"), "is_big": False, "subject": "a" * 1000},
)


def run(data: bytes) -> None:
    """Compile a selector, and evaluate it on a few messages."""
    try:
        selector = parse_selector(data.decode(errors="replace"))
    except SelectorError:
        return
    assert parse_selector(selector.text).names == selector.names
    for values in _FIELDS:
        assert isinstance(selector.matches(_Fields(values)), bool)


class _Fields:
    def __init__(self, values: dict[str, Any]) -> None:
        self._values = values

    def get(self, name: str) -> Any:
        return self._values.get(name, ABSENT)


def seeds() -> list[bytes]:
    """Return a selector of each kind."""
    return [text.encode() for text in _SELECTORS]


_SELECTORS: Final = (
    "colour = 'red'",
    "size BETWEEN 2 AND 4 AND NOT is_big",
    "colour IN ('red', 'green') OR colour NOT IN ('it''s')",
    "colour LIKE 'r_d%' ESCAPE '!'",
    "colour NOT LIKE '%%%%a%%%%b'",
    "JMSPriority > 3 AND JMSCorrelationID IS NULL",
    "weight * 2 + -size / 0 >= 1.5e3 - 0x1F",
    '"quoted name" IS NOT NULL',
    "((((TRUE))))",
    "NOT NOT NOT FALSE",
    "size <> 9223372036854775807 AND weight < 1e308f",
    "'unclosed",
    "colour = 'ä' AND größe >= 0",
    "a.b.c$d_e = 010",
)

TARGET: Final = Target(
    run,
    seeds,
    words=(
        *(
            word.encode()
            for word in (
                *(
                    "AND",
                    "OR",
                    "NOT",
                    "BETWEEN",
                    "IN",
                    "LIKE",
                    "ESCAPE",
                    "IS",
                    "NULL",
                    "TRUE",
                    "FALSE",
                    "<>",
                    "<=",
                    ">=",
                ),
                *("JMSMessageID", "JMSTimestamp", "JMSPriority", "JMSType", "JMSReplyTo", "JMSDeliveryMode"),
                *("JMSCorrelationID", "JMSXGroupID", "JMSXDeliveryCount", "amqp.priority", "colour", "size", "weight"),
                *("9223372036854775808", "1e999", "0x", "1f", "1L", "''", '""', "'%_'"),
            )
        ),
    ),
)
