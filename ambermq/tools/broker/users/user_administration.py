"""The requests of `$management` about users, carried out one at a time, in the order of their arrival.

Rule 1. The rules say which users may change or read users: those with the role `administrator`, for example. Without
        users every client that the broker accepts may.
Rule 2. A change is written to the file, then the table has it, then its request is answered.
Rule 3. The connections of a deleted or disabled user are closed. A new password leaves them.
Rule 4. A token key is made by the broker. It leaves once, in the answer, and only to a peer that is local or encrypted.
Rule 5. The last enabled administrator is not removed, disabled or stripped of its role.
"""

import asyncio
import secrets
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final, final

import structlog

from ambermq.engine.effects import NOW, Answered, CommandFailed, Effect, RefusedCommand
from ambermq.engine.errors import Refused
from ambermq.protocol.amqp10.performatives.classes import Error
from ambermq.protocol.amqp10.spec import AmqpCondition, ConnectionCondition
from ambermq.protocol.amqp10.types.values import Symbol
from ambermq.protocol.auth.access import Action
from ambermq.protocol.auth.address_words import USERS_ADDRESS
from ambermq.protocol.auth.peer import Peer
from ambermq.protocol.auth.sas_token import KEY_BYTES, new_key
from ambermq.protocol.auth.users import ADMINISTRATOR, ROLES, User, Users
from ambermq.protocol.auth.verifier import (
    SALT_BYTES,
    BadCredential,
    Verifier,
    argon2_verifier,
    checked_name,
    checked_password,
    scram_verifier,
)
from ambermq.protocol.management.access.users import (
    USER_ATTRIBUTES,
    CreateUser,
    DeleteUser,
    QueryUsers,
    ReadUser,
    UpdateUser,
    UserCommand,
)
from ambermq.protocol.management.vhosts import AnswerPort
from ambermq.protocol.server.server import Server
from ambermq.protocol.server_limits import ServerLimits
from ambermq.tools.broker.users.rule_store import RuleStore
from ambermq.tools.broker.users.user_file import has_users_file, save_users

__all__ = [
    "EVERY_KEY",
    "UserAdministration",
    "check_roles",
    "mechanisms_of",
    "new_verifier",
    "with_new_key",
    "without_key",
]

EVERY_KEY: Final = "*"
"""In place of the id of a token key: all of them."""

_SAVE_SECONDS: Final = 60.0
_WAITING_MAX: Final = 100
"""The requests that wait for the ones before them."""


