"""The two places where `ambermq user` works: the file of a stopped broker, and the management of a running one.

Rule 1. The file is changed under the lock of the directory, so no broker starts meanwhile.
Rule 2. A directory that no broker has used yet is created, 0700: users come before the first start.
Rule 3. No password and no key passes a network in clear text: neither to a broker nor from it.
Rule 4. Both places refuse the same mistakes. Only a running broker keeps its last administrator.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol, final

from ambermq.log.manifest.writer_lock import lock_path
from ambermq.log.storage.disk import DiskStorage
from ambermq.protocol.auth.users import User, Users
from ambermq.protocol.auth.verifier import BadCredential, Verifier, checked_name, checked_password
from ambermq.protocol.management.access.users import USER_TYPE
from ambermq.protocol.server_limits import ServerLimits
from ambermq.tools.broker.users.user_administration import (
    check_roles,
    mechanisms_of,
    new_verifier,
    with_new_key,
    without_key,
)
from ambermq.tools.broker.users.user_file import load_users, save_users
from ambermq.tools.client.broker_option import broker_of_directory, broker_url, data_directory
from ambermq.tools.client.broker_url import BrokerUrl
from ambermq.tools.client.link_client import LinkClient
from ambermq.tools.client.management_client import Management
from ambermq.tools.client.named_place import named_place
from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.exit_codes import ExitCode

__all__ = ["BrokerUsers", "StoredUsers", "UserBackend", "user_backend"]


class UserBackend(Protocol):
    """A place where users are kept."""

    def rows(self) -> Iterable[dict[str, Any]]:
        """Return the attributes of all users."""

    def create(self, name: str, password: str, roles: Sequence[str], *, plain_only: bool) -> None:
        """Add a user."""

    def update(self, name: str, **attributes: Any) -> None:
        """Change attributes of a user: password, plain_only, roles, enabled."""

    def delete(self, name: str) -> None:
        """Delete a user."""

    def add_key(self, name: str) -> tuple[str, str]:
        """Add a token key to a user; return its id and the key."""

    def delete_key(self, name: str, key_id: str) -> None:
        """Delete a token key of a user; `*` for all."""


@final
class BrokerUsers:
    """The users of a running broker."""

    def __init__(self, management: Management) -> None:
        self._management = management

    def rows(self) -> Iterable[dict[str, Any]]:
        """See UserBackend."""
        return self._management.rows(USER_TYPE)

    def create(self, name: str, password: str, roles: Sequence[str], *, plain_only: bool) -> None:
        """See UserBackend."""
        body = {"password": password, "roles": list(roles), "plain_only": plain_only}
        self._management.request("CREATE", USER_TYPE, {"name": name}, body)

    def update(self, name: str, **attributes: Any) -> None:
        """See UserBackend."""
        self._management.request("UPDATE", USER_TYPE, {"name": name}, attributes)

    def delete(self, name: str) -> None:
        """See UserBackend."""
        self._management.request("DELETE", USER_TYPE, {"name": name})

    def add_key(self, name: str) -> tuple[str, str]:
        """See UserBackend."""
        _, answer = self._management.request("UPDATE", USER_TYPE, {"name": name}, {"new_key": True})
        return str(answer["key_id"]), str(answer["key"])

    def delete_key(self, name: str, key_id: str) -> None:
        """See UserBackend."""
        self._management.request("UPDATE", USER_TYPE, {"name": name}, {"delete_key": key_id})


@final
class StoredUsers:
    """The users in the file of a directory without a running broker."""

    def __init__(self, directory: str, limits: ServerLimits) -> None:
        self._directory = directory
        self._limits = limits

    def rows(self) -> Iterable[dict[str, Any]]:
        """See UserBackend."""
        for user in self._load():
            roles, mechanisms = list(user.roles), list(mechanisms_of(user))
            values = {"enabled": user.is_enabled, "roles": roles, "mechanisms": mechanisms}
            keys = [key.id for key in user.keys]
            yield {"name": user.name, **values, "configured": False, "connections": 0, "keys": keys}

    def create(self, name: str, password: str, roles: Sequence[str], *, plain_only: bool) -> None:
        """See UserBackend."""

        def made(users: Users) -> User:
            if users.find(name) is not None:
                raise ToolError(f"there is a user {name!r} already", where=self._directory)
            if len(users) >= self._limits.users_max:
                raise ToolError(f"at most {self._limits.users_max} users (users_max)", where=self._directory)
            verifier = self._verifier(password, plain_only=plain_only)
            return User(checked_name(name), verifier, check_roles(roles))

        self._change(made)

    def update(self, name: str, **attributes: Any) -> None:
        """See UserBackend."""

        def changed(users: Users) -> User:
            user = self._find(users, name)
            if "roles" in attributes:
                user = replace(user, roles=check_roles(attributes["roles"]))
            if "enabled" in attributes:
                user = replace(user, is_enabled=attributes["enabled"])
            if "password" in attributes:
                plain_only = bool(attributes.get("plain_only"))
                user = replace(user, verifier=self._verifier(attributes["password"], plain_only=plain_only))
            return user

        self._change(changed)

    def delete(self, name: str) -> None:
        """See UserBackend."""
        with self._locked():
            users = self._load()
            self._find(users, name)
            users.remove(name)
            save_users(self._directory, users.secret, users.stored())

    def add_key(self, name: str) -> tuple[str, str]:
        """See UserBackend."""
        self._change(lambda users: with_new_key(self._find(users, name), self._limits.user_keys_max))
        user = self._find(self._load(), name)
        return user.keys[-1].id, user.keys[-1].key.decode()

    def delete_key(self, name: str, key_id: str) -> None:
        """See UserBackend."""
        self._change(lambda users: without_key(self._find(users, name), key_id))

    def _change(self, change: Callable[[Users], User]) -> None:
        with self._locked():
            users = self._load()
            try:
                users.put(change(users))
            except BadCredential as error:
                raise ToolError(str(error), code=ExitCode.USAGE) from error
            save_users(self._directory, users.secret, users.stored())

    @contextmanager
    def _locked(self) -> Iterator[None]:
        Path(self._directory).mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = DiskStorage().lock(lock_path(self._directory))
        try:
            yield
        finally:
            lock.release()

    def _load(self) -> Users:
        return load_users(self._directory, self._limits.scram_iterations)

    def _find(self, users: Users, name: str) -> User:
        user = users.find(name)
        if user is None:
            raise ToolError(f"no user {name!r}", where=self._directory, code=ExitCode.NOT_FOUND)
        return user

    def _verifier(self, password: str, *, plain_only: bool) -> Verifier:
        return new_verifier(checked_password(password), self._limits.scram_iterations, plain_only=plain_only)


@contextmanager
def user_backend(
    url: str | None, data: str | None, limits: ServerLimits, *, may_create: bool = False, has_secret: bool = False
) -> Iterator[UserBackend]:
    """Yield the users of a running broker, or those in the file of a directory without one.

    `may_create` says whether the directory may be missing, `has_secret` whether a password or a key is sent.
    """
    named = named_place(url, data)
    if named.data:
        directory = data_directory(named.data, must_exist=not may_create)
        if broker_of_directory(directory) is None:
            yield StoredUsers(directory, limits)
            return
    place = BrokerUrl.parse(broker_url(url, data))
    if has_secret:
        _check_hidden(place)
    with LinkClient.connect(place) as client:
        yield BrokerUsers(Management(client))


def _check_hidden(place: BrokerUrl) -> None:
    """Raise ToolError if other machines could read a secret on its way; the login itself is a secret, too."""
    if not place.hides_bytes:
        raise ToolError(
            "a password or a key is not sent over plain TCP to another machine",
            where=str(place),
            advice="use amqps://, or run the command on the broker's machine with --data",
            code=ExitCode.USAGE,
        )
