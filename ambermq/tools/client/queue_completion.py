"""Names of queues for the completion of a shell, asked of a running broker.

Rule: a completion that fails is empty. It waits at most a second, and prints nothing.
"""

from contextlib import suppress
from threading import Thread
from typing import Final

import click
from click.shell_completion import CompletionItem

from ambermq.tools.client.broker_option import running_broker
from ambermq.tools.client.broker_url import BrokerUrl
from ambermq.tools.client.link_client import LinkClient
from ambermq.tools.client.management_client import QueueManagement
from ambermq.tools.client.named_place import named_place

__all__ = ["complete_queue"]

_SECONDS: Final = 1.0
_NAMES_MAX: Final = 1000


def complete_queue(ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the queues whose names begin with a text; none if no broker answers within a second."""
    found: list[str] = []
    url, data = _place(ctx)
    thread = Thread(target=_list_queues, args=(url, data, found), daemon=True)
    thread.start()
    thread.join(_SECONDS)
    names = [name for name in found[:_NAMES_MAX] if name.startswith(incomplete)]
    return [CompletionItem(name) for name in names]


def _place(ctx: click.Context) -> tuple[str, str]:
    """Return the URL or the data directory of the command line so far, else of environment or context."""
    with suppress(click.ClickException), ctx.scope(cleanup=False):
        place = named_place(ctx.params.get("url"), ctx.params.get("data"))
        return place.url, place.data
    return "", ""


def _list_queues(url: str, data: str, found: list[str]) -> None:
    # Whatever fails, the person at the shell has asked for no message.
    with suppress(Exception, SystemExit):
        url = url or running_broker(data).url
        with LinkClient.connect(BrokerUrl.parse(url)) as client:
            found += sorted(str(row["name"]) for row in QueueManagement(client).queues())
