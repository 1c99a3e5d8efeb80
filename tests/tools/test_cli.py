"""What all commands have in common, by walking the tree of them."""

import json
import shlex
from collections.abc import Iterator

import click
import pytest

from ambermq.tools.cli import main
from ambermq.tools.terminal.exit_codes import ExitCode
from tests.tools.conftest import Run
from tests.tools.tree import children


def commands(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    yield path, command
    for name, child in children(command).items():
        yield from commands(child, (*path, name))


ALL = dict(commands(main))
_WITHOUT_OUTPUT = {("serve",), ("completion",), ("top",)}
_STREAMED = {("log", "dump"), ("history", "tail"), ("audit", "show"), ("proxy", "print")}
_LISTED = {
    ("dlq", "show"),
    ("docs",),
    ("log", "segments"),
    ("history", "queue"),
    ("snapshot", "verify"),
    ("snapshot", "diff"),
    ("queue", "browse"),
}
LEAVES = {path: command for path, command in ALL.items() if not isinstance(command, click.Group)}


@pytest.mark.parametrize("path", ALL, ids=" ".join)
def test_every_command_has_help_and_an_example_of_itself(run: Run, path: tuple[str, ...]) -> None:
    """--help says what a command does and shows a line to type."""
    result = run(*path, "--help")
    assert result.exit_code == ExitCode.OK
    assert ALL[path].help
    assert f"Example: ambermq {' '.join(path)}".strip() in " ".join(result.stdout.split())


@pytest.mark.parametrize("path", LEAVES, ids=" ".join)
def test_every_example_is_a_command_line_that_parses(path: tuple[str, ...]) -> None:
    """An example names only arguments and options that there are."""
    epilog = LEAVES[path].epilog
    assert epilog is not None
    words = shlex.split(epilog.removeprefix(f"Example: ambermq {' '.join(path)} "))
    LEAVES[path].make_context("ambermq", words)


_MORE_OUTPUTS = {("log", "query"): ("ndjson", "csv"), ("config", "show"): ("ndjson", "toml")}


@pytest.mark.parametrize("path", [path for path in LEAVES if path not in _WITHOUT_OUTPUT], ids=" ".join)
def test_every_command_prints_for_people_or_for_programs(path: tuple[str, ...]) -> None:
    """--output is table or json on all that print, and ndjson on listings, which have --wide too."""
    option = next(parameter for parameter in LEAVES[path].params if parameter.name == "output")
    assert isinstance(option.type, click.Choice)
    is_listing = path[-1] == "list" or path in _LISTED
    further = ["ndjson"] if path in _STREAMED or is_listing else _MORE_OUTPUTS.get(path, ())
    assert list(option.type.choices) == ["table", "json", *further]
    assert is_listing == any(parameter.name == "wide" for parameter in LEAVES[path].params)


def test_exit_codes_are_documented(run: Run) -> None:
    """--help lists every exit code with its meaning."""
    shown = run("--help").stdout
    for code in ExitCode:
        assert f"{code.value:>2}  {code.meaning}" in shown


def test_every_option_has_help() -> None:
    """No option is left to be guessed."""
    silent = [
        f"{' '.join(path)} {parameter.opts[0]}"
        for path, command in LEAVES.items()
        for parameter in command.params
        if isinstance(parameter, click.Option) and not parameter.help
    ]
    assert silent == []


@pytest.mark.parametrize("path", [path for path in ALL if path not in LEAVES], ids=" ".join)
def test_a_mistyped_command_is_refused_with_near_names(run: Run, path: tuple[str, ...]) -> None:
    """In each group."""
    name = next(iter(children(ALL[path])))
    told = run(*path, f"{name}x")
    assert told.exit_code == ExitCode.USAGE
    assert f"No such command '{name}x'. Did you mean" in told.stderr
    assert f"'{name}'" in told.stderr


@pytest.mark.parametrize("path", LEAVES, ids=" ".join)
def test_a_mistyped_option_is_refused_with_near_names(run: Run, path: tuple[str, ...]) -> None:
    """Of each command."""
    option = next((one for one in LEAVES[path].params if isinstance(one, click.Option) and not one.hidden), None)
    name = "--help" if option is None else option.opts[0]
    told = run(*path, f"{name}x")
    assert told.exit_code == ExitCode.USAGE
    assert "Did you mean" in told.stderr
    assert f"'{name}'" in told.stderr


def test_a_command_of_a_group_is_found_by_its_own_name(run: Run) -> None:
    """`ambermq purge` is `ambermq queue purge`, or that of dead letters."""
    assert "Did you mean 'dlq purge', 'queue purge'?" in run("purge", "orders").stderr


JSON_ERRORS = [
    (("queue", "list", "--url", "amqp://127.0.0.1:1", "--output", "json"), ExitCode.CANNOT_CONNECT, "cannot-connect"),
    (("queue", "list", "--url", "amqp://127.0.0.1:1", "--output=ndjson"), ExitCode.CANNOT_CONNECT, "cannot-connect"),
    (("queue", "browse", "q", "--ndjson", "--data", "/nowhere"), ExitCode.NOT_FOUND, "not-found"),
    (("queue", "list", "--output", "json", "--outputt"), ExitCode.USAGE, "usage"),
    (("queue", "lst", "--output", "json"), ExitCode.USAGE, "usage"),
    (("lst", "--output", "json"), ExitCode.USAGE, "usage"),
]


@pytest.mark.parametrize(("words", "code", "name"), JSON_ERRORS)
def test_errors_are_json_where_the_output_is(run: Run, words: tuple[str, ...], code: ExitCode, name: str) -> None:
    """One document on standard error, with code, exit code and message."""
    told = run(*words)
    assert (told.exit_code, told.stdout) == (code, "")
    (error,) = json.loads(told.stderr).values()
    assert (error["code"], error["exit"]) == (name, code)
    assert error["message"]
    assert told.stderr.count("\n") == 1


def test_the_parts_of_an_error_are_keys(run: Run) -> None:
    """Each under its name."""
    error = json.loads(run("config", "explain", "nope", "--output", "json").stderr)["error"]
    assert error["where"] == "nope"
    assert error["what"] == "no such key"
    assert error["advice"] in error["message"]


def test_words_behind_a_double_dash_are_no_options(run: Run) -> None:
    """They are the body of a message."""
    told = run("send", "q", "--url", "amqp://127.0.0.1:1", "--", "--ndjson")
    assert told.stderr.startswith("error: ")


def test_the_format_of_an_input_is_none_of_errors(run: Run) -> None:
    """`send --ndjson` reads JSON and prints lines for people."""
    assert run("send", "q", "--ndjson", "--url", "amqp://127.0.0.1:1", stdin="").stderr.startswith("error: ")


def test_an_unknown_command_is_a_wrong_command_line(run: Run) -> None:
    """Exit code 2, and what was not understood."""
    result = run("sned")
    assert result.exit_code == ExitCode.USAGE
    assert "sned" in result.stderr


def test_the_version_is_told(run: Run) -> None:
    """--version names the program and its version."""
    assert run("--version").stdout.startswith("ambermq, version ")
