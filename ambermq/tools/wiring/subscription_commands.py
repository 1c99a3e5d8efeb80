"""`ambermq subscription`: list, show and delete subscriptions, over the broker's `$management` node.

With --at the commands read the log, and send no request to a broker.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, TypeVar

import click

from ambermq.engine.decide.delete_subscription import subscription_named
from ambermq.engine.errors import Refused
from ambermq.engine.model.state import State
from ambermq.protocol.management.subscriptions import SUBSCRIPTION_TYPE, subscription_attributes
from ambermq.tools.client.broker_option import broker_options, broker_url
from ambermq.tools.client.broker_url import BrokerUrl
from ambermq.tools.client.link_client import LinkClient
from ambermq.tools.client.management_client import Management
from ambermq.tools.past.low_priority import lower_priority
from ambermq.tools.past.moment_option import at_option
from ambermq.tools.terminal.errors import ToolError, TranslatingGroup
from ambermq.tools.terminal.exit_codes import ExitCode
from ambermq.tools.terminal.options import confirm, destructive_options
from ambermq.tools.terminal.output import (
    list_output_option,
    output_option,
    print_json,
    print_rows,
    print_values,
    print_words,
)

__all__ = ["subscription"]

_COLUMNS: Final = ("queue", "name", "container", "topic", "selector", "durable", "shared", "consumers", "available")
_Command = TypeVar("_Command", bound=Callable[..., Any])


@click.group(cls=TranslatingGroup, epilog="Example: ambermq subscription list --data ./data")
def subscription() -> None:
    """List, show and delete subscriptions.

    A receiver creates a subscription when it attaches to a topic.
    """


def _container_option(command: _Command) -> _Command:
    return click.option(
        "--container", metavar="ID", help="Container id of the subscription, if several have the name NAME."
    )(command)


@subscription.command("list", epilog="Example: ambermq subscription list --data ./data --output json")
@at_option
@broker_options
@list_output_option
def list_subscriptions(at: str | None, url: str | None, data: str | None, output: str) -> None:
    """List all subscriptions, the oldest first.

    JSON has every attribute.
    """
    if at is not None:
        state = _state_at(at, url, data)
        rows = [subscription_attributes(state, one) for one in sorted(state.subscriptions.keys())]
        print_rows(rows, _COLUMNS, output)
        return
    with _management(url, data) as management:
        print_rows(management.rows(SUBSCRIPTION_TYPE), _COLUMNS, output)


@subscription.command("show", epilog="Example: ambermq subscription show prices --data ./data")
@click.argument("name")
@_container_option
@at_option
@broker_options
@output_option
def show(name: str, container: str | None, at: str | None, url: str | None, data: str | None, output: str) -> None:
    """Show all attributes of subscription NAME.

    NAME may also be the name of its queue. Exits 6 if there is no such subscription.
    """
    if at is not None:
        state = _state_at(at, url, data)
        print_values(subscription_attributes(state, _named(state, name, container)), output)
        return
    with _management(url, data) as management:
        print_values(management.request("READ", SUBSCRIPTION_TYPE, _properties(name, container))[1], output)


@subscription.command("delete", epilog="Example: ambermq subscription delete prices --force --yes --data ./data")
@click.argument("name")
@_container_option
@click.option("--force", is_flag=True, help="End the links that receive from it. Default: refuse if there are any.")
@destructive_options
@broker_options
@output_option
def delete(
    name: str,
    container: str | None,
    force: bool,
    dry_run: bool,
    url: str | None,
    data: str | None,
    output: str,
) -> None:
    """Delete the subscription NAME with its messages.

    NAME may also be the name of its queue. Exits 6 if there is no such subscription.
    """
    if dry_run:
        row = _read(name, container, url, data)
        if row["consumers"] and not force:
            raise ToolError(f"the subscription has {row['consumers']:,} consumers", where=name, advice="give --force")
        if output == "json":
            print_json({"dry_run": True, **row})
        else:
            print_words(f"would delete {_shown(row)}")
        return
    confirm(lambda: f"This deletes the subscription {_shown(_read(name, container, url, data))}")
    with _management(url, data) as management:
        body = management.request("DELETE", SUBSCRIPTION_TYPE, {**_properties(name, container), "force": force})[1]
    messages = int(body.get("messages", 0))
    if output == "json":
        print_json({"name": name, "deleted": True, "messages": messages})
    else:
        print_words(f"deleted {name} with {messages:,} messages")


def _read(name: str, container: str | None, url: str | None, data: str | None) -> dict[str, Any]:
    """Return the attributes of a subscription; the connection ends before a question is asked."""
    with _management(url, data) as management:
        return dict(management.request("READ", SUBSCRIPTION_TYPE, _properties(name, container))[1])


def _shown(row: Mapping[str, Any]) -> str:
    return f"{row['name']} with {row['available']:,} messages and {row['consumers']:,} consumers"


def _properties(name: str, container: str | None) -> dict[str, Any]:
    return {"name": name} if container is None else {"name": name, "container": container}


def _named(state: State, name: str, container: str | None) -> int:
    try:
        return subscription_named(state, name, container)
    except Refused as refusal:
        code = ExitCode.NOT_FOUND if refusal.condition == "amqp:not-found" else ExitCode.FAILED
        raise ToolError(f"{refusal.description} at this moment", where=name, code=code) from refusal


def _state_at(at: str, url: str | None, data: str | None) -> State:
    lower_priority()
    from ambermq.tools.past.past_access import offset_of, opened_past, state_of  # noqa: PLC0415 - an import of 0.1 s that only --at needs

    with opened_past(url, data) as past:
        return state_of(past, offset_of(past, at))


@contextmanager
def _management(url: str | None, data: str | None) -> Iterator[Management]:
    with LinkClient.connect(BrokerUrl.parse(broker_url(url, data))) as client:
        yield Management(client)
