"""The listeners of the broker: bound before the recovery, so that a port in use is found first.

Rule 1. A bound socket refuses connections until the server listens on it. So no client waits for the recovery.
Rule 2. The first line of the broker names a plain listener first, else one with TLS, since old scripts read it.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from ambermq.protocol.server.listeners.acceptor import bound_sockets
from ambermq.protocol.server.listeners.listener import Listener
from ambermq.protocol.server.listeners.listener_address import ListenerAddress
from ambermq.protocol.server.listeners.listener_config import ListenerConfig
from ambermq.protocol.server.listeners.tls_contexts import TlsContexts, TlsFault
from ambermq.protocol.server.listeners.unix_socket import UnixName
from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.exit_codes import ExitCode

__all__ = ["bound_listeners", "in_order_of_announcement", "listen_errors", "load_certificates", "parse_listeners"]


def parse_listeners(texts: Sequence[str], where: str) -> tuple[ListenerAddress, ...]:
    """Return the addresses of listeners; raise ToolError for a wrong one. `where` names its option or key."""
    found = []
    for text in texts:
        try:
            found.append(ListenerAddress.parse(text))
        except ValueError as error:
            raise ToolError(f"wrong address of a listener: {error}", where=where, code=ExitCode.USAGE) from error
    return tuple(found)


def in_order_of_announcement(listeners: Sequence[Listener]) -> list[ListenerAddress]:
    """Return the addresses, that of the first plain TCP listener first, else that of the first one with TLS."""
    addresses = [listener.address for listener in listeners]
    return sorted(addresses, key=lambda one: {"amqp": 0, "amqps": 1}.get(one.scheme, 2))


def load_certificates(
    addresses: Sequence[ListenerAddress], config: ListenerConfig, https: str = ""
) -> TlsContexts | None:
    """Return the certificates, None without a listener that needs them; raise ToolError if they cannot be used.

    `https` is the URL of an HTTP listener that needs them.
    """
    first = next((str(one) for one in addresses if one.is_secure), https)
    if not first:
        return None
    if not config.tls_cert:
        advice = "give --tls-cert FILE and --tls-key FILE"
        raise ToolError("a listener with TLS needs a certificate", where=first, advice=advice, code=ExitCode.USAGE)
    try:
        return TlsContexts(config)
    except TlsFault as fault:
        raise ToolError(
            "the certificates cannot be used",
            where=fault.where,
            expected=fault.expected,
            found=fault.found,
            advice=fault.advice,
            code=ExitCode.USAGE,
        ) from fault


@contextmanager
def listen_errors(address: object) -> Iterator[None]:
    """Raise a ToolError with advice if the block cannot listen."""
    try:
        yield
    except BlockingIOError as error:
        raise ToolError("cannot listen", where=str(address), found="another broker that listens there") from error
    except OSError as error:
        is_unix = isinstance(address, ListenerAddress) and address.is_unix
        advice = "use another path" if is_unix else "use another --host or --port; port 0 chooses a free one"
        raise ToolError(
            "cannot listen",
            where=str(address),
            # asyncio puts a sentence with the address in front of the system's own message.
            found=(error.strerror or str(error)).rpartition(": ")[2],
            advice=advice,
        ) from error


@contextmanager
def bound_listeners(addresses: Sequence[ListenerAddress]) -> Iterator[list[Listener]]:
    """Yield listeners whose sockets are bound; raise ToolError if one cannot be bound."""
    with ExitStack() as stack:
        listeners = []
        for address in addresses:
            with listen_errors(address):
                listeners.append(_bound(address, stack))
        yield listeners


def _bound(address: ListenerAddress, stack: ExitStack) -> Listener:
    if address.is_unix:
        name = UnixName(address)
        stack.callback(name.release)
        return name.listener
    sockets = [stack.enter_context(bound) for bound in bound_sockets(address.host, address.port)]
    return Listener(address.with_port(sockets[0].getsockname()[1]), sockets)
