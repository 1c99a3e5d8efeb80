"""A relay between a client and a broker: it keeps the bytes that the client sends, a list item a connection."""

import socket
import threading
from contextlib import suppress
from typing import Final

__all__ = ["Relay"]

_READ_BYTES: Final = 1 << 16


class Relay:
    """A listening socket on the loopback; each connection to it is one to the broker."""

    def __init__(self, port: int) -> None:
        """Relay to the broker on `port` of the loopback."""
        self._broker = ("127.0.0.1", port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"amqp://127.0.0.1:{self._listener.getsockname()[1]}"
        self.sent: list[bytearray] = []
        """What the client sent on each connection, in the order of the connections."""
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Stop listening."""
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                broker = socket.create_connection(self._broker)
                sent = bytearray()
                self.sent.append(sent)
                threading.Thread(target=_copy, args=(client, broker, sent), daemon=True).start()
                threading.Thread(target=_copy, args=(broker, client, bytearray()), daemon=True).start()


def _copy(source: socket.socket, sink: socket.socket, copied: bytearray) -> None:
    with suppress(OSError):
        while piece := source.recv(_READ_BYTES):
            copied += piece
            sink.sendall(piece)
    with suppress(OSError):
        sink.shutdown(socket.SHUT_WR)
