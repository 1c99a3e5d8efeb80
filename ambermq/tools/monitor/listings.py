"""`ambermq connections`, `sessions` and `links`: list, show and close what peers have opened."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import click

from ambermq.engine.history.timestamps import iso_time
from ambermq.tools.client.broker_option import broker_url, place_options
from ambermq.tools.monitor.reading import monitoring
from ambermq.tools.terminal.durations import duration_text
from ambermq.tools.terminal.errors import TranslatingGroup
from ambermq.tools.terminal.output import list_output_option, output_option, print_done, print_rows, print_values

__all__ = ["connections", "links", "sessions"]


class _Kind(NamedTuple):
    """One kind of object."""

    noun: str
    type: str
    """The management type."""
    columns: tuple[str, ...]


_CONNECTIONS: Final = _Kind(
    "connection", "org.ambermq.connection", ("name", "peer", "user", "vhost", "links", "in", "out", "idle")
)
_SESSIONS: Final = _Kind(
    "session", "org.ambermq.session", ("name", "peer", "user", "vhost", "state", "links", "unsettled")
)
_LINKS: Final = _Kind(
    "link", "org.ambermq.link", ("name", "role", "address", "state", "credit", "unsettled", "messages")
)


def _row(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes with the short columns of a table."""
    idle_us = values.get("idle_us")
    return {
        **values,
        "in": values.get("messages_in"),
        "out": values.get("messages_out"),
        "idle": None if idle_us is None else duration_text(idle_us),
    }


def _list(kind: _Kind, url: str | None, data: str | None, output: str, **filters: Any) -> None:
    with monitoring(broker_url(url, data)) as management:
        rows = management.rows(kind.type, **filters)
        print_rows((_row(row) if output == "table" else row for row in rows), kind.columns, output)


def _show(kind: _Kind, name: str, url: str | None, data: str | None, output: str) -> None:
    with monitoring(broker_url(url, data)) as management:
        values = management.request("READ", kind.type, {"name": name})[1]
        if output == "table" and values.get("until_us"):
            values["until"] = iso_time(values.pop("until_us"))
        print_values(values, output)


def _close(kind: _Kind, name: str, url: str | None, data: str | None, output: str) -> None:
    with monitoring(broker_url(url, data)) as management:
        management.request("DELETE", kind.type, {"name": name})
    print_done(f"closed {kind.noun} {name}", {"name": name, "closed": True}, output)


@click.group(cls=TranslatingGroup, epilog="Example: ambermq connections list --data ./data")
def connections() -> None:
    """List, show and close the connections of all virtual hosts."""


@connections.command("list", epilog="Example: ambermq connections list --data ./data --output ndjson")
@place_options
@list_output_option
def list_connections(url: str | None, data: str | None, output: str) -> None:
    """List all connections, the oldest first.

    JSON has every attribute.
    """
    _list(_CONNECTIONS, url, data, output)


@connections.command("show", epilog="Example: ambermq connections show 7 --data ./data")
@click.argument("name")
@place_options
@output_option
def show_connection(name: str, url: str | None, data: str | None, output: str) -> None:
    """Show all attributes of the connection NAME.

    NAME is the number in the list. Exits 6 if there is no such connection.
    """
    _show(_CONNECTIONS, name, url, data, output)


@connections.command("close", epilog="Example: ambermq connections close 7 --data ./data")
@click.argument("name")
@place_options
@output_option
def close_connection(name: str, url: str | None, data: str | None, output: str) -> None:
    """Close the connection NAME with amqp:connection:forced.

    What its consumers hold goes back to the queues. Most clients connect again. Exits 6 if there is no such connection.
    """
    _close(_CONNECTIONS, name, url, data, output)


def _of_option(command: Any) -> Any:
    return click.option("--connection", metavar="N", help="Only those of connection N.")(command)


@click.group(cls=TranslatingGroup, epilog="Example: ambermq sessions list --data ./data")
def sessions() -> None:
    """List, show and close the sessions of all connections."""


@sessions.command("list", epilog="Example: ambermq sessions list --connection 7 --data ./data")
@_of_option
@place_options
@list_output_option
def list_sessions(connection: str | None, url: str | None, data: str | None, output: str) -> None:
    """List all sessions, those of the oldest connection first.

    JSON has every attribute.
    """
    _list(_SESSIONS, url, data, output, **_filter(connection))


@sessions.command("show", epilog="Example: ambermq sessions show 7.0 --data ./data")
@click.argument("name")
@place_options
@output_option
def show_session(name: str, url: str | None, data: str | None, output: str) -> None:
    """Show all attributes of the session NAME.

    NAME is the connection's number and the channel. Exits 6 if there is no such session.
    """
    _show(_SESSIONS, name, url, data, output)


@sessions.command("close", epilog="Example: ambermq sessions close 7.0 --data ./data")
@click.argument("name")
@place_options
@output_option
def close_session(name: str, url: str | None, data: str | None, output: str) -> None:
    """End the session NAME and its links with amqp:link:detach-forced.

    Exits 6 if there is no such session.
    """
    _close(_SESSIONS, name, url, data, output)


@click.group(cls=TranslatingGroup, epilog="Example: ambermq links list --data ./data")
def links() -> None:
    """List, show and close the links of all connections."""


@links.command("list", epilog="Example: ambermq links list --connection 7 --data ./data --output json")
@_of_option
@place_options
@list_output_option
def list_links(connection: str | None, url: str | None, data: str | None, output: str) -> None:
    """List all links, the oldest first and suspended ones last.

    JSON has every attribute.
    """
    _list(_LINKS, url, data, output, **_filter(connection))


@links.command("show", epilog="Example: ambermq links show 7.0.2 --data ./data")
@click.argument("name")
@place_options
@output_option
def show_link(name: str, url: str | None, data: str | None, output: str) -> None:
    """Show all attributes of the link NAME.

    NAME is the connection's number, the channel and the handle, or the name of a suspended link.
    Exits 6 if there is no such link.
    """
    _show(_LINKS, name, url, data, output)


@links.command("close", epilog="Example: ambermq links close 7.0.2 --data ./data")
@click.argument("name")
@place_options
@output_option
def close_link(name: str, url: str | None, data: str | None, output: str) -> None:
    """Detach the link NAME with amqp:link:detach-forced.

    What a consumer holds goes back to its queue. A suspended link ends, and cannot be resumed.
    Exits 6 if there is no such link.
    """
    _close(_LINKS, name, url, data, output)


def _filter(connection: str | None) -> dict[str, Any]:
    return {} if connection is None else {"connection": connection}
