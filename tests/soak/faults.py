"""The faults that peers bring to a soak: one function for each kind, and each call is one round.

Each peer ends without a goodbye. The broker must give back what it held for it.
"""

import random
import socket
import time
from collections.abc import Callable, Mapping
from typing import Final, final
from urllib.parse import urlsplit

from ambermq.protocol.amqp10.framing.frames import AMQP_HEADER, SASL_HEADER
from ambermq.protocol.amqp10.message.message import Data, Message
from bench.stalls.crowd_peer import CrowdPeer

__all__ = ["FAULTS"]

_LINKS: Final = 300
_LARGE_BYTES: Final = 4 << 20
_SILENT_SECONDS: Final = 3.0

Fault = Callable[[str, random.Random], None]
"""fault(url, chance)."""


@final
class _HalfPeer(CrowdPeer):
    """A peer that writes a part of what it owes."""

    def write_part(self, share: float) -> None:
        """Write a share of all output, as far as the broker reads it within a second."""
        output = b"".join(map(bytes, self._connection.take_output()))
        self._socket.settimeout(1.0)
        self._socket.sendall(output[: int(share * len(output))])


def _half_delivery(url: str, chance: random.Random) -> None:
    """Drop the connection within a large delivery."""
    with _HalfPeer(url, "half") as peer:
        (sender,) = peer.senders(iter(["half"]))
        peer.wait(lambda: sender.credit > 0)
        sender.send_run([0], [Message(body=(Data(bytes(_LARGE_BYTES)),)).encode()])
        peer.write_part(chance.uniform(0.1, 0.9))


def _half_frame(url: str, chance: random.Random) -> None:
    """Announce a frame, write a part of it, and drop the connection."""
    with _connected(url) as stream:
        stream.sendall(SASL_HEADER + (chance.randrange(9, 1 << 16)).to_bytes(4) + b"\x02\x01\x00\x00" + bytes(100))


def _garbage(url: str, chance: random.Random) -> None:
    """Write random bytes behind a valid header, and read until the broker ends the connection."""
    with _connected(url) as stream:
        stream.sendall(chance.choice([AMQP_HEADER, SASL_HEADER, b""]) + chance.randbytes(chance.randrange(8, 5000)))
        deadline = time.monotonic() + _SILENT_SECONDS
        while time.monotonic() < deadline and stream.recv(65536):
            pass


def _links(url: str, _: random.Random) -> None:
    """Attach hundreds of links, and drop the connection."""
    with CrowdPeer(url, "links") as peer:
        peer.receivers("held", _LINKS)


def _silent_reader(url: str, chance: random.Random) -> None:
    """Grant credit for a backlog, read nothing for a while, and drop the connection with all deliveries."""
    with CrowdPeer(url, "silent") as peer:
        peer.receivers("held", credit=2000)
        time.sleep(chance.uniform(0.1, _SILENT_SECONDS))


def _stranger(url: str, _: random.Random) -> None:
    """Connect, and say nothing."""
    with _connected(url):
        time.sleep(0.2)


def _connected(url: str) -> socket.socket:
    place = urlsplit(url)
    return socket.create_connection((place.hostname, place.port), timeout=_SILENT_SECONDS)


FAULTS: Final[Mapping[str, tuple[Fault, float]]] = {
    "half deliveries": (_half_delivery, 1.0),
    "half frames": (_half_frame, 0.3),
    "garbage": (_garbage, 0.3),
    "dropped links": (_links, 2.0),
    "silent readers": (_silent_reader, 1.0),
    "strangers": (_stranger, 0.2),
}
"""Each kind with the pause between two rounds, in seconds."""
