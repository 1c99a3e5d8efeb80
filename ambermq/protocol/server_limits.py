"""What a server may cost: every bound of the gateway and the server has its name here."""

from dataclasses import dataclass
from typing import Final

from ambermq.protocol.amqp10.limits import UINT_MAX, bounded

__all__ = ["ServerLimits"]

_INT_MAX: Final = (1 << 31) - 1
"""What the event loop takes for the bound of a transport's buffer."""


@dataclass(frozen=True, slots=True)
class ServerLimits:
    """The limits of one server; the connections' own stand in ConnectionLimits."""

    connections_max: int = bounded(10_000, least=1)
    """Connections at a time; one more is closed at once."""
    vhosts_max: int = 64
    """Virtual hosts, the default one among them, each with a log of its own; as many may be in preparation."""
    container_id_bytes_max: int = bounded(1024, least=1)
    """The container id of a connection, in UTF-8 bytes: what it attaches is kept by it. A longer one is refused."""
    link_name_bytes_max: int = bounded(1024, least=1)
    """The name of a link, and so that of a subscription, in UTF-8 bytes; a link of a longer one is refused."""
    handshake_ms: int = 10_000
    """A peer that has not opened its connection by then is dropped."""
    credit_max: int = bounded(1000, least=1, most=UINT_MAX)
    """Credit of a producer: pacing only, topped up at half as its messages become durable."""
    run_bytes_max: int = 1 << 20
    """Messages of one command together; a longer run is cut."""
    output_high_bytes: int = bounded(1 << 20, least=1, most=_INT_MAX)
    """A connection with so much unsent gets no more deliveries until its peer has read."""
    output_max_bytes: int = 16 << 20
    """A connection with so much unsent is not read from either."""
    grant_bytes: int = 4 << 20
    """Deliveries handed to one consumer at a time, in bytes of their messages, as large as they are known to be."""
    grant_messages: int = bounded(2000, least=1)
    """Deliveries handed to one consumer at a time."""
    room_low_bytes: int = 64 << 20
    """With less room on the disk, sessions but those that manage are closed to transfers; producers get no credit."""
    goodbye_ms: int = 1000
    """Time for peers to answer our close when the server stops."""
    shutdown_ms: int = 5000
    """Time for peers to take their last frames when the server stops."""
    query_results_max: int = 1000
    """Rows of one management answer; a client pages through the rest."""
    sources_max: int = 1000
    """Links of a virtual host that browse a queue or read the log, and take nothing; one more is refused."""
    source_messages: int = 200
    """Messages handed to all those links in one turn, one an iteration of the event loop."""
    source_bytes: int = 1 << 20
    """Bytes of messages handed to them in one turn: the message that takes it there is the last."""
    browse_ms_max: int = 3_600_000
    """A link that has browsed a queue for so long is ended, for what it shows is kept for it."""
    past_bytes_max: int = 256 << 20
    """Bytes that links which browse the past keep for what they show; one more is refused, but for the first."""
    past_jobs_max: int = 1
    """Questions about a virtual host's past that are worked on at a time, each by a thread of its own."""
    past_waiting_max: int = 100
    """Questions about a virtual host's past that wait; one more is refused."""
