"""Users at the `$management` node: requests of type `org.ambermq.user` become commands to a port.

Rule 1. The broker, not an engine, carries out these commands: users are of the whole broker. It answers by the effects
        Answered and RefusedCommand with the command's key, after the file of the users is durable.
Rule 2. No answer has a password, or what a password is checked against. Only the answer that makes a token key has it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, final

from ambermq.engine.errors import Refused
from ambermq.protocol.management.request_fields import flag_field, name_property, number_field, refuse_unknown
from ambermq.protocol.management.vhosts import AnswerPort

__all__ = [
    "USER_ATTRIBUTES",
    "USER_OPERATIONS",
    "USER_TYPE",
    "CreateUser",
    "DeleteUser",
    "QueryUsers",
    "ReadUser",
    "UpdateUser",
    "UserCommand",
    "UserPort",
]

USER_TYPE: Final = "org.ambermq.user"
USER_ATTRIBUTES: Final = ("name", "enabled", "roles", "mechanisms", "configured", "connections", "keys")
_FIELDS: Final = ("password", "enabled", "roles", "plain_only")
_CHANGES: Final = (*_FIELDS, "new_key", "delete_key")
"""The fields of a body."""


@final
@dataclass(frozen=True, slots=True)
class QueryUsers:
    """Read a page of the users."""

    key: Any
    offset: int
    count: int


@final
@dataclass(frozen=True, slots=True)
class ReadUser:
    """Read the attributes of a user."""

    key: Any
    name: str


@final
@dataclass(frozen=True, slots=True)
class CreateUser:
    """Create a user."""

    key: Any
    name: str
    password: str = field(repr=False)
    roles: tuple[str, ...] = ()
    plain_only: bool = False
    """Whether it has an argon2id hash, for PLAIN alone."""
    enabled: bool = True


@final
@dataclass(frozen=True, slots=True)
class UpdateUser:
    """Change a user; what is None stays."""

    key: Any
    name: str
    password: str | None = field(default=None, repr=False)
    roles: tuple[str, ...] | None = None
    plain_only: bool = False
    """Whether the new password gets an argon2id hash, for PLAIN alone."""
    enabled: bool | None = None
    new_key: bool = False
    """Whether the user gets a further token key, which the answer has."""
    delete_key: str = ""
    """The id of a token key to delete; `*` for all; empty for none."""


@final
@dataclass(frozen=True, slots=True)
class DeleteUser:
    """Delete a user and close its connections."""

    key: Any
    name: str


UserCommand = QueryUsers | ReadUser | CreateUser | UpdateUser | DeleteUser


class UserPort(Protocol):
    """The part of the broker that carries out commands about users."""

    def ask(self, gateway: AnswerPort, command: UserCommand) -> None:
        """Carry out a command and answer `gateway` with effects, at once or later."""


def _query(request: Any, properties: Mapping[str, Any], _body: Mapping[str, Any], results_max: int) -> UserCommand:
    count = min(number_field(properties, "count", results_max), results_max)
    return QueryUsers(request, number_field(properties, "offset", 0), count)


def _read(request: Any, properties: Mapping[str, Any], _body: Mapping[str, Any], _max: int) -> UserCommand:
    return ReadUser(request, name_property(properties, "user"))


def _create(request: Any, properties: Mapping[str, Any], body: Mapping[str, Any], _max: int) -> UserCommand:
    refuse_unknown(body, "user", *_FIELDS)
    password = _password(body)
    if password is None:
        raise Refused("amqp:invalid-field", "a new user needs 'password'")
    request.status = 201
    return CreateUser(
        request,
        name_property(properties, "user"),
        password,
        _roles(body) or (),
        flag_field(body, "plain_only"),
        flag_field(body, "enabled", default=True),
    )


def _update(request: Any, properties: Mapping[str, Any], body: Mapping[str, Any], _max: int) -> UserCommand:
    refuse_unknown(body, "user", *_CHANGES)
    enabled = flag_field(body, "enabled", default=True) if "enabled" in body else None
    plain_only = flag_field(body, "plain_only")
    name = name_property(properties, "user")
    new_key, delete_key = flag_field(body, "new_key"), body.get("delete_key", "")
    if not isinstance(delete_key, str):
        raise Refused("amqp:invalid-field", f"'delete_key' must be text, found {type(delete_key).__name__}")
    return UpdateUser(request, name, _password(body), _roles(body), plain_only, enabled, new_key, delete_key)


def _delete(request: Any, properties: Mapping[str, Any], _body: Mapping[str, Any], _max: int) -> UserCommand:
    request.status = 204
    return DeleteUser(request, name_property(properties, "user"))


def _password(body: Mapping[str, Any]) -> str | None:
    password = body.get("password")
    if password is not None and not isinstance(password, str):
        raise Refused("amqp:invalid-field", f"'password' must be text, found {type(password).__name__}")
    return None if password is None else str(password)


def _roles(body: Mapping[str, Any]) -> tuple[str, ...] | None:
    roles = body.get("roles")
    if roles is None:
        return None
    if not isinstance(roles, list | tuple) or not all(isinstance(role, str) for role in roles):
        raise Refused("amqp:invalid-field", f"'roles' must be a list of texts, found {roles!r:.80}")
    return tuple(dict.fromkeys(str(role) for role in roles))


USER_OPERATIONS: Final = {
    "QUERY": _query,
    "READ": _read,
    "CREATE": _create,
    "UPDATE": _update,
    "DELETE": _delete,
}
