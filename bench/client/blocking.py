"""`python -m bench.client.blocking URL`: one message at a time by Proton's blocking client, without end.

The sender waits for the outcome; then the receiver grants a credit of one, receives, and accepts. The broker is quiet
when the next message comes. A library encodes what a program would not: an empty list of properties, a flow a message.
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
    """Send and receive until the broker hangs up."""
    sending, receiving = (BlockingConnection(url, timeout=_WAIT_SECONDS) for _ in range(2))
    sender, receiver = sending.create_sender("alone"), receiving.create_receiver("alone")
    message = proton.Message(body=bytes(100), durable=True)
    while True:
        sender.send(message)
        receiver.receive()
        receiver.accept()
        _write(receiving)


def _write(connection: BlockingConnection) -> None:
    """Write what the connection has for its peer, for the length of the pause."""
    ends = time.monotonic() + _PAUSE_SECONDS
    with suppress(proton.Timeout):
        connection.wait(lambda: time.monotonic() > ends, timeout=_PAUSE_SECONDS)


if __name__ == "__main__":
    main(sys.argv[1])
