"""`ambermq acl`: allow, deny and remove rules, grant and revoke roles, list them, and explain a decision.

The commands send requests to a running broker. Without one they change the file `rules` of the data directory.
"""

from collections.abc import Callable
from typing import Any, Final, TypeVar

import click

from ambermq.protocol.auth.access import Action
from ambermq.protocol.auth.address_words import without_host
from ambermq.protocol.auth.identity import Identity
from ambermq.protocol.auth.roles import ROLES
from ambermq.protocol.auth.rules import DEFAULT_VHOST, EVERY_VHOST, Effect, Rule, actions_named
from ambermq.tools.access.backends import RuleBackend, RunningRules, backend_of
from ambermq.tools.client.broker_option import broker_url, data_directory, place_options
from ambermq.tools.client.named_place import named_place
from ambermq.tools.terminal.errors import TranslatingGroup
from ambermq.tools.terminal.exit_codes import ExitCode
from ambermq.tools.terminal.output import list_output_option, output_option, print_done, print_rows, print_values

__all__ = ["acl"]

_Command = TypeVar("_Command", bound=Callable[..., Any])
_COLUMNS: Final = ("effect", "subject", "actions", "pattern", "vhost", "source")


def _vhost_option(default: str) -> Callable[[_Command], _Command]:
    help_text = "Virtual host of the rule; * is every one."
    return click.option("--vhost", metavar="V", default=default, show_default=True, help=help_text)


@click.group(cls=TranslatingGroup, epilog="Example: ambermq acl allow alice send,receive 'orders.#' --data ./data")
def acl() -> None:
    """Allow, deny and explain what users may do.

    A rule names a user or role:NAME, actions, and a pattern of addresses. Actions: create, delete, send, receive,
    browse, replay, manage, or all. What no rule allows is refused, and a deny goes before every allow.
    """


@acl.command("allow", epilog="Example: ambermq acl allow alice send,receive 'orders.#' --data ./data")
@click.argument("subject", metavar="USER")
@click.argument("actions", metavar="ACTION")
@click.argument("pattern")
@_vhost_option(DEFAULT_VHOST)
@place_options
@output_option
def allow(subject: str, actions: str, pattern: str, vhost: str, url: str | None, data: str | None, output: str) -> None:
    """Allow USER the actions ACTION on the addresses of PATTERN.

    USER is a user or role:NAME, and ACTION has commas between several actions.
    """
    _add(Rule(Effect.ALLOW, subject, actions_named(actions), without_host(pattern), vhost), url, data, output)


@acl.command("deny", epilog="Example: ambermq acl deny alice receive 'orders.secret.#' --data ./data")
@click.argument("subject", metavar="USER")
@click.argument("actions", metavar="ACTION")
@click.argument("pattern")
@_vhost_option(DEFAULT_VHOST)
@place_options
@output_option
def deny(subject: str, actions: str, pattern: str, vhost: str, url: str | None, data: str | None, output: str) -> None:
    """Deny USER the actions ACTION on the addresses of PATTERN.

    A denial goes before all that other rules allow.
    """
    _add(Rule(Effect.DENY, subject, actions_named(actions), without_host(pattern), vhost), url, data, output)


@acl.command("grant", epilog="Example: ambermq acl grant bob operator --data ./data")
@click.argument("user")
@click.argument("role")
@_vhost_option(EVERY_VHOST)
@place_options
@output_option
def grant(user: str, role: str, vhost: str, url: str | None, data: str | None, output: str) -> None:
    """Grant USER the role ROLE.

    A role is administrator, operator, monitor, application, or one of your own rules.
    """
    _add(Rule(Effect.GRANT, user, (), role, vhost), url, data, output)


@acl.command("revoke", epilog="Example: ambermq acl revoke bob operator --data ./data")
@click.argument("user")
@click.argument("role")
@_vhost_option(EVERY_VHOST)
@place_options
@output_option
def revoke(user: str, role: str, vhost: str, url: str | None, data: str | None, output: str) -> None:
    """Revoke the role ROLE of USER. Exits 6 if USER does not have it."""
    _remove(Rule(Effect.GRANT, user, (), role, vhost), url, data, output)


@acl.command("remove", epilog="Example: ambermq acl remove allow alice send,receive 'orders.#' --data ./data")
@click.argument("effect", type=click.Choice([Effect.ALLOW.value, Effect.DENY.value]))
@click.argument("subject", metavar="USER")
@click.argument("actions", metavar="ACTION")
@click.argument("pattern")
@_vhost_option(DEFAULT_VHOST)
@place_options
@output_option
def remove(
    effect: str, subject: str, actions: str, pattern: str, vhost: str, url: str | None, data: str | None, output: str
) -> None:
    """Remove one rule, written as it was added. Exits 6 if there is none."""
    rule = Rule(Effect(effect), subject, actions_named(actions), without_host(pattern), vhost)
    _remove(rule, url, data, output)


@acl.command("list", epilog="Example: ambermq acl list --user alice --data ./data --output json")
@click.option("--user", metavar="USER", help="Only the rules that name this user or role:NAME.")
@place_options
@list_output_option
def list_rules(user: str | None, url: str | None, data: str | None, output: str) -> None:
    """List all rules.

    The source `configuration` marks those that the configuration implies.
    """
    rows = [row for row in _backend(url, data).rows() if user in (None, row["subject"])]
    if output == "table":
        rows = [{**row, "actions": ",".join(row["actions"])} for row in rows]
    print_rows(rows, _COLUMNS, output)


@acl.command("test", epilog="Example: ambermq acl test alice send orders.eu --data ./data")
@click.argument("user")
@click.argument("action", type=click.Choice([action.value for action in Action]))
@click.argument("address")
@_vhost_option(DEFAULT_VHOST)
@place_options
@output_option
def test(user: str, action: str, address: str, vhost: str, url: str | None, data: str | None, output: str) -> None:
    """Explain whether USER may do ACTION on ADDRESS.

    Exits 10 if it is not allowed.

    An address with * or # is a pattern, such as the topic of a subscription: all of it must be allowed.
    """
    rules, address = _backend(url, data).rules(), without_host(address)
    is_pattern = not {"*", "#"}.isdisjoint(address.replace("/", ".").split("."))
    decide = rules.decide_all if is_pattern else rules.decide
    decision = decide(Identity(user), vhost, Action(action), address)
    values = {"user": user, "action": action, "address": address, "vhost": vhost}
    print_values({**values, "allowed": decision.is_allowed, "reason": decision.reason}, output)
    if not decision.is_allowed:
        raise click.exceptions.Exit(ExitCode.NOT_ALLOWED)


def _add(rule: Rule, url: str | None, data: str | None, output: str) -> None:
    if rule.effect is Effect.GRANT and rule.pattern not in ROLES:
        click.echo(
            f"note: {rule.pattern!r} is a role of your own: rules for role:{rule.pattern} say what it does", err=True
        )
    is_new = _backend(url, data).add(rule)
    print_done(f"{'added' if is_new else 'exists'}: {rule}", {"name": str(rule), "created": is_new}, output)


def _remove(rule: Rule, url: str | None, data: str | None, output: str) -> None:
    _backend(url, data).remove(rule)
    print_done(f"removed: {rule}", {"name": str(rule), "deleted": True}, output)


def _backend(url: str | None, data: str | None) -> RuleBackend:
    place = named_place(url, data)
    if place.data:
        return backend_of(data_directory(place.data, must_exist=False))
    return RunningRules(broker_url(url, data))
