"""The command `ambermq`: the table of its subcommands. What they do stands in a file each, imported when it is run."""

from typing import Any, Final

import click

from ambermq.tools.terminal.errors import translating
from ambermq.tools.terminal.exit_codes import ExitCode
from ambermq.tools.terminal.lazy_group import LazyGroup
from ambermq.tools.terminal.standard_streams import check_streams

__all__ = ["main"]

_COMMANDS: Final = {
    "attach": (
        "ambermq.tools.wiring.attachment_commands:attach",
        "Let MUXER pass messages on to MEMBER, a queue or muxer:NAME, by what the muxer's class wants.",
    ),
    "bench": (
        "ambermq.tools.client.bench_command:bench",
        "Send messages and receive them, and print throughput, latencies and the broker's CPU.",
    ),
    "detach": (
        "ambermq.tools.wiring.attachment_commands:detach",
        "Let MUXER pass messages on to MEMBER no more, by what it was attached by; exits 6 where it was not.",
    ),
    "history": ("ambermq.tools.history.commands:history", "Tell what happened to queues and messages, and when."),
    "log": ("ambermq.tools.history.log_commands:log", "Read, verify, repair and compact the log in a data directory."),
    "muxer": (
        "ambermq.tools.wiring.muxer_commands:muxer",
        "List, show, declare, update and delete muxers, which producers send to and queues attach to.",
    ),
    "queue": (
        "ambermq.tools.wiring.queue_commands:queue",
        "List, show, browse, declare, update, delete and purge queues.",
    ),
    "receive": (
        "ambermq.tools.client.receive_command:receive",
        "Receive messages from ADDRESS and print them, a line each.",
    ),
    "route": (
        "ambermq.tools.wiring.route_command:route",
        "Tell where a message to ADDRESS would go, and why: each muxer on the way, and each attachment that matched.",
    ),
    "send": (
        "ambermq.tools.client.send_command:send",
        "Send messages to ADDRESS and wait until the broker has accepted them.",
    ),
    "serve": ("ambermq.tools.broker.serve:serve", "Run the broker on the directory DIR until SIGTERM or SIGINT."),
    "snapshot": (
        "ambermq.tools.snapshots.commands:snapshot",
        "Take, list, verify, compare, export and restore snapshots of all queues.",
    ),
    "subscription": (
        "ambermq.tools.wiring.subscription_commands:subscription",
        "List, show and delete subscriptions, which receivers make by attaching to topics.",
    ),
    "vhost": (
        "ambermq.tools.vhosts.commands:vhost",
        "List, show, create, copy, reset and delete virtual hosts: brokers within a broker, each with its own log.",
    ),
    "wiring": (
        "ambermq.tools.wiring.commands:wiring",
        "Export, compare and apply a broker's muxers, queues and attachments as a file, and draw them.",
    ),
}
"""Name to where the command stands, and the first sentence of its help."""

_EXIT_CODES = "\n".join(f"  {code.value:>2}  {code.meaning}" for code in ExitCode)


class _Ambermq(LazyGroup):
    """The outermost group: before anything is looked at there must be somewhere to answer."""

    def make_context(self, *arguments: Any, **attributes: Any) -> click.Context:
        """Read the command line; options that answer by themselves do so here."""

        def make() -> click.Context:
            check_streams()
            return super(_Ambermq, self).make_context(*arguments, **attributes)

        return translating(make)


@click.group(
    cls=_Ambermq,
    lazy=_COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=f"\b\nExit codes:\n{_EXIT_CODES}\n\n\b\nExample: ambermq serve --data ./data",
)
@click.version_option(package_name="ambermq")
def main() -> None:
    """Run, use and inspect a durable AMQP 1.0 broker that never forgets how it got where it is.

    Commands that need a broker take --url, or --data, the directory of a running one; AMBERMQ_URL and AMBERMQ_DATA
    stand in where neither is given.
    """