@final
class UserAdministration:
    """The users of a running broker; the event loop's thread calls everything."""

    def __init__(self, directory: str, users: Users, limits: ServerLimits, rules: RuleStore) -> None:
        self.server: Server | None = None
        """The server that answers and closes connections; set before it listens."""
        self._directory = directory
        self._users = users
        self._limits = limits
        self._rules = rules
        self.save_seconds = _SAVE_SECONDS
        """The time between two attempts to write a missing file."""
        self._saving: asyncio.Task[None] | None = None
        self._busy = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()

    def ask(self, gateway: AnswerPort, command: UserCommand) -> None:
        """See UserPort."""
        if len(self._tasks) >= _WAITING_MAX:
            raise Refused(AmqpCondition.RESOURCE_LIMIT_EXCEEDED, f"more than {_WAITING_MAX} requests about users wait")
        task = asyncio.get_running_loop().create_task(self._carry_out(gateway, command))
        # The event loop holds only weak references to tasks.
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def save_missing(self) -> None:
        """Save the secret and the users again and again, if the file could not be written at the start."""
        if len(self._users) and not has_users_file(self._directory):
            self._saving = asyncio.get_running_loop().create_task(self._save_missing())

    async def _save_missing(self) -> None:
        while not has_users_file(self._directory):
            await asyncio.sleep(self.save_seconds)
            async with self._busy:
                with suppress(OSError):
                    await asyncio.to_thread(save_users, self._directory, self._users.secret, self._users.stored())
        structlog.get_logger().info("users saved", data=self._directory)

    async def end(self) -> None:
        """Wait for the running requests."""
        if self._saving is not None:
            self._saving.cancel()
        while self._tasks:
            await asyncio.wait(list(self._tasks))

    async def _carry_out(self, gateway: AnswerPort, command: UserCommand) -> None:
        effect: Effect
        async with self._busy:
            try:
                self._check_right(gateway.vhost, command)
                effect = Answered(command.key, await self._answer(command), NOW)
            except Refused as refused:
                effect = RefusedCommand(command.key, refused.condition, refused.description)
            except BadCredential as error:
                effect = RefusedCommand(command.key, AmqpCondition.INVALID_FIELD, str(error))
            except OSError as error:
                why = f"the users cannot be saved: {error}"
                effect = RefusedCommand(command.key, AmqpCondition.INTERNAL_ERROR, why)
            except Exception as mistake:  # noqa: BLE001 - a bug, which ends only the connection of the command
                effect = CommandFailed(command, mistake)
        if self.server is not None:
            self.server.answer(gateway, [effect])
        # After the answer: the first user ends the connections without a user, and this may be one of them.
        self._rules.set_users(self._users)

    def _check_right(self, vhost: str, command: UserCommand) -> None:
        """Check again: a request before this one may have made the first user, or changed the rights of this one."""
        identity, access = command.key.peer.identity, self._rules.access
        is_read = isinstance(command, QueryUsers | ReadUser)
        if not (is_read or access.decide(identity, vhost, Action.MANAGE, USERS_ADDRESS).is_allowed):
            raise Refused(AmqpCondition.UNAUTHORIZED_ACCESS, "no rule allows the user to manage users")

    async def _answer(self, command: UserCommand) -> Mapping[str, Any]:
        match command:
            case QueryUsers():
                return self._page(command)
            case ReadUser():
                return self._attributes(self._user(command.name))
            case CreateUser():
                return await self._create(command)
            case UpdateUser():
                return await self._update(command)
            case DeleteUser():
                return await self._delete(command.name)

    def _page(self, command: QueryUsers) -> dict[str, Any]:
        users = list(self._users)
        rows = [self._attributes(user) for user in users[command.offset : command.offset + command.count]]
        results = [[row[name] for name in USER_ATTRIBUTES] for row in rows]
        return {"attributeNames": list(USER_ATTRIBUTES), "results": results, "total": len(users)}

    async def _create(self, command: CreateUser) -> Mapping[str, Any]:
        name = checked_name(command.name)
        if self._users.is_stored(name):
            raise Refused(AmqpCondition.PRECONDITION_FAILED, f"there is a user {name!r} already")
        if len(self._users.stored()) >= self._limits.users_max:
            raise Refused(AmqpCondition.RESOURCE_LIMIT_EXCEEDED, f"at most {self._limits.users_max} users (users_max)")
        roles = check_roles(command.roles)
        if not command.enabled or ADMINISTRATOR not in roles:
            # It takes the place of a user of the configuration, which is an administrator.
            self._check_last(name)
        verifier = await self._verifier(command.password, plain_only=command.plain_only)
        user = User(name, verifier, roles, command.enabled)
        await self._put(user)
        return self._attributes(user)

    async def _update(self, command: UpdateUser) -> dict[str, Any]:
        user = self._stored(command.name)
        if command.roles is not None:
            user = replace(user, roles=check_roles(command.roles))
        if command.enabled is not None:
            user = replace(user, is_enabled=command.enabled)
        if command.enabled is False or (command.roles is not None and ADMINISTRATOR not in command.roles):
            self._check_last(command.name)
        if command.password is not None:
            verifier = await self._verifier(command.password, plain_only=command.plain_only)
            user = replace(user, verifier=verifier)
        if command.delete_key:
            user = without_key(user, command.delete_key)
        made = None
        if command.new_key:
            _check_hidden(command)
            user = with_new_key(user, self._limits.user_keys_max)
            made = user.keys[-1]
        await self._put(user)
        if not user.is_enabled:
            self._close(user.name, "disabled")
        return self._attributes(user) | ({} if made is None else {"key": made.key.decode(), "key_id": made.id})

    async def _delete(self, name: str) -> Mapping[str, Any]:
        user = self._stored(name)
        self._check_last(name)
        stored = [each for each in self._users.stored() if each.name != name]
        await asyncio.to_thread(save_users, self._directory, self._users.secret, stored)
        attributes = self._attributes(user)
        self._users.remove(name)
        self._close(name, "deleted")
        return attributes

    async def _put(self, user: User) -> None:
        stored = {each.name: each for each in self._users.stored()} | {user.name: user}
        await asyncio.to_thread(save_users, self._directory, self._users.secret, stored.values())
        self._users.put(user)

    async def _verifier(self, password: str, *, plain_only: bool) -> Verifier:
        found = checked_password(password)
        return await asyncio.to_thread(new_verifier, found, self._limits.scram_iterations, plain_only=plain_only)

    def _check_last(self, name: str) -> None:
        """Raise Refused if a user is the last one that may change users and rules."""
        if self._rules.access.administrators() == {name}:
            why = f"user {name!r:.80} is the last {ADMINISTRATOR}: `ambermq user` with --data can change it"
            raise Refused(AmqpCondition.PRECONDITION_FAILED, f"{why} while no broker runs")

    def _close(self, name: str, what: str) -> None:
        if self.server is not None:
            condition = Symbol(ConnectionCondition.CONNECTION_FORCED)
            self.server.close_user(name, Error(condition=condition, description=f"the user was {what}"))

    def _stored(self, name: str) -> User:
        user = self._user(name)
        if not self._users.is_stored(name):
            why = f"user {name!r:.80} is of the configuration: `ambermq user import` moves it"
            raise Refused(AmqpCondition.PRECONDITION_FAILED, why)
        return user

    def _user(self, name: str) -> User:
        user = self._users.find(name)
        if user is None:
            raise Refused(AmqpCondition.NOT_FOUND, f"no user {name!r:.80}")
        return user

    def _attributes(self, user: User) -> dict[str, Any]:
        connections = 0 if self.server is None else self.server.connections_of(user.name)
        return {
            "name": user.name,
            "enabled": user.is_enabled,
            "roles": list(user.roles),
            "mechanisms": list(mechanisms_of(user)),
            "configured": not self._users.is_stored(user.name),
            "connections": connections,
            "keys": [key.id for key in user.keys],
        }


