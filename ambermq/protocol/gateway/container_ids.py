"""Which containers are connected to one virtual host, and who may not be twice (AMQP Connection Uniqueness).

Rule 1. Who desires `sole-connection-for-container` is refused while its container id is connected already. Who does not
        desire it comes in as ever, and nobody is thrown out.
Rule 2. Where containers are nameless none is another one's.
Rule 3. A container id is bounded: it is written down with each link, and stays as long as a subscription.
"""

from collections import Counter
from typing import Final, final

from ambermq.protocol.amqp10.performatives.classes import Error, Open
from ambermq.protocol.amqp10.spec import AmqpCondition
from ambermq.protocol.amqp10.types.values import Symbol

__all__ = ["SOLE_CONNECTION", "ContainerIds"]

SOLE_CONNECTION: Final = Symbol("sole-connection-for-container")
"""The capability, desired and offered. Qpid JMS desires it always: its client ids are container ids."""
_REFUSAL: Final = {Symbol("invalid-field"): Symbol("container-id")}
"""What the close says besides; Qpid JMS makes an InvalidClientIDException of it."""


@final
class ContainerIds:
    """The container ids of the connections to one virtual host, by how many have each."""

    __slots__ = ("_counts", "_id_bytes_max")

    def __init__(self, *, id_bytes_max: int) -> None:
        """`id_bytes_max` bounds an id, in bytes of UTF-8."""
        self._id_bytes_max = id_bytes_max
        self._counts: Counter[str] = Counter()

    def enter(self, remote: Open) -> Error | None:
        """Count a connection in, by its open; or return why it must not be."""
        container = remote.container_id
        if not container:
            return None
        size = len(container.encode())
        if size > self._id_bytes_max:
            return _refused(f"a container id of {size} bytes: at most {self._id_bytes_max} (container_id_bytes_max)")
        if self._counts[container] and SOLE_CONNECTION in (remote.desired_capabilities or ()):
            return _refused(f"container {container!r:.80} is connected already, and was to be connected once")
        self._counts[container] += 1
        return None

    def leave(self, container: str) -> None:
        """Count a connection out that was counted in; nothing for a nameless one."""
        if container:
            self._counts[container] -= 1
            if not self._counts[container]:
                del self._counts[container]


def _refused(why: str) -> Error:
    return Error(condition=Symbol(AmqpCondition.INVALID_FIELD), description=why, info=_REFUSAL)
