"""The checks of a configuration at the start and at a reload: which users there are, and whether a client can log in.

Rule: a configuration that locks every client out, or that names a user that cannot exist, is refused with a message.
"""

from collections.abc import Sequence

import click

from ambermq.engine.errors import EngineError
from ambermq.protocol.auth.rules import Effect, Rule
from ambermq.protocol.auth.users import ADMINISTRATOR, Users
from ambermq.protocol.auth.verifier import BadCredential, checked_name
from ambermq.protocol.server.listeners.listener_address import ListenerAddress
from ambermq.tools.config.resolution import Resolution
from ambermq.tools.config.settings import Settings
from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.exit_codes import ExitCode

__all__ = ["check_users"]


def check_users(found: Resolution, addresses: Sequence[ListenerAddress], users: Users, anonymous: bool | None) -> None:
    """Raise ToolError or UsageError if no client could log in, or if a permission names an unknown user."""
    _check_names(found.settings)
    _check_permissions(found, users)
    has_users = bool(found.settings.users) or len(users.stored()) > 0
    _check_access(addresses, has_users=has_users, anonymous=anonymous)


def _check_access(addresses: Sequence[ListenerAddress], *, has_users: bool, anonymous: bool | None) -> None:
    """Raise UsageError for a listener on which no client could log in: without users only peers of this machine can."""
    if anonymous or has_users:
        return
    for address in addresses:
        if not address.is_local or (anonymous is False and not address.is_unix):
            shown = address.host or address
            raise click.UsageError(
                f"no client could log in on {shown}: add one with `ambermq user add`, or give --anonymous"
            )


def _check_names(settings: Settings) -> None:
    """Raise ToolError if the configuration has a name that no user can have, such as that of anonymous clients."""
    for name in settings.users:
        try:
            Rule(Effect.GRANT, checked_name(name), (), ADMINISTRATOR)
        except (BadCredential, EngineError) as error:
            raise ToolError("the name of a user is invalid", found=str(error), code=ExitCode.USAGE) from error


def _check_permissions(found: Resolution, stored: Users) -> None:
    """Raise ToolError if a permission names an unknown user."""
    settings = found.settings
    known = settings.users.keys() | {user.name for user in stored}
    for name in settings.permissions.log:
        if name not in known:
            raise ToolError(
                "log names an unknown user",
                where=f"{found.origins.get('permissions.log')} [permissions]",
                expected=f"one of {', '.join(sorted(known)) or 'no users'}",
                found=repr(name),
                code=ExitCode.USAGE,
            )
