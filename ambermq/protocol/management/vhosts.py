"""What `$management` does with virtual hosts: requests of type org.ambermq.vhost become commands to a port.

Rule 1. A virtual host is nothing that an engine could be asked for: the server answers, by the effects Answered and
RefusedCommand with the command's key, when it is done, which may take as long as a log takes to be read.
Rule 2. What is asked here concerns virtual hosts by their name, whichever of them the asking connection belongs to.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol, final

from ambermq.engine.effects import Effect
from ambermq.engine.errors import Refused
from ambermq.engine.model.vhost_mode import VhostMode, mode_named
from ambermq.protocol.management.request_fields import asked_flag, asked_name, asked_number, refuse_unknown

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
"""Of the hostname in an open that names a virtual host."""


@final
@dataclass(frozen=True, slots=True)
class QueryVhosts:
    """Answer with a page of the virtual hosts, the default one first, then in the order in which they were made."""

    key: Any
    offset: int
    count: int


@final
@dataclass(frozen=True, slots=True)
class ReadVhost:
    """Answer with a virtual host's attributes."""

    key: Any
    name: str


@final
@dataclass(frozen=True, slots=True)
class PrepareVhost:
    """Answer with the name of a directory that may be filled with the log of a new virtual host."""

    key: Any
    name: str


@final
@dataclass(frozen=True, slots=True)
class CreateVhost:
    """A virtual host shall exist: an empty one, or what lies in a directory that was prepared."""

    key: Any
    name: str
    directory: str
    """Empty: none was prepared."""
    mode: VhostMode = VhostMode.AUTOMATIC
    """Of an empty one; a log in a directory has said its own."""


@final
@dataclass(frozen=True, slots=True)
class ResetVhost:
    """A virtual host shall be as empty as a new one; what it was stays in its history."""

    key: Any
    name: str


@final
@dataclass(frozen=True, slots=True)
class DeleteVhost:
    """A virtual host shall be gone with all that it ever held."""

    key: Any
    name: str
    force: bool
    """Whether connections that it has are closed; else it is refused."""


VhostCommand = QueryVhosts | ReadVhost | PrepareVhost | CreateVhost | ResetVhost | DeleteVhost


class AnswerPort(Protocol):
    """What takes the answer to a command: the gateway of the virtual host that the asking connection belongs to."""

    @property
    def vhost(self) -> str:
        """The name of the virtual host."""

    def carry_out(self, effects: Iterable[Effect]) -> None:
        """Answer by effects."""


class VhostPort(Protocol):
    """What answers commands about virtual hosts."""

    def ask(self, gateway: AnswerPort, command: VhostCommand) -> None:
        """Answer `gateway` with effects, at once or later."""


def _query(request: Any, asked: Mapping[str, Any], _body: Mapping[str, Any], results_max: int) -> VhostCommand:
    count = min(asked_number(asked, "count", results_max), results_max)
    return QueryVhosts(request, asked_number(asked, "offset", 0), count)


def _read(request: Any, asked: Mapping[str, Any], _body: Mapping[str, Any], _max: int) -> VhostCommand:
    return ReadVhost(request, asked_name(asked, "vhost"))


def _prepare(request: Any, asked: Mapping[str, Any], _body: Mapping[str, Any], _max: int) -> VhostCommand:
    return PrepareVhost(request, asked_name(asked, "vhost"))


def _create(request: Any, asked: Mapping[str, Any], body: Mapping[str, Any], _max: int) -> VhostCommand:
    refuse_unknown(body, "vhost", "directory", "mode")
    directory = body.get("directory", "")
    if not isinstance(directory, str):
        raise Refused("amqp:invalid-field", f"'directory' must be a text, found {directory!r:.80}")
    if directory and "mode" in body:
        raise Refused("amqp:invalid-field", "'mode' is for a new virtual host: what lies in 'directory' has its own")
    mode = mode_named(body.get("mode", VhostMode.AUTOMATIC.text))
    request.status = 201
    return CreateVhost(request, asked_name(asked, "vhost"), str(directory), mode)


def _reset(request: Any, asked: Mapping[str, Any], _body: Mapping[str, Any], _max: int) -> VhostCommand:
    return ResetVhost(request, asked_name(asked, "vhost"))


def _delete(request: Any, asked: Mapping[str, Any], _body: Mapping[str, Any], _max: int) -> VhostCommand:
    request.status = 204
    return DeleteVhost(request, asked_name(asked, "vhost"), asked_flag(asked, "force"))


VHOST_OPERATIONS: Final = {
    "QUERY": _query,
    "READ": _read,
    "PREPARE": _prepare,
    "CREATE": _create,
    "RESET": _reset,
    "DELETE": _delete,
}
