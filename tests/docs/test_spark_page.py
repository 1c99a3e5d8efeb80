"""docs/spark.md lists the columns and options that the code has."""

from ambermq.tools.dataset.schema import CONTENT_COLUMNS, EVENT_COLUMNS
from ambermq.tools.spark.data_source import OPTION_NAMES
from tests.docs.pages import rows

_PAGE = "docs/spark.md"
_TYPES = {
    "int64": "bigint",
    "int32": "int",
    "timestamp[us, tz=UTC]": "timestamp",
    "bool": "boolean",
    "string": "string",
    "binary": "binary",
}


def test_the_columns_are_those_of_the_schema() -> None:
    """Both tables together are all columns, in their order, with the types that Spark calls them by."""
    tables = [*rows(_PAGE, "## The columns"), *rows(_PAGE, "### Contents of messages")]
    told = [(row[0].strip("` "), row[1]) for row in tables]
    known = (EVENT_COLUMNS | CONTENT_COLUMNS).items()
    assert told == [(name, _TYPES[str(kind)]) for name, kind in known]


def test_the_options_are_those_that_are_taken() -> None:
    """Every option of a read is listed, and none that there is not."""
    told = [row[0].strip("` ") for row in rows(_PAGE, "## Reading")]
    assert sorted(told) == sorted(OPTION_NAMES)
