"""The rules of a running broker: requests change the file first, then what the broker allows.

Rule 1. One change at a time. A thread writes the file, and the answer leaves when the file is durable.
Rule 2. A change that leaves no user who may change the rules is refused, if there was one.
Rule 3. The number of rules is bounded (RULES_MAX), and so is that of the requests that wait.
Rule 4. The right to a change is checked again when its turn comes: one before it may have made the first user.
"""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, Final, Protocol, final

import structlog

from ambermq.engine.effects import NOW, Answered, CommandFailed, Effect, RefusedCommand
from ambermq.engine.errors import Refused
from ambermq.protocol.amqp10.spec import AmqpCondition
from ambermq.protocol.auth.access import Access, Action
from ambermq.protocol.auth.address_words import USERS_ADDRESS
from ambermq.protocol.auth.rules import Accounts, Rule, RuleSet
from ambermq.protocol.auth.users import Users
from ambermq.protocol.management.access.rules import (
    CreateRule,
    DeleteRule,
    QueryRules,
    ReadRule,
    RuleCommand,
    rule_page,
    rule_row,
    rule_rows,
)
from ambermq.protocol.management.vhosts import AnswerPort
from ambermq.tools.broker.users.rule_file import RULES_MAX, RuleFile

__all__ = ["RuleServer", "RuleStore", "with_users"]

_WAITING_MAX: Final = 100
"""The requests that wait for the ones before them."""


class RuleServer(Protocol):
    """What the store needs of the server."""

    def set_access(self, access: Access) -> None:
        """Change the rules of all virtual hosts."""

    def answer(self, gateway: AnswerPort, effects: Iterable[Effect]) -> None:
        """Send an answer, unless the virtual host of the gateway was deleted."""


@final
class RuleStore:
    """The rules, and the commands that change them; the loop's thread calls everything but the constructor."""

    def __init__(self, directory: str, accounts: Accounts) -> None:
        """Read the file. Raises ToolError with exit code 2 if it is damaged."""
        self._file = RuleFile(directory)
        self.access = RuleSet(self._file.read(), accounts)
        """The present rules."""
        self._server: RuleServer | None = None
        self._busy = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()

    def serve(self, server: RuleServer) -> None:
        """Begin to answer commands for a server."""
        self._server = server

    def set_accounts(self, accounts: Accounts) -> None:
        """Change what the configuration says of users."""
        if accounts != self.access.accounts:
            self._apply(RuleSet(self.access.rules, accounts))

    def set_users(self, users: Users) -> None:
        """Change the users and their roles; what the configuration says besides stays."""
        self.set_accounts(with_users(self.access.accounts, users))

    def ask(self, gateway: AnswerPort, command: RuleCommand) -> None:
        """Carry out a command after the ones before it; `gateway` gets the answer. Raises Refused if too many wait."""
        if len(self._tasks) >= _WAITING_MAX:
            raise Refused(AmqpCondition.RESOURCE_LIMIT_EXCEEDED, f"more than {_WAITING_MAX} requests about rules wait")
        task = asyncio.get_running_loop().create_task(self._carry_out(gateway, command))
        # The event loop holds only weak references to tasks.
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _carry_out(self, gateway: AnswerPort, command: RuleCommand) -> None:
        async with self._busy:
            try:
                self._check_right(gateway.vhost, command)
                effect: Effect = Answered(command.key, await self._answer(command), NOW)
            except Refused as refused:
                effect = RefusedCommand(command.key, refused.condition, refused.description)
            except OSError as error:
                effect = RefusedCommand(command.key, "amqp:internal-error", f"the rules were not written: {error}")
            except Exception as mistake:  # noqa: BLE001 - a bug, which ends only the connection of the command
                effect = CommandFailed(command, mistake)
            if self._server is not None:
                self._server.answer(gateway, [effect])

    def _check_right(self, vhost: str, command: RuleCommand) -> None:
        identity = command.key.peer.identity
        is_read = isinstance(command, QueryRules | ReadRule)
        if not (is_read or self.access.decide(identity, vhost, Action.MANAGE, USERS_ADDRESS).is_allowed):
            raise Refused(AmqpCondition.UNAUTHORIZED_ACCESS, "no rule allows the user to manage rules")

    async def _answer(self, command: RuleCommand) -> dict[str, Any]:
        match command:
            case QueryRules():
                return rule_page(self.access, command)
            case ReadRule():
                return self._row(command.name)
            case CreateRule():
                is_new = command.rule not in self.access.rules
                if is_new:
                    await self._change((*self.access.rules, command.rule), "rule created", command.rule)
                return {**rule_row(command.rule, "rules"), "created": is_new}
            case DeleteRule():
                rule = next((one for one in self.access.rules if str(one) == command.name), None)
                if rule is None:
                    raise Refused("amqp:not-found", f"no rule {command.name!r:.200}")
                await self._change([one for one in self.access.rules if one != rule], "rule deleted", rule)
                return {"name": command.name}

    def _row(self, name: str) -> dict[str, Any]:
        for number, rule in enumerate((*self.access.rules, *self.access.implied())):
            if str(rule) == name:
                return rule_rows(self.access, number, number + 1)[0]
        raise Refused("amqp:not-found", f"no rule {name!r:.200}")

    async def _change(self, rules: Iterable[Rule], event: str, rule: Rule) -> None:
        """Write other rules, and apply them."""
        before = self.access
        # To sort very many rules takes tens of milliseconds.
        after = await asyncio.to_thread(RuleSet, rules, before.accounts)
        if len(after.rules) > RULES_MAX:
            raise Refused("amqp:resource-limit-exceeded", f"at most {RULES_MAX} rules")
        if before.administrators() and not after.administrators():
            why = "no user could change users and rules any more: grant administrator to another user first"
            raise Refused("amqp:precondition-failed", why)
        write: Callable[[Iterable[Rule]], None] = self._file.write
        await asyncio.to_thread(write, after.rules)
        structlog.get_logger().info(event, rule=str(rule))
        is_same = self.access.accounts == after.accounts
        # The users may have changed meanwhile.
        self._apply(after if is_same else RuleSet(after.rules, self.access.accounts))

    def _apply(self, access: RuleSet) -> None:
        self.access = access
        if self._server is not None:
            self._server.set_access(access)


def with_users(accounts: Accounts, users: Users) -> Accounts:
    """Return the accounts with the users of a broker: the stored ones have the roles of their file."""
    configured = frozenset(user.name for user in users if not users.is_stored(user.name))
    roles = {user.name: user.roles for user in users.stored() if user.is_enabled}
    return replace(accounts, users=configured, roles=roles, has_users=len(users) > 0)
