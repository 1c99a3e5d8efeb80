"""The command `ambermq`: the table of its commands. The module of a command is imported when the command runs."""

from collections.abc import Callable
from typing import Any, Final, TypeVar

import click

from ambermq import __version__
from ambermq.tools.terminal.child_command import DIRECTORY_OPTION, check_package_directory
from ambermq.tools.terminal.errors import JsonError, is_json_requested, translating
from ambermq.tools.terminal.exit_codes import ExitCode
from ambermq.tools.terminal.lazy_group import LazyGroup
from ambermq.tools.terminal.standard_streams import check_streams

__all__ = ["main"]

_Result = TypeVar("_Result")
_JSON_KEY: Final = "ambermq.json-errors"

_COMMANDS: Final = {
    "acl": (
        "ambermq.tools.access.commands:acl",
        "Allow, deny and explain what users may do.",
    ),
    "attach": (
        "ambermq.tools.wiring.attachment_commands:attach",
        "Attach MEMBER, a queue or muxer:NAME, to MUXER.",
    ),
    "audit": ("ambermq.tools.audit.command:audit", "Show and verify the audit log."),
    "bench": (
        "ambermq.tools.messages.bench_command:bench",
        "Measure throughput, latency and the broker's CPU time.",
    ),
    "check": ("ambermq.tools.monitor.check_command:check", "Judge the health of a broker and its queues, for probes."),
    "completion": (
        "ambermq.tools.completion:completion",
        "Print the script that completes commands in SHELL.",
    ),
    "config": ("ambermq.tools.settings.commands:config", "Show, check, explain and reload the configuration."),
    "connections": (
        "ambermq.tools.monitor.listings:connections",
        "List, show and close the connections of all virtual hosts.",
    ),
    "context": ("ambermq.tools.contexts.command:context", "Name brokers, and choose the one that commands use."),
    "detach": (
        "ambermq.tools.wiring.attachment_commands:detach",
        "Remove an attachment: MUXER stops sending to MEMBER.",
    ),
    "dlq": ("ambermq.tools.dead_letters.commands:dlq", "List, show, redrive and purge dead letters."),
    "doctor": (
        "ambermq.tools.doctor.command:doctor",
        "Check what this machine does to a broker, and give advice.",
    ),
    "docs": ("ambermq.tools.documentation:docs", "Print a PAGE of the documentation, or list the pages."),
    "history": ("ambermq.tools.history.commands:history", "Show what happened to queues and messages, and when."),
    "links": ("ambermq.tools.monitor.listings:links", "List, show and close the links of all connections."),
    "log": ("ambermq.tools.history.log_commands:log", "Read, verify, repair and compact the log in a data directory."),
    "muxer": (
        "ambermq.tools.wiring.muxer_commands:muxer",
        "List, show, declare, update and delete muxers.",
    ),
    "proxy": ("ambermq.tools.proxy.commands:proxy", "Record, print and replay AMQP 1.0 connections of any client."),
    "queue": (
        "ambermq.tools.wiring.queue_commands:queue",
        "List, show, browse, declare, change, delete and purge queues.",
    ),
    "receive": (
        "ambermq.tools.messages.receive_command:receive",
        "Receive messages from ADDRESS and print them, one a line.",
    ),
    "route": (
        "ambermq.tools.wiring.route_command:route",
        "Show where a message to ADDRESS would go, and why.",
    ),
    "script": (
        "ambermq.tools.scripts.commands:script",
        "Run scripts of AMQP clients, to reproduce a bug without code.",
    ),
    "schedule": (
        "ambermq.tools.dead_letters.schedule:schedule",
        "List and cancel scheduled messages.",
    ),
    "send": (
        "ambermq.tools.messages.send_command:send",
        "Send messages to ADDRESS and wait until they are accepted.",
    ),
    "serve": (
        "ambermq.tools.broker.serve_command:serve",
        "Run the broker on the directory DIR until SIGTERM or SIGINT.",
    ),
    "sessions": (
        "ambermq.tools.monitor.listings:sessions",
        "List, show and close the sessions of all connections.",
    ),
    "snapshot": (
        "ambermq.tools.snapshots.commands:snapshot",
        "Take, list, verify, compare, export and restore snapshots.",
    ),
    "status": (
        "ambermq.tools.monitor.status_command:status",
        "Show the health of a broker, its rates, and its deepest queues.",
    ),
    "subscription": (
        "ambermq.tools.wiring.subscription_commands:subscription",
        "List, show and delete subscriptions.",
    ),
    "top": (
        "ambermq.tools.monitor.top_command:top",
        "Watch the health, the rates and the deepest queues of a broker.",
    ),
    "user": (
        "ambermq.tools.access.user_commands:user",
        "Add, list, delete, enable, disable and import users.",
    ),
    "vhost": (
        "ambermq.tools.vhosts.commands:vhost",
        "List, show, create, copy, reset and delete virtual hosts.",
    ),
    "wiring": (
        "ambermq.tools.wiring.commands:wiring",
        "Export, compare, apply and draw muxers, queues, attachments.",
    ),
}
"""Name to "module:attribute" and the first line of help."""

_EXIT_CODES = "\n".join(f"  {code.value:>2}  {code.meaning}" for code in ExitCode)


class _Ambermq(LazyGroup):
    """The outermost group; it checks the standard streams before it parses the command line."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Parse the command line; `--help` and `--version` print and exit here."""
        is_json = is_json_requested(args)

        def make() -> click.Context:
            check_streams()
            return super(_Ambermq, self).make_context(info_name, args, parent, **extra)

        context = _with_json_errors(lambda: translating(make), is_json=is_json)
        context.meta[_JSON_KEY] = is_json
        return context

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; its errors are JSON if its output is."""
        return _with_json_errors(lambda: super(_Ambermq, self).invoke(ctx), is_json=bool(ctx.meta.get(_JSON_KEY)))


def _with_json_errors(run: Callable[[], _Result], *, is_json: bool) -> _Result:
    try:
        return run()
    except click.ClickException as error:
        if not is_json:
            raise
        raise JsonError(error) from error


def _check_package(_context: click.Context, _option: click.Parameter, directory: str | None) -> None:
    if directory is not None:
        check_package_directory(directory)


@click.group(
    cls=_Ambermq,
    lazy=_COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=f"\b\nExit codes:\n{_EXIT_CODES}\n\n\b\nExample: ambermq serve --data ./data",
)
@click.version_option(__version__)
@click.option(
    DIRECTORY_OPTION,
    metavar="DIR",
    hidden=True,
    is_eager=True,
    expose_value=False,
    callback=_check_package,
    help="Directory of the parent's package; only a parent process sets it.",
)
def main() -> None:
    """Run, use and inspect a durable AMQP 1.0 message broker.

    A command that needs a broker takes --url, or --data with the directory of a running broker. Without both it uses
    AMBERMQ_URL or AMBERMQ_DATA, or else the current context (`ambermq context`).
    """
