"""The keys of `[server]` for listeners. Pure: a table in, a configuration out."""

import ipaddress
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Final

from ambermq.protocol.amqp10.limits import range_of
from ambermq.protocol.server.listeners.listener_address import ListenerAddress
from ambermq.protocol.server.listeners.listener_config import CERTIFICATE_NAMES, ListenerConfig
from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.exit_codes import ExitCode

__all__ = ["read_listeners"]

_KINDS: Final = {
    tuple: "a list of texts in quotes",
    str: "text in quotes",
    bool: "true or false",
    int: "a whole number",
}


def read_listeners(table: Mapping[str, Any], where: str) -> ListenerConfig:
    """Return the listeners in a table whose keys are known; raise ToolError for a wrong value."""
    config = ListenerConfig(**{name: _value(name, value, where) for name, value in table.items()})
    for text in config.listen:
        try:
            ListenerAddress.parse(text)
        except ValueError as error:
            raise _wrong(
                "listen", where, str(error).partition(", found ")[0].removeprefix("expected "), text
            ) from error
    if config.tls_user_from and config.tls_user_from not in CERTIFICATE_NAMES:
        raise _wrong("tls_user_from", where, f"one of {', '.join(CERTIFICATE_NAMES)}", config.tls_user_from)
    if config.proxy_protocol and not config.proxy_trusted:
        raise _wrong("proxy_protocol", where, "proxy_trusted with the addresses of the proxies", "none")
    for text in config.proxy_trusted:
        try:
            ipaddress.ip_network(text, strict=False)
        except ValueError as error:
            raise _wrong("proxy_trusted", where, "addresses and networks such as 10.0.0.0/8", text) from error
    return config


def _value(name: str, value: Any, where: str) -> Any:
    """Return a value as the configuration has it: a list becomes a tuple."""
    limit = next(one for one in fields(ListenerConfig) if one.name == name)
    default: object = limit.default
    kind = type(default)
    if isinstance(value, list) and all(isinstance(one, str) and one for one in value):
        value = tuple(value)
    if type(value) is not kind:
        raise _wrong(name, where, _KINDS[kind], repr(value))
    if isinstance(value, int) and not isinstance(value, bool) and value < range_of(limit)[0]:
        raise _wrong(name, where, f"a whole number, at least {range_of(limit)[0]}", str(value))
    return value


def _wrong(name: str, where: str, expected: str, found: str) -> ToolError:
    return ToolError(f"{name} is invalid", where=where, expected=expected, found=found, code=ExitCode.USAGE)
