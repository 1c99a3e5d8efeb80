"""Former names of options, --dry-run and --yes."""

import click
import pytest
from click.testing import CliRunner

from ambermq.tools.cli import main
from ambermq.tools.terminal.exit_codes import ExitCode
from ambermq.tools.terminal.options import confirm, destructive_options, renamed_option
from tests.tools.tree import children


@click.command()
@renamed_option("--from", "--since", "begin", type=click.IntRange(0), required=True, help="First.")
def show(begin: int) -> None:
    """Print the value."""
    click.echo(repr(begin))


@click.command()
@renamed_option("--rate", "--disk-rate", "rate", type=click.IntRange(0), help="Rate.")
def limit(rate: int | None) -> None:
    """Print the value."""
    click.echo(repr(rate))


@click.command()
@destructive_options
def destroy(dry_run: bool) -> None:
    """Destroy."""
    if not dry_run:
        confirm(lambda: "This deletes a\nb")
    click.echo("done")


def test_a_former_name_works_and_warns() -> None:
    """Its value is checked as that of the new name; help does not show it."""
    told = CliRunner().invoke(show, ["--from", "7"])
    assert (told.stdout, told.stderr) == (
        "7\n",
        "warning: --from is called --since now; the former name ends with 0.4\n",
    )
    assert CliRunner().invoke(show, ["--since", "7"]).stderr == ""
    assert "--from" not in CliRunner().invoke(show, ["--help"]).stdout
    assert CliRunner().invoke(show, ["--from", "x"]).exit_code == ExitCode.USAGE
    assert CliRunner().invoke(show, []).exit_code == ExitCode.USAGE


def test_a_parameter_may_have_the_former_name() -> None:
    """The new name alone does not warn."""
    told = CliRunner().invoke(limit, ["--disk-rate", "5"])
    assert (told.stdout, told.stderr) == ("5\n", "")
    assert CliRunner().invoke(limit, ["--rate", "5"]).stdout == "5\n"
    assert CliRunner().invoke(limit, []).stdout == "None\n"


@pytest.mark.parametrize("words", [["--from", "1", "--since", "2"], ["--since", "2", "--from", "1"]])
def test_both_names_at_once_are_refused(words: list[str]) -> None:
    """In any order."""
    told = CliRunner().invoke(show, words)
    assert told.exit_code == ExitCode.USAGE
    assert "give one of them" in told.stderr


def test_without_a_terminal_a_command_goes_on_and_warns() -> None:
    """Scripts that are older than --yes keep working."""
    told = CliRunner().invoke(destroy, [])
    assert (told.exit_code, told.stdout) == (0, "done\n")
    assert told.stderr == "warning: `destroy` needs --yes without a terminal from 0.4 on\n"
    assert CliRunner().invoke(destroy, ["--yes"]).stderr == ""
    assert CliRunner().invoke(destroy, ["--dry-run"]).stderr == ""


@pytest.mark.parametrize(("answer", "code"), [("y\n", ExitCode.OK), ("n\n", ExitCode.FAILED), ("\n", ExitCode.FAILED)])
def test_on_a_terminal_a_command_asks(monkeypatch: pytest.MonkeyPatch, answer: str, code: int) -> None:
    """On standard error, with what is destroyed on one line; without an answer nothing happens."""
    monkeypatch.setattr("ambermq.tools.terminal.options._has_terminal", lambda: True)
    told = CliRunner().invoke(destroy, [], input=answer)
    assert told.exit_code == code
    assert told.stdout == ("done\n" if code == ExitCode.OK else "")
    assert r"This deletes a\nb. Go on? [y/N]:" in told.stderr


def test_what_destroys_asks_and_what_changes_much_has_a_dry_run() -> None:
    """By name: each command that deletes, purges or resets has both options."""
    destructive, dry = set(), set()
    commands: list[tuple[str, click.Command]] = [("", main)]
    while commands:
        path, command = commands.pop()
        commands += [(f"{path} {name}".strip(), child) for name, child in children(command).items()]
        names = {option for parameter in command.params for option in parameter.opts}
        destructive |= {path} if "--yes" in names else set()
        dry |= {path} if "--dry-run" in names else set()
        if path.split()[-1:] in (["delete"], ["purge"], ["reset"]):
            assert {"--yes", "--dry-run"} <= names, path
    assert destructive <= dry
    more = {"log compact", "log repair", "snapshot restore", "user import", "vhost copy", "wiring apply"}
    assert more <= dry
