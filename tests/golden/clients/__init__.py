"""The default messages of every client of the interoperation matrix, as the broker gets them.

Each client has a file, each message a line: its kind, the transfer frame up to the message, the message. Bytes are
hexadecimal; the two together are the whole frame. `python -m tests.golden.clients.record` writes the files.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

__all__ = ["CLIENT_DIRECTORY", "CLIENT_NAMES", "ClientMessage", "read_client"]

CLIENT_DIRECTORY: Final = Path(__file__).parent
CLIENT_NAMES: Final = sorted(path.stem for path in CLIENT_DIRECTORY.glob("*.hex"))
"""The clients that are recorded."""


class ClientMessage(NamedTuple):
    """One message, sent in one transfer frame."""

    kind: str
    """The queue that it was sent to: text, binary, durable-text, ..."""
    head: bytes
    """The frame up to the message."""
    payload: bytes
    """The message."""

    def line(self) -> str:
        """Return the line of the file."""
        return f"{self.kind} {self.head.hex()} {self.payload.hex()}\n"


def read_client(name: str) -> Iterator[ClientMessage]:
    """Yield the recorded messages of a client, in the order in which they were sent."""
    for line in (CLIENT_DIRECTORY / f"{name}.hex").read_text(encoding="ascii").splitlines():
        if not line.startswith("#"):
            kind, head, payload = line.split()
            yield ClientMessage(kind, bytes.fromhex(head), bytes.fromhex(payload))
