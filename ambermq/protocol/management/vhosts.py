"""Virtual hosts at the `$management` node: requests of type `org.ambermq.vhost` become commands to a port.

Rule 1. The server, not an engine, carries out these commands. It answers by the effects Answered and RefusedCommand
        with the command's key. The answer may take as long as reading a log takes.
Rule 2. A request names its virtual host, whichever virtual host its connection belongs to.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol, final

from ambermq.engine.effects import Effect
from ambermq.engine.errors import Refused
from ambermq.engine.model.vhost_mode import VhostMode, mode_named
from ambermq.protocol.management.peers.ports import CloseEndpoint
from ambermq.protocol.management.request_fields import flag_field, name_property, number_field, refuse_unknown, user_of

__all__ = [
    "HOSTNAME_PREFIX",
    "VHOST_ATTRIBUTES",
    "VHOST_OPERATIONS",
    "VHOST_TYPE",
    "AnswerPort",
    "CreateVhost",
    "DeleteVhost",
    "PrepareVhost",
    "QueryVhosts",
    "ReadVhost",
    "ResetVhost",
    "VhostCommand",
    "VhostPort",
]

VHOST_TYPE: Final = "org.ambermq.vhost"
VHOST_ATTRIBUTES: Final = ("name", "connections", "queues", "messages", "bytes", "log_id", "mode")
HOSTNAME_PREFIX: Final = "vhost:"
"""The prefix of a `hostname` in an open frame that names a virtual host."""


@final
@dataclass(frozen=True, slots=True)
class QueryVhosts:
    """Read a page of the virtual hosts: the default one first, then the others in the order of their creation."""

    key: Any
    offset: int
    count: int


@final
@dataclass(frozen=True, slots=True)
class ReadVhost:
    """Read the attributes of a virtual host."""

    key: Any
    name: str


@final
@dataclass(frozen=True, slots=True)
class PrepareVhost:
    """Reserve a directory for the log of a new virtual host; the answer names it."""

    key: Any
    name: str


@final
@dataclass(frozen=True, slots=True)
class CreateVhost:
    """Create a virtual host: an empty one, or one with the log in a directory that PrepareVhost reserved."""

    key: Any
    name: str
    directory: str
    """The directory that PrepareVhost reserved; empty for an empty virtual host."""
    mode: VhostMode = VhostMode.AUTOMATIC
    """The mode of an empty virtual host; a log in a directory has its own mode."""


@final
@dataclass(frozen=True, slots=True)
class ResetVhost:
    """Empty a virtual host; its history keeps what it contained."""

    key: Any
    name: str
    by: str = ""
    """The user that asks for it; empty if none is known."""


@final
@dataclass(frozen=True, slots=True)
class DeleteVhost:
    """Delete a virtual host with its log, history and snapshots."""

    key: Any
    name: str
    force: bool
    """Whether its connections are closed; without it a virtual host that has connections is not deleted."""


VhostCommand = QueryVhosts | ReadVhost | PrepareVhost | CreateVhost | ResetVhost | DeleteVhost | CloseEndpoint
"""The commands that the server carries out."""


class AnswerPort(Protocol):
    """The receiver of an answer: the gateway of the virtual host that the connection of the request belongs to."""

    @property
    def vhost(self) -> str:
        """The name of the virtual host."""

    def carry_out(self, effects: Iterable[Effect]) -> None:
        """Deliver effects to their requests."""


class VhostPort(Protocol):
    """The part of the server that carries out commands about virtual hosts."""

    def ask(self, gateway: AnswerPort, command: VhostCommand) -> None:
        """Carry out a command and answer `gateway` with effects, at once or later."""


def _query(request: Any, properties: Mapping[str, Any], _body: Mapping[str, Any], results_max: int) -> VhostCommand:
    count = min(number_field(properties, "count", results_max), results_max)
    return QueryVhosts(request, number_field(properties, "offset", 0), count)


def _read(request: Any, properties: Mapping[str, Any], _body: Mapping[str, Any], _max: int) -> VhostCommand:
    return ReadVhost(request, name_property(properties, "vhost"))


def _prepare(request: Any, properties: Mapping[str, Any], _body: Mapping[str, Any], _max: int) -> VhostCommand:
    return PrepareVhost(request, name_property(properties, "vhost"))


def _create(request: Any, properties: Mapping[str, Any], body: Mapping[str, Any], _max: int) -> VhostCommand:
    refuse_unknown(body, "vhost", "directory", "mode")
    directory = body.get("directory", "")
    if not isinstance(directory, str):
        raise Refused("amqp:invalid-field", f"'directory' must be text, found {directory!r:.80}")
    if directory and "mode" in body:
        raise Refused("amqp:invalid-field", "'mode' and 'directory' exclude each other: a log has its own mode")
    mode = mode_named(body.get("mode", VhostMode.AUTOMATIC.text))
    request.status = 201
    return CreateVhost(request, name_property(properties, "vhost"), str(directory), mode)


def _reset(request: Any, properties: Mapping[str, Any], _body: Mapping[str, Any], _max: int) -> VhostCommand:
    return ResetVhost(request, name_property(properties, "vhost"), user_of(request))


def _delete(request: Any, properties: Mapping[str, Any], _body: Mapping[str, Any], _max: int) -> VhostCommand:
    request.status = 204
    return DeleteVhost(request, name_property(properties, "vhost"), flag_field(properties, "force"))


VHOST_OPERATIONS: Final = {
    "QUERY": _query,
    "READ": _read,
    "PREPARE": _prepare,
    "CREATE": _create,
    "RESET": _reset,
    "DELETE": _delete,
}
