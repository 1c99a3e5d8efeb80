"""The checks of the table `[listeners]` that go beyond the type of a value."""

import ipaddress
from collections.abc import Callable

from ambermq.protocol.server.listeners.listener_address import ListenerAddress
from ambermq.protocol.server.listeners.listener_config import CERTIFICATE_NAMES, ListenerConfig
from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.exit_codes import ExitCode

__all__ = ["check_listeners"]


def check_listeners(config: ListenerConfig, where: Callable[[str], str]) -> None:
    """Raise ToolError for a wrong value; `where` returns the place of a key."""
    for text in config.listen:
        try:
            ListenerAddress.parse(text)
        except ValueError as error:
            expected = str(error).partition(", found ")[0].removeprefix("expected ")
            raise _wrong("listen", where, expected, text) from error
    if config.tls_user_from and config.tls_user_from not in CERTIFICATE_NAMES:
        raise _wrong("tls_user_from", where, f"one of {', '.join(CERTIFICATE_NAMES)}", config.tls_user_from)
    if config.proxy_protocol and not config.proxy_trusted:
        raise _wrong("proxy_protocol", where, "proxy_trusted with the addresses of the proxies", "none")
    for text in config.proxy_trusted:
        try:
            ipaddress.ip_network(text, strict=False)
        except ValueError as error:
            raise _wrong("proxy_trusted", where, "addresses and networks such as 10.0.0.0/8", text) from error


def _wrong(name: str, where: Callable[[str], str], expected: str, found: str) -> ToolError:
    return ToolError(f"{name} is invalid", where=where(name), expected=expected, found=found, code=ExitCode.USAGE)
