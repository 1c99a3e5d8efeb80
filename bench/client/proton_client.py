"""`python -m bench.client.proton_client URL`: send one message at a time with Proton's blocking client, without end.

The sender waits for the outcome. Then the receiver grants a credit of one, receives, and accepts. The broker is idle
when the next message arrives. Proton adds an empty list of properties to each message, and a flow frame.
"""

import sys
import time
from contextlib import suppress

import proton
from proton.utils import BlockingConnection

__all__ = ["main"]

_PAUSE_SECONDS = 0.08
_WAIT_SECONDS = 20.0


def main(url: str) -> None:
    """Send and receive until the broker closes the connection."""
    sending, receiving = (BlockingConnection(url, timeout=_WAIT_SECONDS) for _ in range(2))
    sender, receiver = sending.create_sender("alone"), receiving.create_receiver("alone")
    message = proton.Message(body=bytes(100), durable=True)
    while True:
        sender.send(message)
        receiver.receive()
        receiver.accept()
        _write(receiving)


def _write(connection: BlockingConnection) -> None:
    """Write the connection's pending frames, and wait for the length of the pause."""
    ends = time.monotonic() + _PAUSE_SECONDS
    with suppress(proton.Timeout):
        connection.wait(lambda: time.monotonic() > ends, timeout=_PAUSE_SECONDS)


if __name__ == "__main__":
    main(sys.argv[1])
