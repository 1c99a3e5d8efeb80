"""docs/configuration.md lists every bound and option there is, and no other."""

import re
from dataclasses import fields

import pytest

from ambermq.engine.config import EngineConfig
from ambermq.engine.model.queue_template import PREDEFINED
from ambermq.log.config import LogConfig
from ambermq.protocol.amqp10.limits import ConnectionLimits, range_of
from ambermq.protocol.server_limits import ServerLimits
from ambermq.tools.broker.serve_command import serve
from ambermq.tools.config.compaction_schedule import CompactionConfig
from ambermq.tools.config.keys import CLASSES, all_keys, keys_of
from ambermq.tools.config.resolution import read_settings
from ambermq.tools.config.retention_schedule import RetentionConfig
from ambermq.tools.config.settings import LogLines, Permissions
from ambermq.tools.config.template_settings import TEMPLATE_KEYS
from ambermq.tools.terminal.exit_codes import ExitCode
from ambermq.tools.terminal.variables import COMMAND_VARIABLES
from tests.docs.pages import blocks, rows, text_of
from tests.surface.collect import environment

_PAGE = "docs/configuration.md"


def _value(cell: str) -> int | bool | str | tuple[()]:
    text = cell.partition("`")[2].partition("`")[0]
    known = {"true": True, "false": False, '""': "", '"info"': "info", "[]": (), '"auto"': "auto"}
    return known[text] if text in known else int(text)


@pytest.mark.parametrize(
    ("table", "kind"),
    [
        ("engine", EngineConfig),
        ("log", LogConfig),
        ("connection", ConnectionLimits),
        ("server", ServerLimits),
        ("compaction", CompactionConfig),
        ("retention", RetentionConfig),
        ("logging", LogLines),
        ("permissions", Permissions),
    ],
)
def test_every_bound_is_listed_with_its_default(table: str, kind: type) -> None:
    """A table of the file names the fields of its class in their order, each with its default and a meaning."""
    listed = [(name.strip("`| "), _value(default), bool(meaning)) for name, default, *_, meaning in _bounds(table)]
    assert listed == [(one.name, one.default, True) for one in fields(kind) if one.name != "templates"]


@pytest.mark.parametrize("table", CLASSES)
def test_every_key_has_its_unit_and_says_whether_a_reload_changes_it(table: str) -> None:
    """The columns are what `ambermq config explain` prints."""
    listed = [(name.strip("`| "), unit, changes) for name, _, unit, changes, _ in _bounds(table)]
    assert listed == [(key.name, key.unit, "live" if key.is_live else "restart") for key in keys_of(table).values()]


def test_every_key_has_a_docstring() -> None:
    """`ambermq config explain` prints it."""
    assert [path for path, key in all_keys().items() if not key.text] == []


def test_every_variable_of_the_commands_is_listed() -> None:
    """The table has all of them, and no other."""
    assert sorted(row[0].strip("`| ") for row in rows(_PAGE, "## Environment")) == list(COMMAND_VARIABLES)
    assert environment() == list(COMMAND_VARIABLES), "`ambermq serve` would refuse the others"


def _bounds(table: str) -> list[list[str]]:
    return list(rows(_PAGE, f"### `[{table}]`"))


@pytest.mark.parametrize(
    ("table", "kind"), [("connection", ConnectionLimits), ("server", ServerLimits), ("compaction", CompactionConfig)]
)
def test_every_bound_of_a_bound_is_told(table: str, kind: type) -> None:
    """Where not every number serves, the meaning says from what to what, and nowhere else."""
    for (*_, meaning), limit in zip(_bounds(table), fields(kind), strict=True):
        least, most = range_of(limit)
        told = dict(re.findall(r"at (least|most) (\d+)", meaning))
        assert told == {name: str(bound) for name, bound in (("least", least), ("most", most)) if bound}, limit.name


def test_sizes_in_words_are_the_defaults() -> None:
    """What stands in brackets behind a default is the same number."""
    factors = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
    told = 0
    for table in ("engine", "log", "connection", "server", "compaction", "retention"):
        for _, default, *_ in _bounds(table):
            if match := re.search(r"\((\d+) (\wiB)\)", default):
                assert int(match[1]) * factors[match[2]] == _value(default)
                told += 1
    assert told > 0


def test_the_example_is_a_file_that_serve_takes() -> None:
    """The TOML on the page is read without complaint and sets what it says."""
    settings = read_settings("\n".join(blocks(_PAGE, "toml")), _PAGE)
    assert settings.engine.auto_create is False
    assert settings.users == {"alice": "secret"}
    assert settings.engine.templates.for_queue("orders.eu").settings.messages_max == 100_000


def test_every_exit_code_is_listed() -> None:
    """The table of exit codes is the one that `--help` shows."""
    listed = [tuple(cell.strip("`| ") for cell in row) for row in rows(_PAGE, "## Exit codes")]
    assert listed == [(str(code.value), code.name, code.meaning) for code in ExitCode]


def test_every_option_of_serve_is_listed() -> None:
    """The options' table has all of them, and no other."""
    listed = {
        option for row in rows(_PAGE, "## Options of `ambermq serve`") for option in re.findall(r"--[\w-]+", row[0])
    }
    assert listed == {name for option in serve.params for name in (*option.opts, *option.secondary_opts)}


def test_every_key_of_a_template_is_listed() -> None:
    """In the order in which a message names them."""
    assert [name.strip("`| ") for name, *_ in rows(_PAGE, "### `[[templates]]`")] == list(TEMPLATE_KEYS)


def test_the_predefined_templates_are_listed() -> None:
    """With their patterns."""
    text = text_of(_PAGE)
    for template in PREDEFINED.ordered:
        assert f"`{template.name}`" in text.partition("### `[[templates]]`")[2].partition("\n##")[0]