def new_verifier(password: bytes, iterations: int, *, plain_only: bool) -> Verifier:
    """Return the verifier of a new, prepared password; it takes a tenth of a second."""
    if plain_only:
        return argon2_verifier(password, secrets.token_bytes(SALT_BYTES))
    return scram_verifier(password, (secrets.token_bytes(SALT_BYTES), secrets.token_bytes(SALT_BYTES)), iterations)


def with_new_key(user: User, keys_max: int) -> User:
    """Return a user with a further token key, the last one. Raises BadCredential if it has too many."""
    if len(user.keys) >= keys_max:
        raise BadCredential(f"user {user.name!r:.80} has {len(user.keys)} token keys (user_keys_max): delete one first")
    return replace(user, keys=(*user.keys, new_key(secrets.token_bytes(KEY_BYTES), int(time.time()))))


def without_key(user: User, key_id: str) -> User:
    """Return a user without a token key, `*`: without any. Raises BadCredential if it has no key of that id."""
    kept = tuple(key for key in user.keys if key_id not in (key.id, EVERY_KEY))
    if len(kept) == len(user.keys):
        known = ", ".join(key.id for key in user.keys) or "none"
        raise BadCredential(f"user {user.name!r:.80} has no token key {key_id!r:.80}: it has {known}")
    return replace(user, keys=kept)


def _check_hidden(command: UpdateUser) -> None:
    """Raise Refused if other machines could read the answer to a command."""
    peer: Peer = command.key.peer.peer_info
    if not (peer.is_local or peer.is_encrypted):
        why = "a token key leaves over TLS, the loopback interface or a unix socket only"
        raise Refused(AmqpCondition.NOT_ALLOWED, why)


def check_roles(roles: Sequence[str]) -> tuple[str, ...]:
    """Return the roles of a user. Raises BadCredential for an unknown one."""
    for role in roles:
        if role not in ROLES:
            raise BadCredential(f"no role {role!r:.80}: expected {', '.join(ROLES)}")
    return tuple(roles)


def mechanisms_of(user: User) -> tuple[str, ...]:
    """Return the mechanisms by which a user can log in with its password."""
    return ("PLAIN",) if user.verifier.argon2 else ("SCRAM-SHA-512", "SCRAM-SHA-256", "PLAIN")
