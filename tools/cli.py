"""The command `ambermq`: its subcommands, put together. What they do stands in a file each."""

import click

from tools.bench_command import bench
from tools.errors import TranslatingGroup
from tools.exit_codes import ExitCode
from tools.logs import log
from tools.queues import queue
from tools.receive import receive
from tools.send import send
from tools.serve import serve

__all__ = ["main"]

_EXIT_CODES = "\n".join(f"  {code.value:>2}  {code.meaning}" for code in ExitCode)


@click.group(
    cls=TranslatingGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=f"\b\nExit codes:\n{_EXIT_CODES}\n\n\b\nExample: ambermq serve --data ./data",
)
@click.version_option(package_name="ambermq")
def main() -> None:
    """Run, use and inspect a durable AMQP 1.0 broker that never forgets how it got where it is.

    Commands that need a broker take --url, or --data, the directory of a running one; AMBERMQ_URL and AMBERMQ_DATA
    stand in where neither is given.
    """


for _command in (serve, send, receive, queue, log, bench):
    main.add_command(_command)
