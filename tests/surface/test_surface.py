"""The public surface is what it was: commands, options, exit codes, variables, keys, names of AMQP, events, files.

Where a change means to add to it, or to change it, its author writes the golden files anew, looks at their difference,
and tells of it in CHANGELOG.md:

    python -m tests.surface --write
"""

import pytest

from tests.surface.collect import CATEGORIES, json_commands
from tests.surface.golden import difference, golden
from tests.surface.outputs import NOT_RUN

_ADVICE = "What users rely on has changed. If that is meant: python -m tests.surface --write"


@pytest.mark.parametrize("category", CATEGORIES)
def test_the_surface_is_what_it_was(category: str) -> None:
    """Nothing was added, nothing is gone."""
    told = difference(category, golden(category), CATEGORIES[category]())
    assert not told, f"{_ADVICE}\n{told}"


def test_every_command_that_prints_json_is_covered() -> None:
    """The script of commands runs each of them, but for those that are left out by name."""
    assert {*golden("outputs")} == json_commands()
    assert {*NOT_RUN} <= json_commands()
