"""The container ids that are connected to one virtual host (AMQP Connection Uniqueness).

Rule 1. A connection that desires `sole-connection-for-container` is refused while its container id is connected. Other
        connections are accepted: detection is weak, and our open says so.
        With the enforcement policy close-existing the others are closed for it instead.
Rule 2. An id is an id of its user alone: no user blocks or closes the connections of another one. A connection that
        waits for its first token has no user, and is not counted.
Rule 3. Connections with an empty container id are different containers.
Rule 4. A container id is bounded: the log stores it with each link, and a subscription keeps it.
"""

from collections import Counter
from typing import Final, final

from ambermq.protocol.amqp10.performatives.classes import Error, Open
from ambermq.protocol.amqp10.spec import AmqpCondition
from ambermq.protocol.amqp10.types.values import Symbol, UInt
from ambermq.protocol.auth.identity import Identity

__all__ = ["CLOSED_FOR_ANOTHER", "DETECTION", "SOLE_CONNECTION", "ContainerIds", "closes_existing"]

SOLE_CONNECTION: Final = Symbol("sole-connection-for-container")
"""The capability, desired and offered. Qpid JMS always desires it: its client ids are container ids."""
DETECTION: Final = {Symbol("sole-connection-detection-policy"): UInt(1)}
"""The property of our open: weak detection (soleconn, 2.1). Without it a peer expects the strong one."""
_ENFORCEMENT: Final = "sole-connection-enforcement-policy"
_CLOSE_EXISTING: Final = 1
CLOSED_FOR_ANOTHER: Final = Error(
    condition=Symbol(AmqpCondition.RESOURCE_LOCKED),
    description="another connection of this container demands to be the only one",
    info={Symbol("sole-connection-enforcement"): True},
)
"""The error of a connection that is closed for a new one."""
_REFUSAL: Final = {Symbol("invalid-field"): Symbol("container-id")}
"""The info of the close's error; Qpid JMS raises an InvalidClientIDException for it."""


@final
class ContainerIds:
    """The number of connections of each user and container id to one virtual host."""

    __slots__ = ("_counts", "_id_bytes_max")

    def __init__(self, *, id_bytes_max: int) -> None:
        """Create it with no connections. `id_bytes_max` bounds an id, in bytes of UTF-8."""
        self._id_bytes_max = id_bytes_max
        self._counts: Counter[tuple[Identity, str]] = Counter()

    def enter(self, remote: Open, user: Identity) -> Error | None:
        """Count a connection of a user by its open frame; return an Error instead if it must be refused."""
        container = remote.container_id
        if not container:
            return None
        size = len(container.encode())
        if size > self._id_bytes_max:
            limit = f"at most {self._id_bytes_max} are allowed (container_id_bytes_max)"
            return _refused(f"the container id has {size} bytes: {limit}")
        if user.awaits_token:
            return None
        key = user, container
        if self._counts[key] and SOLE_CONNECTION in (remote.desired_capabilities or ()):
            return _refused(f"container {container!r:.80} is connected already, and demands to be connected once")
        self._counts[key] += 1
        return None

    def leave(self, container: str, user: Identity) -> None:
        """Remove a connection from the count; an empty id, and one without a user, was not counted."""
        if container and not user.awaits_token:
            key = user, container
            self._counts[key] -= 1
            if not self._counts[key]:
                del self._counts[key]


def closes_existing(remote: Open) -> bool:
    """Return whether an open demands that the other connections of its container are closed for it."""
    policy = (remote.properties or {}).get(_ENFORCEMENT)
    is_sole = bool(remote.container_id) and SOLE_CONNECTION in (remote.desired_capabilities or ())
    return is_sole and isinstance(policy, int) and policy == _CLOSE_EXISTING


def _refused(description: str) -> Error:
    return Error(condition=Symbol(AmqpCondition.INVALID_FIELD), description=description, info=_REFUSAL)
