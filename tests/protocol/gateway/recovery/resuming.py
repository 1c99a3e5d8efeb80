"""A peer that detaches and resumes its links, as frames."""

from typing import Any, final

from ambermq.engine.config import EngineConfig
from ambermq.engine.effects import PublishDone
from ambermq.protocol.amqp10.limits import ConnectionLimits
from ambermq.protocol.amqp10.performatives.base import Composite
from ambermq.protocol.amqp10.performatives.classes import (
    Attach,
    Detach,
    Disposition,
    End,
    Source,
    Target,
    Transfer,
)
from ambermq.protocol.amqp10.serial_number import MASK
from ambermq.protocol.server_limits import ServerLimits
from tests.engine.rig import Rig
from tests.protocol.peers import FIRST_ID, Wire
from tests.protocol.watching import Watching

__all__ = ["FOREVER", "MESSAGE", "Resuming", "transfers"]

MESSAGE = b"\x00\x53\x77\xa1\x01"
FOREVER = {"durable": 2, "expiry_policy": "never"}
"""The fields of a terminus that keeps what is unsettled over restarts."""


def transfers(said: list[tuple[Composite | None, bytes]]) -> list[tuple[Transfer, bytes]]:
    """The transfers among frames, with their payloads."""
    return [(one, bytes(payload)) for one, payload in said if isinstance(one, Transfer)]


@final
class Resuming:
    """One connection of the container `c`."""

    def __init__(
        self,
        rig: Rig | None = None,
        *,
        before: "Resuming | None" = None,
        config: EngineConfig | None = None,
        limits: ServerLimits | None = None,
        connection: ConnectionLimits | None = None,
        container: str = "c",
        max_frame_size: int = 0,
    ) -> None:
        """`before` is another connection to the same broker."""
        rig = rig or (before.rig if before is not None else Rig(config=config or EngineConfig()))
        gateway = None if before is None else before.wire.gateway
        self.wire = Watching(rig, gateway=gateway, container=container, limits=limits, connection=connection)
        if max_frame_size:
            self.wire.peer.connection.remote_frame_bytes_max = max_frame_size
        self.rig = rig
        self.next_id = FIRST_ID

    def publish(self, count: int) -> None:
        """Put messages on the queue `q`."""
        producer = self.rig.producer()
        messages = [MESSAGE + bytes((48 + number,)) for number in range(count)]
        effects = self.rig.do(self.rig.publish(producer, *messages))
        self.wire.gateway.carry_out([effect for effect in effects if type(effect) is not PublishDone])

    def attach(self, *, sends: bool = False, handle: int = 0, name: str = "l", **fields: Any) -> Attach:
        """Attach the link `l` at the queue `q`; `terminus` has the fields of ours."""
        terminus = {"address": "q", **fields.pop("terminus", {})}
        source, target = (Source(), Target(**terminus)) if sends else (Source(**terminus), Target())
        attach = Attach(name=name, handle=handle, role=not sends, source=source, target=target, **fields)
        if sends:
            attach.initial_delivery_count = 0
        (answer,) = [said for said in self.wire.say(attach) if isinstance(said, Attach)]
        return answer

    def receive(self, credit: int = 100, *, handle: int = 0, count: int = 0) -> list[tuple[Transfer, bytes]]:
        """Grant credit; return the transfers that come."""
        return transfers(self.wire.flow(credit, handle=handle, count=count))

    def detach(self, *, handle: int = 0, closed: bool = False) -> list[Composite | None]:
        """Detach a link."""
        return self.wire.say(Detach(handle=handle, closed=closed))

    def send(
        self, tag: bytes, body: bytes = MESSAGE + b"1", *, handle: int = 0, **fields: Any
    ) -> list[Composite | None]:
        """Send one message; return what comes back."""
        fields = {"delivery_id": self.next_id, "message_format": 0, **fields}
        self.next_id = (fields["delivery_id"] + 1) & MASK
        transfer = Transfer(handle=handle, delivery_tag=tag, **fields)
        return [one for one, _ in self.wire.give(Wire.frame(transfer, body))]

    def dispose(self, first: int, *, role: bool = True, **fields: Any) -> list[Composite | None]:
        """Send a disposition."""
        return self.wire.say(Disposition(role=role, first=first, **fields))

    def end_session(self) -> None:
        """End the session."""
        self.wire.say(End())

    def lose(self) -> None:
        """Lose the connection."""
        self.wire.peer.release()
        self.wire.gateway.carry_out(self.rig.do())

    def counts(self) -> list[int]:
        """The delivery-counts of the available messages of the queue."""
        queue = self.rig.queue()
        words = [word for one in queue.available_lists for word in one]
        return [queue.entries[word >> 16].count if word >> 16 in queue.entries else 0 for word in words]
