"""The commands `ambermq context add|use|list|show|delete`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import click
from msgspec.structs import asdict, replace

from ambermq.tools.client.broker_url import BrokerUrl
from ambermq.tools.client.context_file import (
    CONTEXTS_MAX,
    Context,
    Contexts,
    change_contexts,
    check_context,
    contexts_path,
    load_contexts,
)
from ambermq.tools.client.named_place import CONTEXT_VARIABLE, complete_context, context_in_force, overriding_variable
from ambermq.tools.terminal.errors import ToolError, TranslatingGroup
from ambermq.tools.terminal.exit_codes import ExitCode
from ambermq.tools.terminal.options import confirm, destructive_options
from ambermq.tools.terminal.output import list_output_option, output_option, print_done, print_rows, print_values

__all__ = ["context"]

_COLUMNS: Final = ("current", "name", "url", "data", "password_file", "tls_ca", "tls_cert", "tls_key")


@click.group(cls=TranslatingGroup, epilog="Example: ambermq context list")
def context() -> None:
    """Name brokers, and choose the one that commands use."""


@context.command(
    "add",
    epilog="Example: ambermq context add production --url amqps://alice@broker.example:5671 --password-file alice.txt",
)
@click.argument("name")
@click.option("--url", metavar="URL", default="", help="Broker, as amqp://[USER@]HOST:PORT, without a password.")
@click.option("--data", metavar="DIR", default="", help="Data directory of the broker, instead of --url.")
@click.option("--password-file", metavar="FILE", default="", help="File with the password of the user in the URL.")
@click.option("--tls-ca", metavar="FILE", default="", help="Authorities that sign the broker's certificate (PEM).")
@click.option("--tls-cert", metavar="FILE", default="", help="Client certificate for amqps:// (PEM).")
@click.option("--tls-key", metavar="FILE", default="", help="Private key of --tls-cert (PEM).")
@click.option("--replace", "replaces", is_flag=True, help="Replace the context NAME if there is one.")
@click.option("--use", "uses", is_flag=True, help="Make it the current context.")
@output_option
def add(name: str, url: str, replaces: bool, uses: bool, output: str, **paths: str) -> None:
    """Add the context NAME: a URL with its files, or a data directory.

    Relative paths become absolute. The files need not exist yet, and their content is not stored.
    """
    if "-" in paths.values():
        raise click.UsageError("a context names files: standard input is none")
    one = Context(
        url=_absolute(url), **{key: str(Path(path).absolute()) if path else "" for key, path in paths.items()}
    )
    if not url and not one.data:
        raise click.UsageError("give --url or --data")
    check_context(name, one)
    if one.password_file and BrokerUrl.parse(one.url or "unix:-").username is None:
        raise click.UsageError("--password-file is of the user in --url: give --url amqp://USER@HOST:PORT")

    def change(known: Contexts) -> Contexts:
        if name in known.contexts and not replaces:
            raise ToolError(f"the context {name!r} exists", advice="give --replace to replace it")
        if name not in known.contexts and len(known.contexts) >= CONTEXTS_MAX:
            raise ToolError(f"there are {CONTEXTS_MAX} contexts, which is the most", advice="delete one")
        return Contexts(name if uses else known.current, known.contexts | {name: one})

    is_current = change_contexts(change).current == name
    advice = "" if is_current else f"; to use it: ambermq context use {name}"
    print_done(f"added {name}{advice}", _values(name, one, is_current=is_current), output)


@context.command("use", epilog="Example: ambermq context use production")
@click.argument("name", required=False, shell_complete=complete_context)
@click.option("--none", "is_none", is_flag=True, help="Use no context.")
@output_option
def use(name: str | None, is_none: bool, output: str) -> None:
    """Make NAME the current context.

    Commands use it unless options or the environment name a broker.
    """
    if is_none is bool(name):
        raise click.UsageError("give the NAME of a context, or --none")

    def change(known: Contexts) -> Contexts:
        if name:
            known.named(name, str(contexts_path()))
        return replace(known, current=name or "")

    change_contexts(change)
    print_done(f"the current context is {name}" if name else "no context is current", {"current": name}, output)


@context.command("list", epilog="Example: ambermq context list --output json")
@list_output_option
def list_contexts(output: str) -> None:
    """List the contexts; `*` marks the current one."""
    known = load_contexts()
    rows = [_values(name, one, is_current=name == known.current) for name, one in sorted(known.contexts.items())]
    if output == "table":
        rows = [{**row, "current": "*" if row["current"] else ""} for row in rows]
    print_rows(rows, _COLUMNS, output)


@context.command("show", epilog="Example: ambermq context show production")
@click.argument("name", required=False, shell_complete=complete_context)
@output_option
def show(name: str | None, output: str) -> None:
    """Show the context NAME, or the one in force and what names it.

    Exits 6 if there is none.
    """
    source = str(contexts_path())
    if name is None:
        if variable := overriding_variable():
            raise ToolError(
                "no context is in force",
                where=variable,
                found="it goes before the current context",
                advice=f"unset {variable}, or give --context NAME to a command",
                code=ExitCode.NOT_FOUND,
            )
        name, source = context_in_force()
        if not name:
            raise ToolError(
                "no context is current",
                where=str(contexts_path()),
                advice=f"choose one: ambermq context use NAME, or set {CONTEXT_VARIABLE}",
                code=ExitCode.NOT_FOUND,
            )
    known = load_contexts()
    one = known.named(name, source)
    values = {**_values(name, one, is_current=name == known.current), "source": source}
    print_values({key: value for key, value in values.items() if value != "" or output == "json"}, output)


@context.command("delete", epilog="Example: ambermq context delete staging --yes")
@click.argument("name", shell_complete=complete_context)
@destructive_options
@output_option
def delete(name: str, dry_run: bool, output: str) -> None:
    """Delete the context NAME. No broker and no file of a password changes."""
    load_contexts().named(name, str(contexts_path()))
    if dry_run:
        print_done(f"would delete {name}", {"dry_run": True, "name": name}, output)
        return
    confirm(lambda: f"This deletes the context {name}")
    was_current = False

    def change(known: Contexts) -> Contexts:
        nonlocal was_current
        known.named(name, str(contexts_path()))
        was_current = known.current == name
        rest = {other: one for other, one in known.contexts.items() if other != name}
        return Contexts("" if was_current else known.current, rest)

    change_contexts(change)
    note = "; no context is current now" if was_current else ""
    print_done(f"deleted {name}{note}", {"name": name, "deleted": True, "was_current": was_current}, output)


def _absolute(url: str) -> str:
    """Return a URL whose unix socket has an absolute path; any other URL as it is."""
    known = BrokerUrl.parse(url) if url.startswith("unix:") else None
    if known is None or known.path.startswith("@"):
        return url
    return str(BrokerUrl.of_socket(str(Path(known.path).absolute()), known.vhost))


def _values(name: str, one: Context, *, is_current: bool) -> Mapping[str, Any]:
    return {"current": is_current, "name": name, **asdict(one)}
