"""Commands that are imported when they run."""

import subprocess
import sys

import click
import pytest

from ambermq.tools.cli import main
from ambermq.tools.terminal.lazy_group import LazyGroup
from tests.tools.tree import children

GROUPS = [main, *[command for command in children(main).values() if isinstance(command, LazyGroup)]]


def modules_after(code: str) -> set[str]:
    """Return the modules that a new interpreter has imported after running code."""
    shown = "import sys; print('\\n'.join(sys.modules), file=sys.stderr)"
    result = subprocess.run([sys.executable, "-c", f"{code}\n{shown}"], capture_output=True, text=True, check=True)
    return set(result.stderr.split())


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group.name)
def test_each_line_of_help_is_the_first_sentence_of_the_command(group: LazyGroup) -> None:
    """What stands in the table cannot differ from what the command says of itself."""
    told = {name: text for name, (_, text) in group._lazy.items()}
    assert told == {name: children(group)[name].get_short_help_str(1000) for name in told}


def test_a_summary_is_a_whole_sentence_that_fits() -> None:
    """The help of a group cuts no summary: each is a sentence of at most 70 characters."""
    commands: list[click.Command] = [main]
    while commands:
        command = commands.pop()
        commands += children(command).values()
        summary = (command.help or "").split("\n")[0]
        assert len(summary) <= 70, summary
        assert summary[0].isupper(), summary
        assert summary.endswith("."), summary


def test_help_imports_no_command() -> None:
    """Listing the commands needs nothing of what they need."""
    listed = "from ambermq.tools.cli import main\nmain(['--help'], standalone_mode=False)"
    assert (
        modules_after(listed)
        & {
            "ambermq.tools.broker.serve_command",
            "ambermq.tools.history.log_commands",
            "ambermq.tools.wiring.queue_commands",
            "ambermq.protocol.amqp10.connection.connection",
            "rich",
        }
        == set()
    )


def test_a_command_imports_only_what_it_needs() -> None:
    """A client needs no server, no engine loop, and no library for tables until it prints one."""
    shown = "from ambermq.tools.cli import main\nmain(['queue', 'list', '--help'], standalone_mode=False)"
    imported = modules_after(shown)
    assert "ambermq.tools.wiring.queue_commands" in imported
    assert (
        imported
        & {
            "ambermq.tools.broker.serve_command",
            "ambermq.tools.history.log_commands",
            "uvloop",
            "asyncio",
            "structlog",
            "rich",
            "ambermq.engine.loop.durable_loop",
        }
        == set()
    )


def test_commands_of_both_kinds_stand_in_one_list() -> None:
    """A group may have commands of its own beside those that are imported later."""

    @click.command(help="Here already.")
    def ready() -> None: ...

    group = LazyGroup("both", lazy={"queue": ("ambermq.tools.wiring.queue_commands:queue", "Later.")})
    group.add_command(ready, "ready")
    assert list(children(group)) == ["queue", "ready"]
    assert "Later." in group.get_help(click.Context(group))
