"""The layers between an accepted socket and AMQP: the PROXY header, then TLS, then WebSocket.

    accepted socket -> [PROXY header] -> [TLS handshake] -> [WebSocket upgrade] -> connection_made of the connection

Rule 1. All layers together have the time of the handshake, from the accept on. AMQP's open has what is left of it.
Rule 2. A plain socket has no layer, and costs nothing here.
Rule 3. A fault of the peer is a LayerFault with its reason, for a bounded log line.
"""

import asyncio
import ipaddress
import socket
import ssl
from dataclasses import replace
from typing import Any, Final, final

from ambermq.protocol.auth.peer import Peer
from ambermq.protocol.server.listeners.certificate_user import certificate_user
from ambermq.protocol.server.listeners.listener import Listener, shown_name
from ambermq.protocol.server.listeners.listener_config import ListenerConfig
from ambermq.protocol.server.listeners.peer_address import LOCAL, address_of, plain_address
from ambermq.protocol.server.listeners.proxy_header import HEADER_BYTES_MAX, ProxyHeader, ProxyHeaderError
from ambermq.protocol.server.listeners.tls_contexts import TlsContexts

__all__ = ["LayerFault", "TransportLayers"]

_REASONS: Final = {
    "HTTP_REQUEST": "an HTTP request, expected a TLS handshake",
    "WRONG_VERSION_NUMBER": "no TLS handshake: the peer speaks a plain protocol",
    "UNSUPPORTED_PROTOCOL": "a version of TLS before 1.2",
    "NO_SHARED_CIPHER": "no cipher in common",
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": "no client certificate (tls_client_required)",
    "CERTIFICATE_VERIFY_FAILED": "the client certificate cannot be verified",
}


class LayerFault(Exception):
    """The peer failed before AMQP; the text is the reason."""


@final
class TransportLayers:
    """The layers of one server."""

    __slots__ = ("_config", "_handshake_s", "_shutdown_s", "_trusted", "tls")

    def __init__(self, config: ListenerConfig, tls: TlsContexts | None, *, handshake_ms: int, close_ms: int) -> None:
        self._config = config
        self.tls = tls
        """The certificates; None without a listener with TLS."""
        self._handshake_s = handshake_ms / 1000
        self._shutdown_s = max(close_ms, 1) / 1000
        proxies = config.proxy_trusted if config.proxy_protocol else ()
        self._trusted = tuple(ipaddress.ip_network(one, strict=False) for one in proxies)

    @property
    def config(self) -> ListenerConfig:
        """The configuration of the listeners."""
        return self._config

    def is_proxy(self, name: Any) -> bool:
        """Return whether a peer is a trusted proxy, which sends a header first; `name` is the socket's name for it."""
        if not self._trusted or not isinstance(name, tuple):
            return False
        address = plain_address(name)
        return address is not None and any(address in network for network in self._trusted)

    def deadline(self) -> float:
        """Return when the layers of a connection that was accepted now must be done, by the time of the event loop."""
        return asyncio.get_running_loop().time() + self._handshake_s

    async def client_of(self, stream: socket.socket, proxy: Peer, deadline: float) -> Peer:
        """Return the client behind a trusted proxy, by the header on the stream. Raises LayerFault and OSError."""
        header = ProxyHeader()
        try:
            async with asyncio.timeout_at(deadline):
                while not header.is_done:
                    await _receive_header(stream, header)
        except TimeoutError as error:
            raise LayerFault("no complete header of the PROXY protocol within handshake_ms") from error
        except ProxyHeaderError as error:
            raise LayerFault(f"wrong header of the PROXY protocol: {error}") from error
        if header.source is None:
            return proxy
        address = address_of(header.source)
        # A client on the loopback interface of another machine is no peer of this one.
        is_local = address == LOCAL and proxy.is_local
        if address == LOCAL and not is_local:
            address = proxy.address
        return replace(proxy, address=address, name=shown_name(header.source), is_local=is_local)

    async def connect(
        self, listener: Listener, stream: socket.socket, inner: asyncio.BufferedProtocol, deadline: float
    ) -> None:
        """Connect a protocol to an accepted socket. Raises LayerFault and OSError; the caller closes it then."""
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout_at(deadline):
                if listener.address.is_websocket:
                    await self._connect_websocket(listener, stream, inner)
                else:
                    await loop.connect_accepted_socket(lambda: inner, stream, **self._tls_of(listener))
        except TimeoutError as error:
            raise LayerFault("no complete handshake within handshake_ms") from error
        except ssl.SSLError as error:
            raise LayerFault(f"TLS: {_tls_reason(error)}") from error

    async def _connect_websocket(
        self, listener: Listener, stream: socket.socket, inner: asyncio.BufferedProtocol
    ) -> None:
        # The library is loaded when a peer uses it, so that other brokers start faster.
        from ambermq.protocol.server.listeners.websocket_transport import WebSocketTransport  # noqa: PLC0415

        config, loop = self._config, asyncio.get_running_loop()
        websocket = WebSocketTransport(
            inner, origins=config.websocket_origins, message_bytes_max=config.websocket_message_bytes_max
        )
        transport, _ = await loop.connect_accepted_socket(lambda: websocket, stream, **self._tls_of(listener))
        try:
            reason = await websocket.opened
        except asyncio.CancelledError:
            transport.abort()
            raise
        if reason:
            # The peer may read the answer, for a bounded time.
            loop.call_later(self._shutdown_s, transport.abort)
            raise LayerFault(reason)

    def proved(self, peer: Peer, transport: asyncio.Transport) -> Peer:
        """Return a peer with what its TLS handshake has proved: encryption, and the user of its certificate."""
        if transport.get_extra_info("sslcontext") is None:
            return peer
        certificate = transport.get_extra_info("peercert")
        user = certificate_user(certificate, self._config.tls_user_from) if certificate else None
        return replace(peer, is_encrypted=True, certificate_user=user)

    def _tls_of(self, listener: Listener) -> dict[str, Any]:
        """Return the arguments of a transport for TLS; none for a plain listener."""
        if not listener.address.is_secure:
            return {}
        assert self.tls is not None, "a listener with TLS has certificates"
        times = {"ssl_handshake_timeout": self._handshake_s, "ssl_shutdown_timeout": self._shutdown_s}
        return {"ssl": self.tls.context, **times}


async def _receive_header(stream: socket.socket, header: ProxyHeader) -> None:
    """Wait for input, and take as much of it as belongs to a header; the rest stays in the socket."""
    loop = asyncio.get_running_loop()
    readable: asyncio.Future[None] = loop.create_future()
    loop.add_reader(stream, _set, readable)
    try:
        await readable
    finally:
        loop.remove_reader(stream)
    try:
        arrived = stream.recv(HEADER_BYTES_MAX, socket.MSG_PEEK)
    except BlockingIOError:
        return
    if not arrived:
        raise LayerFault("the proxy closed the connection before its header was complete")
    stream.recv(header.take(arrived))


def _set(readable: "asyncio.Future[None]") -> None:
    if not readable.done():
        readable.set_result(None)


def _tls_reason(error: ssl.SSLError) -> str:
    """Return the reason of a failed handshake in words."""
    reason = error.reason or ""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the client certificate cannot be verified: {error.verify_message}"
    return _REASONS.get(reason) or reason.replace("_", " ").lower() or str(error)[:200]
