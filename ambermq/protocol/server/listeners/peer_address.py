"""The address of a peer, as limits count it.

Rule 1. A peer of this machine has no address: it comes over the loopback interface or a unix socket.
Rule 2. The addresses of an IPv6 network with a prefix of 64 bits are one: a single machine may use them all.
"""

import ipaddress
from typing import Any, Final

__all__ = ["LOCAL", "address_of", "plain_address"]

LOCAL: Final = ""
"""The address of every peer of this machine."""
_NETWORK_BITS: Final = 64


def address_of(name: Any) -> str:
    """Return the address of a peer by the socket's name for it, `LOCAL` for a peer of this machine."""
    if not isinstance(name, tuple) or not name:
        return LOCAL
    address = plain_address(name)
    if address is None:
        return str(name[0])
    if address.is_loopback:
        return LOCAL
    if isinstance(address, ipaddress.IPv6Address):
        return str(ipaddress.ip_network((int(address), _NETWORK_BITS), strict=False))
    return str(address)


def plain_address(name: tuple[Any, ...]) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Return the address in a socket's name, that of IPv4 for one that is mapped to IPv6; None if there is none."""
    try:
        # A link-local address names its interface after a %.
        address = ipaddress.ip_address(str(name[0]).partition("%")[0])
    except ValueError:
        return None
    if isinstance(address, ipaddress.IPv6Address):
        return address.ipv4_mapped or address
    return address
